//! Parts of definitions as Kubernetes shows them in complaints: as structs of Go, with every field under
//! its name there, also those in which nothing is set.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::field::shown_as_json;

/// Nobody is shown more: what an empty schema takes is a thousand bytes, and there may be as many as fit
/// into an object.
const SHOWN_MAX: usize = 16 * 1024;

/// A field: its name in Go, its name in documents, and its form.
type Field = (&'static str, &'static str, Form);

enum Form {
    Text,
    Flag,
    Whole,
    /// What it is in documents, or null.
    Raw,
    /// A struct, or null; also in a list, and by name.
    Struct(&'static [Field]),
    List(&'static [Field]),
    Map(&'static [Field]),
    /// One schema, or several.
    Items,
    /// A schema, or whether there may be anything.
    Either,
}

static SCHEMA: [Field; 44] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Raw),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Raw),
    ("Maximum", "maximum", Form::Raw),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Raw),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Raw),
    ("MinLength", "minLength", Form::Raw),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Raw),
    ("MinItems", "minItems", Form::Raw),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Raw),
    ("Enum", "enum", Form::Raw),
    ("MaxProperties", "maxProperties", Form::Raw),
    ("MinProperties", "minProperties", Form::Raw),
    ("Required", "required", Form::Raw),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::List(&SCHEMA)),
    ("OneOf", "oneOf", Form::List(&SCHEMA)),
    ("AnyOf", "anyOf", Form::List(&SCHEMA)),
    ("Not", "not", Form::Struct(&SCHEMA)),
    ("Properties", "properties", Form::Map(&SCHEMA)),
    ("AdditionalProperties", "additionalProperties", Form::Either),
    ("PatternProperties", "patternProperties", Form::Map(&SCHEMA)),
    ("Dependencies", "dependencies", Form::Raw),
    ("AdditionalItems", "additionalItems", Form::Either),
    ("Definitions", "definitions", Form::Map(&SCHEMA)),
    ("ExternalDocs", "externalDocs", Form::Struct(&DOCUMENTATION)),
    ("Example", "example", Form::Raw),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Raw),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Raw),
    ("XListType", "x-kubernetes-list-type", Form::Raw),
    ("XMapType", "x-kubernetes-map-type", Form::Raw),
    ("XValidations", "x-kubernetes-validations", Form::List(&RULE)),
];

static DOCUMENTATION: [Field; 2] =
    [("Description", "description", Form::Text), ("URL", "url", Form::Text)];

static RULE: [Field; 6] = [
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Raw),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Raw),
];

static VERSION: [Field; 9] = [
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Raw),
    ("Schema", "schema", Form::Struct(&VALIDATION)),
    ("Subresources", "subresources", Form::Struct(&SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Form::List(&COLUMN)),
    ("SelectableFields", "selectableFields", Form::List(&SELECTABLE)),
];

static VALIDATION: [Field; 1] = [("OpenAPIV3Schema", "openAPIV3Schema", Form::Struct(&SCHEMA))];

static SUBRESOURCES: [Field; 2] =
    [("Status", "status", Form::Struct(&NOTHING)), ("Scale", "scale", Form::Struct(&SCALE))];

static NOTHING: [Field; 0] = [];

static SCALE: [Field; 3] = [
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Raw),
];

static COLUMN: [Field; 6] = [
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Whole),
    ("JSONPath", "jsonPath", Form::Text),
];

static SELECTABLE: [Field; 1] = [("JSONPath", "jsonPath", Form::Text)];

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let mut writer = Writer::default();
    writer.fields(schema, &SCHEMA, &[]);
    writer.0
}

/// All versions, without what all of them say alike.
pub(super) fn versions<'a>(all: impl Iterator<Item = &'a Value>, alike: &[&str]) -> String {
    let mut writer = Writer::default();
    for version in all {
        writer.0.push(if writer.0.is_empty() { '[' } else { ',' });
        writer.fields(version, &VERSION, alike);
    }
    if writer.0.is_empty() { "null".to_owned() } else { writer.0 + "]" }
}

/// Writes until there is enough.
#[derive(Default)]
struct Writer(String);

impl Writer {
    fn is_full(&self) -> bool {
        self.0.len() > SHOWN_MAX
    }

