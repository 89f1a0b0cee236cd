//! Defaults that their own schema would refuse, or that are no metadata where metadata stands.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::said::{Path, Said};
use super::schema::ALWAYS;
use crate::field::{Errors, FieldError};
use crate::schema::{
    Node, embedded_mistakes, has_unknown_fields, mistakes, rule_mistakes, structural_node,
};

/// The shape of any resource: what else its own schema says has no part in what makes it one.
static RESOURCE: LazyLock<Node> = LazyLock::new(|| {
    structural_node(&json!({"type": "object", "x-kubernetes-embedded-resource": true}))
});

/// The mistakes in the defaults of a schema for whole objects. What every object has may have none, which
/// is told elsewhere.
pub(super) fn of_root(schema: &Value, path: &str) -> Errors {
    let mut errors = Errors::default();
    let path = Path::root(path);
    let is_own = |name: &str| !ALWAYS.contains(&name);
    if schema["default"].is_null() {
        walk(&Said::of(schema), &path, is_own, None, &mut errors);
        return errors;
    }
    let mut root = schema.clone();
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| is_own(name));
    }
    root["x-kubernetes-embedded-resource"] = true.into();
    walk(&Said::of(&root), &path, is_own, None, &mut errors);
    errors
}

/// Where a default stands in what makes a resource one.
struct Spot<'a> {
    up: Option<&'a Spot<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Field(&'a str),
    Item,
}

impl<'a> Spot<'a> {
    fn below(&'a self, step: Step<'a>) -> Self {
        Self { up: Some(self), step }
    }

    /// A resource with nothing but the default in it.
    fn resource(&self, default: &Value) -> Value {
        let mut value = default.clone();
        let mut here = Some(self);
        while let Some(spot) = here {
            value = match spot.step {
                Step::Field(name) => json!({name: value}),
                Step::Item => json!([value]),
            };
            here = spot.up;
        }
        for (name, always) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if value.get(name).is_none() {
                value[name] = always.into();
            }
        }
        value
    }
}

/// Looks at a schema and at those of its properties that are to be looked at.
fn walk(
    schema: &Said<'_>,
    path: &Path<'_>,
    is_looked_at: fn(&str) -> bool,
    spot: Option<&Spot<'_>>,
    errors: &mut Errors,
) {
    let is_resource = schema["x-kubernetes-embedded-resource"] == true;
    let spot = spot.filter(|_| !is_resource);
    if !schema["default"].is_null() {
        errors.extend(of_default(schema.schema, &format!("{path}.default"), spot));
    }
    if schema["items"].is_object() {
        let below = spot.map(|spot| spot.below(Step::Item));
        walk(&schema.below("items"), &path.word("items"), |_| true, below.as_ref(), errors);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let begins = is_resource && ALWAYS.contains(&name.as_str());
        let begin = || Spot { up: None, step: Step::Field(name) };
        let below = match spot {
            Some(spot) => Some(spot.below(Step::Field(name))),
            None => begins.then(begin),
        };
        if is_looked_at(name) {
            let path = path.property(name);
            walk(&Said::of(property), &path, |_| true, below.as_ref(), errors);
        }
    }
}

/// What is wrong with a default. What is wrong at first sight is not looked at further.
fn of_default(schema: &Value, path: &str, spot: Option<&Spot<'_>>) -> Vec<FieldError> {
    let default = &schema["default"];
    let node = structural_node(schema);
    let mut errors = Vec::new();
    if let Some(spot) = spot {
        let found = embedded_mistakes(&RESOURCE, &spot.resource(default));
        if !found.is_empty() {
            let why = format!("must result in valid metadata: {}", together(&found));
            return vec![FieldError::invalid(path, default, &why)];
        }
    } else {
        if has_unknown_fields(&node, default) {
            errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
        let found = embedded_mistakes(&node, default);
        if !found.is_empty() {
            errors.extend(below(path, found));
            return errors;
        }
    }
    // A number or a text is told apart only where an object is read.
    let is_either = schema["x-kubernetes-int-or-string"] == true;
    let found = if is_either { Vec::new() } else { mistakes(&node, default, path) };
    if found.is_empty() {
        errors.extend(below(path, rule_mistakes(schema, default)));
    }
    errors.extend(found);
    errors
}

/// Mistakes that are named from a default.
fn below(path: &str, mistakes: Vec<FieldError>) -> impl Iterator<Item = FieldError> + '_ {
    mistakes.into_iter().map(move |mistake| {
        let field = match mistake.field.as_str() {
            "" | "<nil>" => path.to_owned(),
            field if field.starts_with('[') => format!("{path}{field}"),
            field => format!("{path}.{field}"),
        };
        FieldError { field, ..mistake }
    })
}

