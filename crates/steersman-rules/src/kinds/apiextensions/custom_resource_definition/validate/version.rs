//! What hangs on a version: its schema, subresources, columns and selectable fields.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{list, schema, structural, text};
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
        patterns: schema::Patterns::default(),
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
    patterns: schema::Patterns,
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
        let mut errors = of_schema(schema, path, status, &mut self.patterns);
        // Rules that were accepted once compile and cost what they did then.
        let is_unchanged = self.before.get(text(&version["name"])) == Some(&schema);
        if errors.is_empty() && !is_unchanged {
            errors.extend(check_expressions(schema, &format!("{path}.openAPIV3Schema")));
        }
        errors
    }
}

fn of_schema(root: &Value, path: &str, status: bool, patterns: &mut schema::Patterns) -> Errors {
    let mut errors = Errors::default();
    let Some(fields) = root.as_object() else { return errors };
    let path = format!("{path}.openAPIV3Schema");
    if status && root["type"].is_string() && root["type"] != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the \
                   status subresource is enabled";
        errors.push(FieldError::invalid(format!("{path}.type"), &root["type"], why));
    }
    if status && fields.keys().any(|key| !AT_ROOT.iter().any(|(field, _)| field == key)) {
        let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource \
             is enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(path.as_str(), root, &why));
    }
    if root["nullable"] == true {
        let field = format!("{path}.nullable");
        errors.push(FieldError::forbidden(field, "nullable cannot be true at the root"));
    }
    // What cannot be read as a structural schema is not looked at as one.
    let is_unsupported = schema::is_unsupported(root);
    if !is_unsupported {
        errors.extend(structural::of_root(root, &path));
    }
    errors.extend(schema::of_root(root, &path, patterns));
    if is_unsupported && errors.is_empty() {
        // All else that is not supported was told where it stands.
        let why = "OpenAPIV3Schema 'schema' is not supported";
        errors.push(FieldError::invalid(path, &"".into(), why));
    }
    errors
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

    use super::{of_schema, schema};
    use crate::field::messages;

    #[test]
    fn what_a_schema_is_written_in_is_not_said_and_told_where_nothing_else_is_wrong() {
        let told = |root: &Value| {
            let mut patterns = schema::Patterns::default();
            messages(&of_schema(root, "spec.validation", false, &mut patterns))
        };
        let dialect = "http://json-schema.org/draft-07/schema#";
        let at = "spec.validation.openAPIV3Schema";
        let expected =
            [format!("{at}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported")];
        let mut root = json!({"type": "object", "$schema": dialect});
        assert_eq!(told(&root), expected);
        let below = json!({"type": "object", "allOf": [{"properties": {"a": {"$schema": "x"}}}]});
        assert_eq!(told(&below), expected);
        root["properties"] = json!({"a": {"type": "odd"}});
        let told = told(&root);
        assert!(told.len() == 1 && told[0].starts_with(&format!("{at}.properties[a].type")));
    }
}