    /// A struct, as if nothing were set in the fields that are left out.
    fn fields(&mut self, value: &Value, fields: &[Field], left_out: &[&str]) {
        self.0.push('{');
        for (index, (name, key, form)) in fields.iter().enumerate() {
            if self.is_full() {
                return;
            }
            let comma = if index == 0 { "" } else { "," };
            // A text takes everything.
            let _ = write!(self.0, "{comma}{name:?}:");
            let value = if left_out.contains(key) { &Value::Null } else { &value[*key] };
            self.form(value, form);
        }
        self.0.push('}');
    }

    fn form(&mut self, value: &Value, form: &Form) {
        match (form, value) {
            (Form::Text, Value::Null) => self.0.push_str("\"\""),
            (Form::Whole, Value::Null) => self.0.push('0'),
            (Form::Flag, value) => self.0.push_str(if *value == true { "true" } else { "false" }),
            (Form::Struct(fields), Value::Object(_)) => self.fields(value, fields, &[]),
            (Form::List(fields), Value::Array(items)) => self.list(items, fields),
            (Form::Map(fields), Value::Object(map)) => self.map(map, fields),
            (Form::Items, Value::Array(items)) => {
                self.0.push_str("{\"Schema\":null,\"JSONSchemas\":");
                self.list(items, &SCHEMA);
                self.0.push('}');
            }
            (Form::Items, Value::Object(_)) => {
                self.0.push_str("{\"Schema\":");
                self.fields(value, &SCHEMA, &[]);
                self.0.push_str(",\"JSONSchemas\":null}");
            }
            (Form::Either, Value::Object(_)) => {
                self.0.push_str("{\"Allows\":true,\"Schema\":");
                self.fields(value, &SCHEMA, &[]);
                self.0.push('}');
            }
            (Form::Either, Value::Bool(allows)) => {
                let _ = write!(self.0, "{{\"Allows\":{allows},\"Schema\":null}}");
            }
            (_, value) => self.0.push_str(&shown_as_json(value)),
        }
    }

    fn list(&mut self, items: &[Value], fields: &[Field]) {
        self.0.push('[');
        for (index, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.0.push(',');
            }
            self.fields(item, fields, &[]);
        }
        self.0.push(']');
    }

    fn map(&mut self, map: &Map<String, Value>, fields: &[Field]) {
        self.0.push('{');
        for (index, (key, value)) in map.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(&shown_as_json(&key.as_str().into()));
            self.0.push(':');
            self.fields(value, fields, &[]);
        }
        self.0.push('}');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{SHOWN_MAX, schema, versions};

    #[test]
    fn a_schema_is_shown_with_all_its_fields_under_the_names_of_go() {
        let given = json!({
            "type": "object", "maxProperties": 3,
            "properties": {"a": {"type": "array", "items": {"type": "string"}}},
            "additionalProperties": true,
            "x-kubernetes-validations": [{"rule": "1 < 2"}],
        });
        let shown: Value = serde_json::from_str(&schema(&given)).unwrap();
        assert!(schema(&given).starts_with("{\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,"));
        assert_eq!(shown["Type"], "object");
        assert_eq!(shown["MaxProperties"], 3);
        assert_eq!(shown["AdditionalProperties"], json!({"Allows": true, "Schema": null}));
        assert_eq!(shown["Properties"]["a"]["Items"]["Schema"]["Type"], "string");
        assert_eq!(shown["Properties"]["a"]["Items"]["JSONSchemas"], json!(null));
        let rule = json!({
            "Rule": "1 < 2", "Message": "", "MessageExpression": "", "Reason": null,
            "FieldPath": "", "OptionalOldSelf": null,
        });
        assert_eq!(shown["XValidations"], json!([rule]));
        assert_eq!(shown.as_object().unwrap().len(), 44);
    }

    #[test]
    fn versions_are_shown_without_what_they_say_alike() {
        let version = json!({
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}},
        });
        let shown = versions([&version].into_iter(), &["schema"]);
        assert_eq!(
            shown,
            "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":{\"Status\":{},\
             \"Scale\":null},\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]"
        );
        assert_eq!(versions(std::iter::empty(), &[]), "null");
    }

    #[test]
    fn of_many_schemas_some_are_shown() {
        let properties: serde_json::Map<String, Value> =
            (0..10_000).map(|n| (format!("f{n}"), json!({}))).collect();
        let shown = schema(&json!({"properties": properties}));
        assert!(shown.len() < 2 * SHOWN_MAX, "{}", shown.len());
    }
}
