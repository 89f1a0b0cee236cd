//! What may stand in a schema: known types, no references, and extensions that fit together.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::said::{Path, Said};
use super::{clip, list, text};
use crate::field::{Errors, FieldError};
use crate::schema::resolved_field_path;

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Parts of JSON schema that Kubernetes does not know.
const UNSUPPORTED: &[&str] =
    &["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Where a schema says what it is written in. Kubernetes does not know that either, but has nothing
/// to say of it beside other mistakes.
const DIALECT: &str = "$schema";

/// Whether a schema, or one in it, cannot be read as a structural one: it has parts that Kubernetes does not
/// know, or not in this form.
pub(super) fn is_unsupported(schema: &Value) -> bool {
    let schema = Said::of(schema);
    let has_odd_form = schema["x-kubernetes-preserve-unknown-fields"] == false
        || !list(&schema["items"]).is_empty();
    let below = |key: &str| schema.of_word(key).as_object().into_iter().flatten();
    let mut lists =
        ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema.of_word(key)));
    has_odd_form
        || UNSUPPORTED.iter().chain(&[DIALECT]).any(|key| !schema[*key].is_null())
        || below("properties").any(|(_, property)| is_unsupported(property))
        || ["items", "additionalProperties", "not"]
            .iter()
            .any(|key| schema[*key].is_object() && is_unsupported(&schema[*key]))
        || lists.any(is_unsupported)
}

/// What every object has.
pub(super) const ALWAYS: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// What is wrong with a schema and all schemas in it.
#[derive(Default)]
pub(super) struct Flaws {
    pub(super) errors: Errors,
    /// The schemas with which something is wrong, or with one below, by where they lie in memory.
    unsound: HashSet<*const Value>,
}

impl Flaws {
    /// Whether nothing is wrong with a schema, nor with any below it.
    pub(super) fn is_sound(&self, schema: &Value) -> bool {
        !self.unsound.contains(&std::ptr::from_ref(schema))
    }
}

/// Where a schema stands.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Whether it describes a part of an object's own metadata.
    in_metadata: bool,
    /// Why there may be no defaults, if there may not.
    no_defaults: Option<String>,
}

/// The mistakes in a schema and all schemas in it.
pub(super) fn of_root(schema: &Value, path: &str) -> Flaws {
    let mut flaws = Flaws::default();
    let place = Place { root: true, ..Place::default() };
    walk(&Said::of(schema), &Path::root(path), &place, &mut flaws);
    flaws
}

fn walk(schema: &Said<'_>, path: &Path<'_>, place: &Place, flaws: &mut Flaws) {
    if !schema.schema.is_object() {
        return;
    }
    let before = flaws.errors.len();
    standard(schema, path, place, &mut flaws.errors);
    children(schema, path, place, flaws);
    let errors = &mut flaws.errors;
    extensions(schema, path, errors);
    list_type(schema, path, errors);
    list_keys(schema, path, errors);
    list_items(schema, path, errors);
    rules(schema, path, errors);
    if errors.len() > before || errors.is_full() {
        flaws.unsound.insert(std::ptr::from_ref(schema.schema));
    }
}

fn standard(schema: &Said<'_>, path: &Path<'_>, place: &Place, errors: &mut Errors) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(&schema["type"]);
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(at("type"), &schema["type"], TYPES));
    }
    if let Some(reason) = place.no_defaults.as_ref().filter(|_| !schema["default"].is_null()) {
        errors.push(FieldError::forbidden(at("default"), &format!("must not be set {reason}")));
    }
    for key in UNSUPPORTED.iter().filter(|key| !schema[**key].is_null()) {
        errors.push(FieldError::forbidden(at(key), &format!("{key} is not supported")));
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(at("type"), why));
    }
    if schema["items"].is_array() {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(at("items"), why));
    }
    if place.in_metadata && schema["x-kubernetes-embedded-resource"] == true {
        let why = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(at("x-kubernetes-embedded-resource"), why));
    }
    if schema["uniqueItems"] == true {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes \
                   quadratic";
        errors.push(FieldError::forbidden(at("uniqueItems"), why));
    }
}

