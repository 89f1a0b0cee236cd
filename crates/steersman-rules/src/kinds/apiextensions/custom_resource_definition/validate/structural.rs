//! What makes a schema structural: every value has a type at the place where it stands, and what
//! is said about it elsewhere (in `not`, `anyOf`, …) only narrows it.

use serde_json::{Value, json};

use super::patterns::Patterns;
use super::said::{Path, Said};
use super::{clip, list, text};
use crate::field::{Errors, FieldError};

/// What may not be said in a part that only narrows: the key, and the complaint.
const ONLY_OUTSIDE: &[(&str, &str)] = &[
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What was found on the way through a schema.
struct Found<'a> {
    errors: Errors,
    patterns: &'a mut Patterns,
}

/// The mistakes in a schema and all schemas in it, sorted.
pub(super) fn of_root(schema: &Value, path: &str, patterns: &mut Patterns) -> Vec<FieldError> {
    let mut found = Found { errors: Errors::default(), patterns };
    invariants(&Said::of(schema), &Path::root(path), Level::Root, &mut found);
    let whole = Whole { schema: Some(schema), path: path.to_owned() };
    completeness(schema, &whole, path, &mut found.errors);
    let mut errors: Vec<FieldError> = found.errors.into();
    errors.sort_by_cached_key(FieldError::message);
    errors
}

fn is(schema: &Said<'_>, flag: &str) -> bool {
    schema[flag] == true
}

fn invariants(schema: &Said<'_>, path: &Path<'_>, level: Level, found: &mut Found<'_>) {
    if !schema.schema.is_object() {
        return;
    }
    let at = |key: &str| format!("{path}.{key}");
    if schema["type"] == "array" && schema["items"].is_null() {
        found.errors.push(FieldError::required(at("items"), "must be specified"));
    }
    invariants(&schema.below("items"), &path.word("items"), Level::Item, found);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        invariants(&Said::of(property), &path.property(name), Level::Field, found);
    }
    let additional = &schema["additionalProperties"];
    if !additional.is_null() {
        if level == Level::Root {
            let why = "must not be used at the root";
            found.errors.push(FieldError::forbidden(at("additionalProperties"), why));
        }
        let below = path.word("additionalProperties");
        invariants(&Said::of(additional), &below, Level::Field, found);
    }
    let errors = &mut found.errors;
    int_or_string(schema, path, errors);
    types(schema, path, level, errors);
    object_meta(schema, path, level, errors);
    let first = list(&schema["allOf"]).first();
    let skipped = Skipped {
        any_of: is_either(&schema["anyOf"]),
        first_any_of: first.is_some_and(|first| is_either(&first["anyOf"])),
    };
    narrowing(schema, path, skipped, found);
}

fn int_or_string(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if is(schema, "x-kubernetes-int-or-string") && is(schema, key) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{key}"), &json!(true), why));
        }
    }
}

