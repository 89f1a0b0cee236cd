//! What hangs on a version: its schema, subresources, columns and selectable fields.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::patterns::Patterns;
use super::{defaults, list, schema, shown, structural, text};
use crate::field::{Errors, FieldError};
use crate::kinds::apiextensions::custom_resource_definition::resources::versions_of;
use crate::schema::check_expressions;

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_MAX: usize = 8;

/// What may stand at the root of a schema beside a status subresource, and what Go calls it, as people are
/// told.
const AT_ROOT: &[(&str, &str)] = &[
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// The mistakes in what hangs on versions.
pub(super) struct Found {
    /// Of each version.
    pub(super) own: Vec<Errors>,
    /// In what all of them say alike.
    pub(super) shared: Errors,
}

/// The mistakes in all versions. What all of them say alike is looked at once.
pub(super) fn of_all(definition: &Value, old: Option<&Value>) -> Found {
    let before: HashMap<&str, &Value> = old
        .into_iter()
        .flat_map(versions_of)
        .map(|version| (text(&version["name"]), &version["schema"]["openAPIV3Schema"]))
        .collect();
    let all: Vec<&Value> = versions_of(definition).collect();
    let mut look = Look {
        before,
        alike: alike(&all),
        any_status: all.iter().any(|version| has_status(version)),
        patterns: Patterns::default(),
        shared: Errors::default(),
    };
    let own = all.iter().enumerate().map(|(index, version)| look.at(index, version)).collect();
    Found { own, shared: look.shared }
}

/// What all versions say alike. Asked once: there may be as many versions as fit into an object.
pub(super) fn alike(all: &[&Value]) -> Vec<&'static str> {
    const KEYS: [&str; 4] =
        ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];
    let is_alike = |key: &&str| {
        all.first().is_some_and(|first| {
            !first[*key].is_null() && all.iter().all(|version| version[*key] == first[*key])
        })
    };
    KEYS.into_iter().filter(is_alike).collect()
}

fn has_status(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

/// A look at one version after the other.
struct Look<'a> {
    /// The schemas that versions had before.
    before: HashMap<&'a str, &'a Value>,
    /// What all versions say alike.
    alike: Vec<&'static str>,
    /// Whether any version has a status of its own.
    any_status: bool,
    patterns: Patterns,
    /// The mistakes in what they say alike.
    shared: Errors,
}

impl Look<'_> {
    /// The mistakes in what only this version says.
    fn at(&mut self, index: usize, version: &Value) -> Errors {
        let mut own = Errors::default();
        if let Some(path) = self.path(index, "schema", "validation") {
            let errors = self.schema(version, &path);
            self.tell("schema", errors, &mut own);
        }
        if let Some(path) = self.path(index, "subresources", "subresources") {
            let errors = of_scale(&version["subresources"]["scale"], &path);
            self.tell("subresources", errors, &mut own);
        }
        let columns = "additionalPrinterColumns";
        if let Some(path) = self.path(index, columns, columns) {
            self.tell(columns, of_columns(&version[columns], &path), &mut own);
        }
        let selectable = "selectableFields";
        // What is kept for all versions is only looked at beside a schema that is.
        let apart = self.is_alike(selectable) && !self.is_alike("schema");
        if apart && index == 0 {
            let why = "may only be set when validations.schema is included";
            self.shared.push(FieldError::invalid("spec.selectableFields", &"".into(), why));
        }
        if let Some(path) = self.path(index, selectable, selectable).filter(|_| !apart) {
            self.tell(selectable, of_selectable(version, &path), &mut own);
        }
        own
    }

    fn is_alike(&self, key: &str) -> bool {
        self.alike.contains(&key)
    }

    /// Where Kubernetes keeps what a version says; nowhere, if the first one says it for all.
    fn path(&self, index: usize, key: &str, shared: &str) -> Option<String> {
        match (self.is_alike(key), index) {
            (true, 0) => Some(format!("spec.{shared}")),
            (true, _) => None,
            (false, _) => Some(format!("spec.versions[{index}].{key}")),
        }
    }

    fn tell(&mut self, key: &str, errors: impl IntoIterator<Item = FieldError>, own: &mut Errors) {
        if self.is_alike(key) { self.shared.extend(errors) } else { own.extend(errors) }
    }

    fn schema(&mut self, version: &Value, path: &str) -> Errors {
        let schema = &version["schema"]["openAPIV3Schema"];
        let status = if self.is_alike("schema") { self.any_status } else { has_status(version) };
        let before = self.before.get(text(&version["name"])).copied();
        of_schema(schema, before, path, status, &mut self.patterns)
    }
}