/// Mistakes in one text.
fn together(mistakes: &[FieldError]) -> String {
    let texts: Vec<String> = mistakes.iter().map(FieldError::message).collect();
    match &texts[..] {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::of_root;
    use crate::field::messages;

    /// What is wrong with the defaults of a field `v`, of which all stands at `s.properties[v]`.
    fn told(schema: &Value) -> Vec<String> {
        let root = json!({"type": "object", "properties": {"v": schema}});
        let strip = |message: &String| message.strip_prefix("s.properties[v].").unwrap().to_owned();
        messages(&of_root(&root, "s")).iter().map(strip).collect()
    }

    fn resource(properties: Value) -> Value {
        let mut resource = json!({"type": "object", "x-kubernetes-embedded-resource": true});
        resource["properties"] = properties;
        resource
    }

    #[test]
    fn a_resource_is_sound_as_a_default_and_with_its_defaults() {
        let text = |default: Value| json!({"type": "string", "default": default});
        let metadata =
            |properties: Value| json!({"metadata": {"type": "object", "properties": properties}});
        let given = |properties: Value, default: Value| {
            let mut given = resource(properties);
            given["default"] = default;
            given
        };
        let any = || json!({"something": {"type": "string"}});
        let pod =
            |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        let around = |inner: Value| json!({"type": "object", "properties": {"r": resource(any())}, "default": {"r": inner}});
        for (schema, expected) in [
            (given(any(), pod(json!({"name": "a", "odd": 1}))), vec![]),
            (resource(json!({"metadata": {"type": "object", "default": {"odd": 1}}})), vec![]),
            (resource(metadata(json!({"name": text(json!("a"))}))), vec![]),
            (
                given(any(), json!({"apiVersion": "v1", "kind": "Pod", "odd": 1})),
                vec![
                    r#"default: Invalid value: {"apiVersion":"v1","kind":"Pod","odd":1}: must not have unknown fields"#,
                ],
            ),
            (
                given(any(), pod(json!(1))),
                vec![
                    "default.metadata: Invalid value: 1: json: cannot unmarshal number into Go value of \
                     type v1.ObjectMeta",
                ],
            ),
            (
                around(json!({"kind": 1})),
                vec!["default.r.kind: Invalid value: 1: must be a string"],
            ),
            (
                given(
                    metadata(json!({"name": {"type": "string", "enum": ["b"]}})),
                    pod(json!({"name": "a"})),
                ),
                vec![r#"default.metadata.name: Unsupported value: "a": supported values: "b""#],
            ),
            (
                resource(metadata(json!({"name": text(json!(1))}))),
                vec![
                    "properties[metadata].properties[name].default: Invalid value: 1: must result in \
                     valid metadata: metadata: Invalid value: {\"name\":1}: json: cannot unmarshal \
                     number into Go struct field ObjectMeta.name of type string",
                ],
            ),
            (
                resource(json!({"kind": text(json!(""))})),
                vec![
                    r#"properties[kind].default: Invalid value: "": must result in valid metadata: kind: Invalid value: "": must not be empty"#,
                ],
            ),
        ] {
            assert_eq!(told(&schema), expected, "{schema}");
        }
    }
}
