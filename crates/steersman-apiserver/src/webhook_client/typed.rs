//! Whether an answer fits the type that Go decodes it into. What does not fit is told in the words
//! of its decoder, and counts as no answer at all.

use serde_json::Value;
use steersman_rules::go_base64;
use steersman_rules::patch::json_type;

/// A struct of Go.
pub(crate) struct Struct {
    /// With its package, such as `v1.Status`.
    pub(super) name: &'static str,
    /// Those that are of any use here; others may hold anything.
    pub(super) fields: &'static [(&'static str, Type)],
}

/// What a field may hold, besides null.
pub(super) enum Type {
    /// A string, by the name of its type.
    Text(&'static str),
    Bool,
    Int32,
    Int64,
    /// Text in base64, or the bytes one by one.
    Bytes,
    Object(&'static Struct),
    List {
        of: &'static Type,
        name: &'static str,
    },
    Map {
        of: &'static Type,
        name: &'static str,
    },
    Any,
}

/// Where the decoder is, as it tells it: in a field of a struct, by its path without indexes.
#[derive(Clone, Copy)]
struct Place<'a> {
    holder: &'a Struct,
    path: &'a str,
    /// The version of the review.
    version: &'a str,
}

impl Struct {
    /// The first mistake in a review of a version, in Go's words.
    pub(crate) fn mistake(&self, version: &str, review: &Value) -> Option<String> {
        self.mistake_below(version, "", review)
    }

    fn mistake_below(&self, version: &str, path: &str, value: &Value) -> Option<String> {
        self.fields.iter().find_map(|(name, wanted)| {
            let value = value.get(name)?;
            let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
            wanted.mistake(value, Place { holder: self, path: &path, version })
        })
    }
}

impl Type {
    fn mistake(&self, value: &Value, place: Place<'_>) -> Option<String> {
        match (self, value) {
            (_, Value::Null) | (Self::Any, _) | (Self::Text(_), Value::String(_)) => None,
            (Self::Bool, Value::Bool(_)) => None,
            (Self::Int32, Value::Number(_)) if fits::<i32>(value) => None,
            (Self::Int64, Value::Number(_)) if fits::<i64>(value) => None,
            (Self::Bytes, Value::String(text)) => {
                go_base64::decode(text).err().map(|error| error.to_string())
            }
            (Self::Bytes, Value::Array(bytes)) => {
                let odd = bytes.iter().find(|byte| !(byte.is_null() || fits::<u8>(byte)))?;
                Some(place.unfit(odd, "uint8"))
            }
            (Self::Object(wanted), Value::Object(_)) => {
                wanted.mistake_below(place.version, place.path, value)
            }
            (Self::List { of, .. }, Value::Array(items)) => {
                items.iter().find_map(|item| of.mistake(item, place))
            }
            (Self::Map { of, .. }, Value::Object(map)) => {
                map.values().find_map(|value| of.mistake(value, place))
            }
            _ => Some(place.unfit(value, self.name())),
        }
    }

    /// What Go calls it.
    fn name(&self) -> &'static str {
        match self {
            Self::Text(name) | Self::List { name, .. } | Self::Map { name, .. } => name,
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Bytes => "[]uint8",
            Self::Object(wanted) => wanted.name,
            Self::Any => "interface {}",
        }
    }
}

impl Place<'_> {
    fn unfit(&self, value: &Value, wanted: &str) -> String {
        let Self { holder, path, version } = self;
        let mut found = json_type(value).to_owned();
        if let Value::Number(number) = value
            && wanted.contains("int")
        {
            found = format!("number {number}");
        }
        let holder = holder.name.rsplit('.').next().unwrap_or_default();
        let wanted = wanted.replace('*', version);
        format!(
            "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {wanted}"
        )
    }
}

fn fits<T: TryFrom<i64>>(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| T::try_from(number).is_ok())
}