fn children(schema: &Said<'_>, path: &Path<'_>, place: &Place, flaws: &mut Flaws) {
    let below = Place { root: false, ..place.clone() };
    let properties = schema["properties"].as_object();
    let additional = &schema["additionalProperties"];
    if !additional.is_null() {
        if properties.is_some_and(|p| !p.is_empty()) && *additional != true {
            let why = "additionalProperties and properties are mutual exclusive";
            flaws.errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
        }
        let mut below = below.clone();
        if place.in_metadata {
            let reason = "inside additionalProperties applying to object metadata";
            below.no_defaults = Some(reason.to_owned());
        }
        walk(&Said::of(additional), &path.word("additionalProperties"), &below, flaws);
    }
    let embedded = schema["x-kubernetes-embedded-resource"] == true;
    for (name, property) in properties.into_iter().flatten() {
        let mut below = below.clone();
        if (place.root || embedded) && ALWAYS.contains(&name.as_str()) {
            below.in_metadata = true;
            if place.root {
                below.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        walk(&Said::of(property), &path.property(name), &below, flaws);
    }
    walk(&schema.below("not"), &path.word("not"), &below, flaws);
    for key in ["allOf", "oneOf", "anyOf"] {
        for (i, part) in list(&schema[key]).iter().enumerate() {
            walk(&Said::of(part), &path.part(key, i), &below, flaws);
        }
    }
    walk(&schema.below("items"), &path.word("items"), &below, flaws);
}

/// The type that an extension asks for.
fn typed(schema: &Said<'_>, path: &Path<'_>, kind: &str, extension: &str) -> Option<FieldError> {
    let field = format!("{path}.type");
    let why = format!("must be {kind} if {extension} is specified");
    match text(&schema["type"]) {
        given if given == kind => None,
        "" => Some(FieldError::required(field, &why)),
        _ => Some(FieldError::invalid(field, &schema["type"], &why)),
    }
}

fn extensions(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
    const MAP: &str = "x-kubernetes-map-type";
    if schema[OPEN] == false {
        let why = "must be true or undefined";
        errors.push(FieldError::invalid(format!("{path}.{OPEN}"), &json!(false), why));
    }
    if !schema[MAP].is_null() {
        errors.extend(typed(schema, path, "object", MAP));
        let known = ["atomic", "granular"];
        if !known.contains(&text(&schema[MAP])) {
            let field = format!("{path}.{MAP}");
            errors.push(FieldError::not_supported(field, &schema[MAP], &known));
        }
    }
}

fn list_type(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    const LIST: &str = "x-kubernetes-list-type";
    const ATOMIC: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let kind = &schema[LIST];
    if kind.is_null() {
        return;
    }
    let mistyped = typed(schema, path, "array", LIST);
    let sound = mistyped.is_none();
    errors.extend(mistyped);
    let items = &schema["items"];
    if sound && kind == "set" {
        let nested = &items[LIST];
        let map = &items["x-kubernetes-map-type"];
        match text(&items["type"]) {
            "array" if !nested.is_null() && nested != "atomic" => {
                errors.push(FieldError::invalid(format!("{path}.items.{LIST}"), nested, ATOMIC));
            }
            "object" if map != "atomic" => {
                let field = format!("{path}.items.x-kubernetes-map-type");
                errors.push(FieldError::invalid(field, nested, ATOMIC));
            }
            _ => {}
        }
    }
    let known = ["atomic", "set", "map"];
    if !known.contains(&text(kind)) {
        errors.push(FieldError::not_supported(format!("{path}.{LIST}"), kind, &known));
    }
}

fn list_keys(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    let kind = &schema["x-kubernetes-list-type"];
    let keys = &schema["x-kubernetes-list-map-keys"];
    let at = |key: &str| format!("{path}.{key}");
    if !list(keys).is_empty() && kind != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = at("x-kubernetes-list-type");
        errors.push(match kind {
            Value::Null => FieldError::required(field, why),
            _ => FieldError::invalid(field, kind, why),
        });
    }
    if kind != "map" {
        return;
    }
    let items = &schema["items"];
    if list(keys).is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at("x-kubernetes-list-map-keys"), why));
    }
    if items.is_null() {
        let why = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at("items"), why));
    } else if items["type"] == "object" {
        each_key(items, keys, path, errors);
    } else {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at("items.type"), &json!(text(&items["type"])), why));
    }
}

