//! Whether an applied configuration makes sense at all.

use std::collections::BTreeSet;

use serde_json::Value;
use steersman_values::quoted;

use super::typed::steps;
use crate::patch::{printed, printed_type};
use crate::schema::{ANY, Node, Relation, Scalar, Shape};

/// How many mistakes are told; a configuration may be nothing but mistakes.
const TOLD_MAX: usize = 20;

/// A mistake and where it is; the path is built from its end.
struct Mistake {
    path: String,
    text: String,
}

/// The mistakes so far.
struct Told {
    /// Whether it is of a kind that Kubernetes defines.
    is_typed: bool,
    mistakes: Vec<Mistake>,
}

/// What is wrong with an applied configuration, if anything: unknown fields, wrong types, list
/// items without keys or with the same keys.
pub(super) fn check(node: &Node, value: &Value) -> Result<(), String> {
    let mut told = Told { is_typed: matches!(node.shape, Shape::Named(_)), mistakes: Vec::new() };
    check_value(node, value, &mut told);
    let text = |Mistake { path, text }: &Mistake| {
        if path.is_empty() { text.clone() } else { format!("{path}: {text}") }
    };
    match told.mistakes.as_slice() {
        [] => Ok(()),
        [one] => Err(text(one)),
        many => {
            let lines: Vec<String> = many.iter().map(|one| format!("  {}", text(one))).collect();
            Err(format!("errors:\n{}", lines.join("\n")))
        }
    }
}

fn check_value(node: &Node, value: &Value, told: &mut Told) {
    // Nobody has told Kubernetes the type of what Go reads with a decoder of its own.
    let is_part = matches!(node.shape, Shape::Part(_));
    if value.is_null() || is_part || told.mistakes.len() >= TOLD_MAX {
        return;
    }
    if let Some(text) = wrong_type(&node.shape, value, told.is_typed) {
        told.mistakes.push(Mistake { path: String::new(), text });
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let before = told.mistakes.len();
                let is_unknown = node.is_closed() && node.field(key).is_none();
                if is_unknown {
                    let text = "field not declared in schema".to_owned();
                    told.mistakes.push(Mistake { path: String::new(), text });
                } else if key == "fieldsV1" && node.is_closed() {
                    // Of any type in our table, but a map by its OpenAPI schema.
                    if !(value.is_object() || value.is_null()) {
                        let text = format!("expected map, got &{{{}}}", printed(value));
                        told.mistakes.push(Mistake { path: String::new(), text });
                    }
                } else {
                    check_value(node.child(key), value, told);
                }
                prefix(&mut told.mistakes[before..], || format!(".{key}"));
                // Beside a field that nobody knows Kubernetes looks no further.
                if is_unknown {
                    break;
                }
            }
        }
        Value::Array(_) => check_items(node, value, told),
        _ => {}
    }
}

fn check_items(node: &Node, value: &Value, told: &mut Told) {
    let relation = node.relation(value);
    let item_node = if matches!(node.shape, Shape::List(_)) { node.item() } else { &ANY };
    if matches!(relation, Relation::Leaf) {
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let before = told.mistakes.len();
            check_value(item_node, item, told);
            prefix(&mut told.mistakes[before..], || format!("[{index}]"));
        }
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, (step, item)) in steps(relation, value).enumerate() {
        let before = told.mistakes.len();
        match step {
            Err(error) => {
                let text = format!("element {index}: {error}");
                told.mistakes.push(Mistake { path: String::new(), text });
                return;
            }
            Ok(step) => {
                check_value(item_node, item, told);
                prefix(&mut told.mistakes[before..], || step.to_string());
                if seen.contains(&step) {
                    let text = format!("duplicate entries for key {step}");
                    told.mistakes.insert(before, Mistake { path: String::new(), text });
                }
                seen.insert(step);
            }
        }
    }
}

fn prefix(mistakes: &mut [Mistake], step: impl Fn() -> String) {
    for mistake in mistakes {
        mistake.path.insert_str(0, &step());
    }
}

/// What was expected, and found, if the value is of another type.
fn wrong_type(shape: &Shape, value: &Value, is_typed: bool) -> Option<String> {
    match shape {
        Shape::Any | Shape::Raw | Shape::Part(_) => None,
        Shape::Object(_) | Shape::Named(_) | Shape::Map(_) => {
            (!value.is_object()).then(|| format!("expected map, got &{{{}}}", printed(value)))
        }
        Shape::List(_) => {
            (!value.is_array()).then(|| format!("expected list, got &{{{}}}", printed(value)))
        }
        Shape::Scalar(scalar) => match scalar {
            Scalar::Bool => (!value.is_boolean())
                .then(|| format!("expected boolean, got &{{{}}}", printed(value))),
            Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Number => {
                let text =
                    || format!("expected numeric (int or float), got {}", printed_type(value));
                (!value.is_number()).then(text)
            }
            // What is wrong with it is told when the object is restored.
            Scalar::IntOrString if is_typed => None,
            Scalar::IntOrString | Scalar::Quantity | Scalar::Time | Scalar::MicroTime => {
                (value.is_object() || value.is_array())
                    .then(|| format!("expected any scalar, got &{{{}}}", printed(value)))
            }
            _ => (!value.is_string()).then(|| {
                let found = go_syntax(value);
                format!("expected string, got &value.valueUnstructured{{Value:{found}}}")
            }),
        },
    }
}

/// A value as a Go program would have it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = map.iter();
            let entries =
                entries.map(|(key, value)| format!("{}:{}", quoted(key), go_syntax(value)));
            let entries: Vec<String> = entries.collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::String(text) => quoted(text),
        Value::Null => "interface {}(nil)".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check;
    use crate::kinds;

    #[test]
    fn times_are_any_single_value_and_numbers_or_texts_are_anything_until_they_are_restored() {
        let all = kinds::all();
        let root =
            |plural: &str| all.iter().find(|kind| kind.plural == plural).unwrap().schema.root();
        let [deployments, leases] = [root("deployments"), root("leases")];
        let rolling = |surge| json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": surge}}}});
        assert_eq!(check(&deployments, &rolling(json!({"a": "b"}))), Ok(()));
        let renewed = |time| json!({"spec": {"renewTime": time}});
        assert_eq!(check(&leases, &renewed(json!(1))), Ok(()));
        let why = ".spec.renewTime: expected any scalar, got &{[true]}";
        assert_eq!(check(&leases, &renewed(json!([true]))), Err(why.to_owned()));
    }

    #[test]
    fn what_stands_for_a_text_is_told_as_go_would_have_it() {
        let all = kinds::all();
        let nodes = all.iter().find(|kind| kind.plural == "nodes").unwrap().schema.root();
        let found = check(&nodes, &json!({"spec": {"podCIDR": {"a": ["b\u{1}", null]}}}));
        let why = concat!(
            ".spec.podCIDR: expected string, got &value.valueUnstructured{Value:",
            r#"map[string]interface {}{"a":[]interface {}{"b\x01", interface {}(nil)}}}"#,
        );
        assert_eq!(found, Err(why.to_owned()));
    }
}