fn types(schema: &Said<'_>, path: &Path<'_>, level: Level, errors: &mut Errors) {
    let field = || format!("{path}.type");
    let kind = text(&schema["type"]);
    let embedded = is(schema, "x-kubernetes-embedded-resource");
    let free = is(schema, "x-kubernetes-int-or-string")
        || is(schema, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(field(), why),
            _ => FieldError::invalid(field(), &schema["type"], why),
        });
    } else if kind.is_empty() && !free {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(field(), why));
    }
    if embedded && !schema["additionalProperties"].is_null() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        let why = "must be object at the root";
        errors.push(FieldError::invalid(field(), &schema["type"], why));
    }
    let empty = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
    if embedded && empty && !is(schema, "x-kubernetes-preserve-unknown-fields") {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

/// `apiVersion`, `kind` and `metadata` are what they always are.
fn object_meta(schema: &Said<'_>, path: &Path<'_>, level: Level, errors: &mut Errors) {
    let properties = &schema["properties"];
    let whole = level == Level::Root || is(schema, "x-kubernetes-embedded-resource");
    for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = properties.get(name).filter(|_| whole) else { continue };
        if property["type"] != kind {
            let field = format!("{path}.properties[{name}].type");
            let given = json!(text(&property["type"]));
            errors.push(FieldError::invalid(field, &given, &format!("must be {kind}")));
        }
    }
    let Some(metadata) = properties.get("metadata").filter(|_| level == Level::Root) else {
        return;
    };
    let known = |name: &String| name == "name" || name == "generateName";
    let only_names = metadata["properties"].as_object().is_none_or(|p| p.keys().all(known));
    let allowed = |key: &String| ["type", "properties", "default"].contains(&key.as_str());
    let bare = metadata.as_object().is_none_or(|fields| fields.keys().all(allowed));
    if !(only_names && bare) {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// Whether this is the one way to say that a value is a number or a text.
fn is_either(any_of: &Value) -> bool {
    any_of.is_array() && *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// What of a schema is the one way to say that a value is a number or a text, and so narrows nothing.
#[derive(Clone, Copy, Default)]
struct Skipped {
    /// Its `anyOf`.
    any_of: bool,
    /// That of the first part of its `allOf`.
    first_any_of: bool,
}

/// Checks what narrows a schema.
fn narrowing(schema: &Said<'_>, path: &Path<'_>, skipped: Skipped, found: &mut Found<'_>) {
    if !skipped.any_of {
        nested_list(schema, "anyOf", path, found);
    }
    for (i, part) in list(&schema["allOf"]).iter().enumerate() {
        let skipped = Skipped { any_of: i == 0 && skipped.first_any_of, ..Skipped::default() };
        nested(&Said::of(part), &path.part("allOf", i), skipped, found);
    }
    nested_list(schema, "oneOf", path, found);
    nested(&schema.below("not"), &path.word("not"), Skipped::default(), found);
    let mistake = found.patterns.mistake(&schema["pattern"], &|| format!("{path}.pattern"));
    found.errors.extend(mistake);
}

fn nested_list(schema: &Said<'_>, key: &str, path: &Path<'_>, found: &mut Found<'_>) {
    for (i, part) in list(&schema[key]).iter().enumerate() {
        nested(&Said::of(part), &path.part(key, i), Skipped::default(), found);
    }
}

fn nested(part: &Said<'_>, path: &Path<'_>, skipped: Skipped, found: &mut Found<'_>) {
    if !part.schema.is_object() {
        return;
    }
    narrowing(part, path, skipped, found);
    nested(&part.below("items"), &path.word("items"), Skipped::default(), found);
    for (name, property) in part["properties"].as_object().into_iter().flatten() {
        nested(&Said::of(property), &path.property(name), Skipped::default(), found);
    }
    let said = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    for (key, why) in ONLY_OUTSIDE.iter().filter(|(key, _)| said(&part[*key])) {
        found.errors.push(FieldError::forbidden(format!("{path}.{key}"), why));
    }
    if part["properties"].get("metadata").is_some() {
        let why = "must not be specified in a nested context";
        found.errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// The schema that what narrows it refers to.
struct Whole<'a> {
    schema: Option<&'a Value>,
    path: String,
}

/// Whatever is narrowed must be there to be narrowed.
fn completeness(part: &Value, whole: &Whole<'_>, path: &str, errors: &mut Errors) {
    for key in ["allOf", "anyOf", "oneOf"] {
        for (i, inner) in list(&part[key]).iter().enumerate() {
            nested_completeness(inner, whole, &format!("{path}.{key}[{i}]"), errors);
        }
    }
    nested_completeness(&part["not"], whole, &format!("{path}.not"), errors);
}

fn nested_completeness(part: &Value, whole: &Whole<'_>, path: &str, errors: &mut Errors) {
    if !part.is_object() {
        return;
    }
    let Some(schema) = whole.schema else {
        let why = format!("because it is defined in {path}");
        return errors.push(FieldError::required(whole.path.as_str(), &why));
    };
    completeness(part, whole, path, errors);
    if !part["items"].is_null() {
        let below = Whole {
            schema: schema.get("items").filter(|items| items.is_object()),
            path: format!("{}.items", whole.path),
        };
        nested_completeness(&part["items"], &below, &format!("{path}.items"), errors);
    }
    for (name, property) in part["properties"].as_object().into_iter().flatten() {
        let below = Whole {
            schema: schema["properties"].get(name),
            path: format!("{}.properties[{}]", whole.path, clip(name)),
        };
        let path = format!("{path}.properties[{}]", clip(name));
        nested_completeness(property, &below, &path, errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Patterns, of_root};
    use crate::field::messages;

    #[test]
    fn that_a_value_is_a_number_or_a_text_is_said_where_it_stands() {
        let told = |of_a: Value, root: Value| {
            let mut schema = json!({"type": "object", "properties": {"a": of_a}});
            schema.as_object_mut().unwrap().extend(root.as_object().unwrap().clone());
            messages(&of_root(&schema, "s", &mut Patterns::default()))
        };
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let of = |key: &str, value: Value| json!({"x-kubernetes-int-or-string": true, key: value});
        let forbidden = |at: &str| {
            let one = |i: u8| {
                format!("s.{at}.anyOf[{i}].type: Forbidden: must be empty to be structural")
            };
            vec![one(0), one(1)]
        };
        let nothing = Vec::<String>::new();
        let (first, second) = (json!({"anyOf": either}), json!({"pattern": "a"}));
        assert_eq!(told(of("anyOf", either.clone()), json!({})), nothing);
        assert_eq!(told(of("allOf", json!([first, second])), json!({})), nothing);
        assert_eq!(
            told(of("allOf", json!([second, first])), json!({})),
            forbidden("properties[a].allOf[1]")
        );
        assert_eq!(
            told(of("oneOf", json!([first])), json!({})),
            forbidden("properties[a].oneOf[0]")
        );
        assert_eq!(
            told(of("nullable", json!(true)), json!({"allOf": [{"properties": {"a": first}}]})),
            forbidden("allOf[0].properties[a]")
        );
    }
}