fn of_schema(
    root: &Value,
    before: Option<&Value>,
    path: &str,
    status: bool,
    patterns: &mut Patterns,
) -> Errors {
    let mut errors = Errors::default();
    let Some(fields) = root.as_object() else { return errors };
    let path = format!("{path}.openAPIV3Schema");
    if status {
        errors.extend(beside_status(root, fields, &path));
    }
    if root["nullable"] == true {
        let field = format!("{path}.nullable");
        errors.push(FieldError::forbidden(field, "nullable cannot be true at the root"));
    }
    // What cannot be read as a structural schema is not looked at as one, nor are defaults and rules
    // where it is none.
    let is_unsupported = schema::is_unsupported(root);
    let mut found: Errors = match is_unsupported {
        true => Errors::default(),
        false => structural::of_root(root, &path, patterns).into_iter().collect(),
    };
    // Defaults are held against patterns, which may be too many to be looked at.
    if !is_unsupported && found.is_empty() && !patterns.is_over() {
        found = defaults::of_root(root, &path);
    }
    let is_structural = !is_unsupported && found.is_empty();
    errors.extend(found);
    let mut flaws = schema::of_root(root, &path);
    errors.extend(std::mem::take(&mut flaws.errors));
    if is_unsupported && errors.is_empty() {
        // All else that is not supported was told where it stands.
        let why = "OpenAPIV3Schema 'schema' is not supported";
        errors.push(FieldError::invalid(path.as_str(), &"".into(), why));
    }
    // Rules that were accepted once compile and cost what they did then.
    if is_structural && before != Some(root) {
        errors.extend(check_expressions(root, &path, &|schema| flaws.is_sound(schema)));
    }
    errors
}

/// What of a schema is in the way of a status of its own. Only the first of it is told, in the order in which
/// Kubernetes keeps what a schema says.
fn beside_status(root: &Value, fields: &Map<String, Value>, path: &str) -> Option<FieldError> {
    let is_odd_type = !text(&root["type"]).is_empty() && root["type"] != "object";
    let is_allowed = |key: &String| AT_ROOT.iter().any(|(field, _)| field == key);
    let is_before_type = |key: &&String| ["id", "$schema", "$ref"].contains(&key.as_str());
    let mut odd = fields.keys().filter(|key| !is_allowed(key));
    let is_odd =
        if is_odd_type { odd.any(|key| is_before_type(&key)) } else { odd.next().is_some() };
    if is_odd {
        let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource \
             is enabled",
            names.join(" ")
        );
        return Some(FieldError::invalid_shown(path, &shown::schema(root), &why));
    }
    is_odd_type.then(|| {
        let why = "only \"object\" is allowed as the type at the root of the schema if the \
                   status subresource is enabled";
        FieldError::invalid(format!("{path}.type"), &root["type"], why)
    })
}

fn simple_path(value: &Value, field: &str) -> Option<FieldError> {
    let simple = text(value).starts_with('.');
    let why = "must be a simple json path starting with .";
    (!simple).then(|| FieldError::invalid(field, value, why))
}

fn of_scale(scale: &Value, path: &str) -> Vec<FieldError> {
    if !scale.is_object() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (key, below) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let field = format!("{path}.scale.{key}");
        let value = &scale[key];
        if text(value).is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if let Some(error) = simple_path(value, &field) {
            errors.push(error);
        } else if !text(value).starts_with(below) {
            let why = format!("should be a json path under {}", below.trim_end_matches('.'));
            errors.push(FieldError::invalid(field, value, &why));
        }
    }
    let selector = &scale["labelSelectorPath"];
    let below = [".spec.", ".status."].iter().any(|start| text(selector).starts_with(start));
    if !text(selector).is_empty() {
        let field = format!("{path}.scale.labelSelectorPath");
        if let Some(error) = simple_path(selector, &field) {
            errors.push(error);
        } else if !below {
            let why = "should be a json path under either .spec or .status";
            errors.push(FieldError::invalid(field, selector, why));
        }
    }
    errors
}

fn of_columns(columns: &Value, path: &str) -> Errors {
    let mut errors = Errors::default();
    for (i, column) in list(columns).iter().enumerate() {
        let field = |key: &str| format!("{path}[{i}].{key}");
        if text(&column["name"]).is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(&column["type"]) {
            "" => errors.push(FieldError::required(field("type"), &types)),
            given if COLUMN_TYPES.contains(&given) => {}
            _ => errors.push(FieldError::invalid(field("type"), &column["type"], &types)),
        }
        let format = text(&column["format"]);
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(field("format"), &column["format"], &why));
        }
        // The field is spelled as Kubernetes spells it.
        if text(&column["jsonPath"]).is_empty() {
            errors.push(FieldError::required(field("JSONPath"), ""));
        } else {
            errors.extend(simple_path(&column["jsonPath"], &field("JSONPath")));
        }
    }
    errors
}

