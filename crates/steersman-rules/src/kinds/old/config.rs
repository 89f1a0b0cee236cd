//! `ConfigMaps` and Secrets: keys, sizes, and the promise not to change.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::rules::Strategy;
use crate::rules::document::{fill_text, immutable, remove, set, text, within};

const MAX_BYTES: usize = 1024 * 1024;

/// The strategy of config maps.
#[derive(Debug)]
pub(in crate::kinds) struct ConfigMap;

impl Strategy for ConfigMap {
    fn validate_create(&self, map: &Value) -> Vec<FieldError> {
        let mut errors = keys(map, "data");
        errors.extend(keys(map, "binaryData"));
        for key in map["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
            if map["binaryData"].get(key).is_some() {
                let detail = "duplicate of key present in binaryData";
                let field = format!("data[{key}]");
                errors.push(FieldError::invalid(field, &Value::from(key.as_str()), detail));
            }
        }
        if size(&map["data"]) + decoded_size(&map["binaryData"]) > MAX_BYTES {
            errors.push(FieldError::too_long("", MAX_BYTES));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = sealed(old, new, &["data", "binaryData"]);
        errors.extend(self.validate_create(new));
        errors
    }
}

/// The strategy of secrets.
#[derive(Debug)]
pub(in crate::kinds) struct Secret;

impl Strategy for Secret {
    /// `stringData` is a way to write `data`, and is never stored.
    fn default(&self, secret: &mut Value) {
        fill_text(secret, "type", "Opaque");
        let Some(Value::Object(plain)) = remove(secret, "stringData") else { return };
        within(secret, "data", |data| {
            for (key, value) in plain {
                set(data, &key, STANDARD.encode(text(&value)));
            }
        });
    }

    fn validate_create(&self, secret: &Value) -> Vec<FieldError> {
        let mut errors = keys(secret, "data");
        if decoded_size(&secret["data"]) > MAX_BYTES {
            errors.push(FieldError::too_long("data", MAX_BYTES));
        }
        errors.extend(missing_keys(secret));
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors: Vec<_> = immutable(old, new, "", "type").into_iter().collect();
        errors.extend(sealed(old, new, &["data"]));
        errors.extend(self.validate_create(new));
        errors
    }
}

/// What the type of a secret promises its readers.
fn missing_keys(secret: &Value) -> Vec<FieldError> {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    // A key of a key pair for SSH must also have a value.
    let empty = |key: &str| key == "ssh-privatekey" && text(&secret["data"][key]).is_empty();
    let absent = |key: &&&str| secret["data"].get(**key).is_none() || empty(key);
    let required = |key: &&str| FieldError::required(format!("data[{key}]"), "");
    let wanted: &[&str] = match text(&secret["type"]) {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" => {
            let either = ["username", "password"];
            let none = either.iter().all(|key| absent(&key));
            return if none { either.iter().map(required).collect() } else { Vec::new() };
        }
        "kubernetes.io/service-account-token" => {
            let named = !text(&secret["metadata"]["annotations"][ACCOUNT]).is_empty();
            let field = format!("metadata.annotations[{ACCOUNT}]");
            return if named { Vec::new() } else { vec![FieldError::required(field, "")] };
        }
        _ => &[],
    };
    let mut errors: Vec<_> = wanted.iter().filter(absent).map(required).collect();
    let docker = wanted.first().filter(|key| key.starts_with(".docker"));
    if let Some(key) = docker.filter(|key| !absent(key)) {
        errors.extend(not_an_object(&secret["data"][*key]).map(|why| {
            let shown = Value::from("<secret contents redacted>");
            FieldError::invalid(format!("data[{key}]"), &shown, &why)
        }));
    }
    errors
}

/// Why a value is not the JSON object it should be, in Go's words.
fn not_an_object(encoded: &Value) -> Option<String> {
    let bytes = STANDARD.decode(text(encoded)).unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(_) => Some(
            "json: cannot unmarshal value into Go value of type map[string]interface {}".into(),
        ),
        Err(_) => match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => Some("unexpected end of JSON input".to_owned()),
            Some(byte) => {
                let found = char::from(*byte);
                Some(format!("invalid character '{found}' looking for beginning of value"))
            }
        },
    }
}

fn keys(object: &Value, field: &str) -> Vec<FieldError> {
    let keys = object[field].as_object().into_iter().flatten().map(|(key, _)| key);
    keys.flat_map(|key| names::invalid(&format!("{field}[{key}]"), key, names::config_key))
        .collect()
}

fn size(data: &Value) -> usize {
    data.as_object().into_iter().flatten().map(|(_, value)| text(value).len()).sum()
}

/// The size of what is encoded, near enough for a limit.
fn decoded_size(data: &Value) -> usize {
    let values = data.as_object().into_iter().flatten().map(|(_, value)| text(value));
    values.map(|value| value.trim_end_matches('=').len() * 3 / 4).sum()
}

fn sealed(old: &Value, new: &Value, fields: &[&str]) -> Vec<FieldError> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let detail = "field is immutable when `immutable` is set";
    let all = std::iter::once(&"immutable").chain(fields);
    let changed = all.filter(|field| old[**field] != new[**field]);
    changed.map(|field| FieldError::forbidden(*field, detail)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    #[test]
    fn plain_text_of_a_secret_is_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "hello"}});
        Secret.default(&mut secret);
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "eA==", "b": "aGVsbG8="}}));
    }

    #[test]
    fn what_is_sealed_stays() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        let sealed = "Forbidden: field is immutable when `immutable` is set";
        for (new, expected) in [
            (json!({"immutable": true, "data": {"a": "1"}}), vec![]),
            (json!({"immutable": true, "data": {"a": "2"}}), vec![format!("data: {sealed}")]),
            (json!({"data": {"a": "1"}}), vec![format!("immutable: {sealed}")]),
        ] {
            assert_eq!(messages(&ConfigMap.validate_update(&old, &new)), expected);
            assert_eq!(messages(&Secret.validate_update(&old, &new)), expected);
        }
    }

    #[test]
    fn keys_and_sizes_are_checked() {
        let errors = ConfigMap.validate_create(&json!({"data": {"a/b": ""}}));
        assert_eq!(errors[0].field, "data[a/b]");
        let both = json!({"data": {"a": ""}, "binaryData": {"a": ""}});
        assert_eq!(
            messages(&ConfigMap.validate_create(&both)),
            ["data[a]: Invalid value: \"a\": duplicate of key present in binaryData"]
        );
        let large = json!({"data": {"a": "x".repeat(MAX_BYTES + 1)}});
        assert_eq!(
            ConfigMap.validate_create(&large)[0].text,
            "Too long: may not be more than 1048576 bytes"
        );
    }

    #[test]
    fn the_type_of_a_secret_requires_keys_and_may_not_change() {
        let tls = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}});
        assert_eq!(messages(&Secret.validate_create(&tls)), ["data[tls.key]: Required value"]);
        let opaque = json!({"type": "Opaque"});
        assert_eq!(Secret.validate_update(&opaque, &json!({"type": "x"}))[0].field, "type");
    }
}