/// The bytes of a field that was found to hold some.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => go_base64::decode(text).unwrap_or_default(),
        Value::Array(bytes) => {
            let byte = |byte: &Value| byte.as_u64().and_then(|byte| u8::try_from(byte).ok());
            bytes.iter().map(|value| byte(value).unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::bytes;
    use crate::webhook_client::{ADMISSION_REVIEW, CONVERSION_REVIEW};

    fn assert_mistake(response: &Value, why: Option<&str>) {
        let found = ADMISSION_REVIEW.mistake("v1", &json!({"response": response}));
        let why = why.map(|why| format!("json: cannot unmarshal {why}"));
        assert_eq!(found, why, "{response}");
    }

    #[test]
    fn what_does_not_fit_a_field_is_told_with_its_struct_path_and_type() {
        for (response, why) in [
            (json!({"allowed": true, "patch": null, "warnings": null}), None),
            (json!({"patch": [91, 93], "unknown": 1, "status": {"code": 403}}), None),
            (
                json!("x"),
                Some(
                    "string into Go struct field AdmissionReview.response of type v1.AdmissionResponse",
                ),
            ),
            (
                json!({"allowed": "true"}),
                Some("string into Go struct field AdmissionResponse.response.allowed of type bool"),
            ),
            (
                json!({"uid": 5}),
                Some(
                    "number into Go struct field AdmissionResponse.response.uid of type types.UID",
                ),
            ),
            (
                json!({"patch": {}}),
                Some(
                    "object into Go struct field AdmissionResponse.response.patch of type []uint8",
                ),
            ),
            (
                json!({"patch": [{}]}),
                Some("object into Go struct field AdmissionResponse.response.patch of type uint8"),
            ),
            (
                json!({"patchType": 1}),
                Some(
                    "number into Go struct field AdmissionResponse.response.patchType of type v1.PatchType",
                ),
            ),
            (
                json!({"auditAnnotations": ["x"]}),
                Some(
                    "array into Go struct field AdmissionResponse.response.auditAnnotations of type map[string]string",
                ),
            ),
            (
                json!({"auditAnnotations": {"a": 1}}),
                Some(
                    "number into Go struct field AdmissionResponse.response.auditAnnotations of type string",
                ),
            ),
            (
                json!({"warnings": "w"}),
                Some(
                    "string into Go struct field AdmissionResponse.response.warnings of type []string",
                ),
            ),
        ] {
            assert_mistake(&response, why);
        }
    }

    #[test]
    fn a_status_and_what_is_in_it_has_types_too() {
        for (response, why) in [
            (
                json!({"status": "no"}),
                Some(
                    "string into Go struct field AdmissionResponse.response.status of type v1.Status",
                ),
            ),
            (
                json!({"status": {"code": "403"}}),
                Some("string into Go struct field Status.response.status.code of type int32"),
            ),
            (
                json!({"status": {"code": 4.5}}),
                Some("number 4.5 into Go struct field Status.response.status.code of type int32"),
            ),
            (
                json!({"status": {"details": {"causes": [{"field": {}}]}}}),
                Some(
                    "object into Go struct field StatusCause.response.status.details.causes.field of type string",
                ),
            ),
        ] {
            assert_mistake(&response, why);
        }
        let bad = json!({"response": {"patch": "!!!"}});
        let found = ADMISSION_REVIEW.mistake("v1beta1", &bad);
        assert_eq!(found.unwrap(), "illegal base64 data at input byte 0");
        let found = CONVERSION_REVIEW.mistake("v1", &json!({"response": {"convertedObjects": {}}}));
        assert_eq!(
            found.unwrap(),
            "json: cannot unmarshal object into Go struct field \
             ConversionResponse.response.convertedObjects of type []runtime.RawExtension"
        );
    }

    #[test]
    fn bytes_are_text_or_numbers() {
        assert_eq!(bytes(&json!("W1\n0=")), b"[]");
        assert_eq!(bytes(&json!([91, 93])), b"[]");
        assert_eq!(bytes(&json!(null)), b"");
    }
}
