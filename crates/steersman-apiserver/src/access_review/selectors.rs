//! Whether the selectors of a question about permissions say something.

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::names;

/// The mistakes in the selectors of the resource that is asked about.
pub(super) fn mistakes(resource: &Value) -> Vec<FieldError> {
    let each: [(&str, Rule); 2] =
        [("fieldSelector", field_requirement), ("labelSelector", label_requirement)];
    let selectors = each.into_iter().filter(|(name, _)| resource[*name].is_object());
    selectors.flat_map(|(name, rule)| of_selector(&resource[name], name, rule)).collect()
}

/// The mistakes in one requirement at a path.
type Rule = fn(&Value, &str) -> Vec<FieldError>;

/// A selector is either text or a list of requirements.
fn of_selector(selector: &Value, name: &str, rule: Rule) -> Vec<FieldError> {
    let field = format!("spec.resourceAttributes.{name}");
    let raw = text(selector, "rawSelector");
    let requirements = list(selector, "requirements");
    let mut errors = Vec::new();
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{field}.rawSelector"), &raw.into(), why));
        }
        (true, true) => {
            let why = format!("when {field} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{field}.requirements"), &why));
        }
        _ => {}
    }
    for (index, requirement) in requirements.iter().enumerate() {
        errors.extend(rule(requirement, &format!("{field}.requirements[{index}]")));
    }
    errors
}

fn field_requirement(requirement: &Value, field: &str) -> Vec<FieldError> {
    let no_key = text(requirement, "key").is_empty();
    let no_key = no_key.then(|| FieldError::required(format!("{field}.key"), "must be specified"));
    no_key.into_iter().chain(number_of_values(requirement, field)).collect()
}

fn label_requirement(requirement: &Value, field: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = number_of_values(requirement, field).into_iter().collect();
    let key = text(requirement, "key");
    errors.extend(names::invalid(&format!("{field}.key"), key, names::qualified_name));
    for (index, value) in list(requirement, "values").iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(names::invalid(
            &format!("{field}.values[{index}]"),
            value,
            names::label_value,
        ));
    }
    errors
}

/// Whether an operator has values, if it is to have any. One that nobody knows here may be known to
/// a newer client, and is passed over when the question is answered.
fn number_of_values(requirement: &Value, field: &str) -> Option<FieldError> {
    let field = format!("{field}.values");
    match (text(requirement, "operator"), list(requirement, "values").is_empty()) {
        ("In" | "NotIn", true) => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            Some(FieldError::required(field, why))
        }
        ("Exists" | "DoesNotExist", false) => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            Some(FieldError::forbidden(field, why))
        }
        _ => None,
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::mistakes;

    #[test]
    fn a_selector_is_text_or_requirements_that_make_sense() {
        let one = |key: &str, operator: &str, values: &[&str]| json!({"requirements": [{"key": key, "operator": operator, "values": values}]});
        let in_or_not = "must be specified when `operator` is 'In' or 'NotIn'";
        let exists = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        let both = json!({
            "rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}],
        });
        let cases: Vec<(&str, Value, Vec<String>)> = vec![
            ("fieldSelector", json!(null), vec![]),
            ("fieldSelector", json!({"rawSelector": "a=b=c"}), vec![]),
            ("fieldSelector", one("a.b[c]", "Near", &["x y"]), vec![]),
            ("labelSelector", one("a", "Near", &["x"]), vec![]),
            (
                "fieldSelector",
                both,
                vec![
                    "fieldSelector.rawSelector: Invalid value: \"a=b\": may not specified at the \
                     same time as requirements"
                        .to_owned(),
                ],
            ),
            (
                "labelSelector",
                json!({}),
                vec![
                    "labelSelector.requirements: Required value: when \
                     spec.resourceAttributes.labelSelector is specified, requirements or \
                     rawSelector is required"
                        .to_owned(),
                ],
            ),
            (
                "fieldSelector",
                one("", "In", &[]),
                vec![
                    "fieldSelector.requirements[0].key: Required value: must be specified"
                        .to_owned(),
                    format!("fieldSelector.requirements[0].values: Required value: {in_or_not}"),
                ],
            ),
            (
                "labelSelector",
                one("a", "DoesNotExist", &["b"]),
                vec![format!("labelSelector.requirements[0].values: Forbidden: {exists}")],
            ),
        ];
        for (name, selector, expected) in cases {
            let found = mistakes(&json!({name: selector}));
            let found: Vec<String> = found.iter().map(super::FieldError::message).collect();
            let at = |text: String| format!("spec.resourceAttributes.{text}");
            let expected: Vec<String> = expected.into_iter().map(at).collect();
            assert_eq!(found, expected, "{name} {selector}");
        }
        let odd = mistakes(&json!({"labelSelector": one("a b", "In", &["x y"])}));
        let fields: Vec<&str> = odd.iter().map(|error| error.field.as_str()).collect();
        let requirement = "spec.resourceAttributes.labelSelector.requirements[0]";
        assert_eq!(fields, [format!("{requirement}.key"), format!("{requirement}.values[0]")]);
    }
}