fn each_key(items: &Value, keys: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at_keys = format!("{path}.x-kubernetes-list-map-keys");
    let mut seen = HashSet::new();
    for key in list(keys) {
        let name = text(key);
        match items["properties"].get(name) {
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at_keys.as_str(), keys, why));
            }
            Some(property) if ["array", "object"].contains(&text(&property["type"])) => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = format!("{path}.items.properties[{}].type", clip(name));
                errors.push(FieldError::invalid(field, &items["type"], why));
            }
            Some(_) => {}
        }
        if !seen.insert(name) {
            let why = "must not contain duplicate entries";
            errors.push(FieldError::invalid(at_keys.as_str(), keys, why));
        }
    }
}

/// Items by which, or by whose keys, others are told apart must be there.
fn list_items(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(&schema["x-kubernetes-list-type"]);
    let items = &schema["items"];
    if !(["set", "map"].contains(&kind) && items.is_object()) {
        return;
    }
    if items["nullable"] == true {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), &why));
    }
    if kind != "map" {
        return;
    }
    let required: HashSet<&str> = list(&items["required"]).iter().map(text).collect();
    for name in list(&schema["x-kubernetes-list-map-keys"]).iter().map(text) {
        let Some(property) = items["properties"].get(name) else { continue };
        let at = format!("{path}.items.properties[{}]", clip(name));
        if !required.contains(name) && property["default"].is_null() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or \
                       be a required property";
            errors.push(FieldError::required(format!("{at}.default"), why));
        }
        if property["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{at}.nullable"), why));
        }
    }
}

fn field_path(schema: &Value, path: &Value, field: &str, errors: &mut Errors) {
    let given = text(path);
    if given.is_empty() {
        return;
    }
    let mut invalid = |why: &str| errors.push(FieldError::invalid(field, path, why));
    if given.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if given.contains(['\n', '\r']) {
        invalid("must not contain line breaks");
    }
    if resolved_field_path(schema, given).is_none() {
        invalid("must be a valid path");
    }
}

/// The form of rules; whether their expressions compile is looked at once the schema is sound.
fn rules(schema: &Said<'_>, path: &Path<'_>, errors: &mut Errors) {
    for (i, rule) in list(&schema["x-kubernetes-validations"]).iter().enumerate() {
        let at = |key: &str| format!("{path}.x-kubernetes-validations[{i}].{key}");
        let given = text(&rule["rule"]).trim();
        let message = text(&rule["message"]);
        if given.is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let why = "must be non-empty if specified";
            errors.push(FieldError::invalid(at("message"), &rule["message"], why));
        } else if message.trim().contains(['\n', '\r']) {
            let why = "must not contain line breaks";
            errors.push(FieldError::invalid(at("message"), &rule["message"], why));
        } else if given.contains(['\n', '\r']) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at("message"), why));
        }
        let expression = text(&rule["messageExpression"]);
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at("messageExpression"), why));
        }
        let reason = &rule["reason"];
        if !reason.is_null() && !REASONS.contains(&text(reason)) {
            errors.push(FieldError::not_supported(at("reason"), reason, REASONS));
        }
        field_path(schema.schema, &rule["fieldPath"], &at("fieldPath"), errors);
    }
}