fn of_selectable(version: &Value, path: &str) -> Errors {
    const TYPES: &str = "must point to a field of type string, boolean or integer. Enum string \
                         fields and strings with formats are allowed.";
    let root = &version["schema"]["openAPIV3Schema"];
    let mut errors = Errors::default();
    if !root.is_object() {
        let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
        errors.push(FieldError::invalid(path, &"".into(), why));
        return errors;
    }
    let mut seen = HashSet::new();
    for (i, field) in list(&version["selectableFields"]).iter().enumerate() {
        let value = &field["jsonPath"];
        let at = format!("{path}[{i}].jsonPath");
        let given = text(value);
        if given.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match field_at(root, given) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(at, value, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if given == ".metadata" || given.starts_with(".metadata.") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.as_str(), value, why));
        }
        if !["string", "boolean", "integer"].contains(&text(&found["type"])) {
            errors.push(FieldError::invalid(at.as_str(), value, TYPES));
        }
        if !seen.insert(given) {
            errors.push(FieldError::duplicate(at, value));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
    errors
}

/// The schema of a field; fails with why there is none.
fn field_at<'a>(root: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut schema = root;
    let mut rest = path;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(behind) = rest.strip_prefix('.') else {
            let end = rest.char_indices().skip(1).find(|(_, c)| ['.', '[', ']'].contains(c));
            let end = end.map_or(rest.len(), |(at, _)| at);
            return Err(format!("expected [ or . but got: {}", &rest[..end]));
        };
        let end = behind.find(['.', '[', ']']).unwrap_or(behind.len());
        let (key, after) = behind.split_at(end);
        if key.is_empty() && after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let found = match &schema["properties"] {
            Value::Object(properties) => properties.get(key),
            _ => Some(&schema["additionalProperties"]).filter(|any| any.is_object()),
        };
        schema = found.ok_or("does not refer to a valid field")?;
        rest = after;
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Patterns, of_schema};
    use crate::field::messages;

    fn told(root: &Value, status: bool) -> Vec<String> {
        messages(&of_schema(root, None, "spec", status, &mut Patterns::default()))
    }

    #[test]
    fn what_a_schema_is_written_in_is_not_said_and_told_where_nothing_else_is_wrong() {
        let dialect = "http://json-schema.org/draft-07/schema#";
        let at = "spec.openAPIV3Schema";
        let expected =
            [format!("{at}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported")];
        let mut root = json!({"type": "object", "$schema": dialect});
        assert_eq!(told(&root, false), expected);
        let below = json!({"type": "object", "allOf": [{"properties": {"a": {"$schema": "x"}}}]});
        assert_eq!(told(&below, false), expected);
        root["properties"] = json!({"a": {"type": "odd"}});
        let found = told(&root, false);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{at}.properties[a].type")));
    }

    #[test]
    fn rules_are_looked_at_wherever_nothing_else_is_wrong() {
        let rules = json!([{"rule": "nonsense"}]);
        let root = json!({"type": "object", "properties": {
            "a": {"type": "string", "uniqueItems": true, "x-kubernetes-validations": rules},
            "b": {"type": "string", "x-kubernetes-validations": rules},
        }});
        let found = told(&root, false);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("spec.openAPIV3Schema.properties[a].uniqueItems: Forbidden"));
        let rule = "spec.openAPIV3Schema.properties[b].x-kubernetes-validations[0].rule: Invalid";
        assert!(found[1].starts_with(rule), "{found:?}");
    }

    #[test]
    fn defaults_are_looked_at_once_the_schema_is_structural() {
        let root = json!({"type": "object", "properties": {
            "a": {}, "b": {"type": "string", "default": 1},
        }});
        let why = "Required value: must not be empty for specified object fields";
        assert_eq!(told(&root, false), [format!("spec.openAPIV3Schema.properties[a].type: {why}")]);
    }

    #[test]
    fn beside_a_status_the_first_odd_thing_at_the_root_is_told() {
        let only = |root: &Value| {
            let found = told(root, true).into_iter().filter(|message| message.contains("only"));
            found.map(|message| message.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let odd_type = json!({"type": "string", "maxProperties": 1});
        assert_eq!(only(&odd_type), ["spec.openAPIV3Schema.type"]);
        let named = json!({"type": "string", "id": "a"});
        assert_eq!(only(&named), ["spec.openAPIV3Schema"]);
        assert_eq!(only(&json!({"type": "object", "maxLength": 1})), Vec::<String>::new());
    }
}
