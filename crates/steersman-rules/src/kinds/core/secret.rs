//! Secrets: bytes under keys, some of which the type of a secret promises its readers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::data::{self, MAX_BYTES};
use super::key_pair;
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill_text, remove, set, text, within};
use crate::rules::go_json::{self, Shape};
use crate::table::cells::len;
use crate::table::{Column, age};

/// What is said of `Secret`.
pub(super) const KIND: Kind = Kind {
    plural: "secrets",
    name: "Secret",
    selectable_fields: &["type"],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules { default, check, warn: |secret, _| warnings(secret), ..Rules::NONE };

/// `stringData` is a way to write `data`, and is never stored.
fn default(secret: &mut Value) {
    fill_text(secret, "type", "Opaque");
    let Some(Value::Object(plain)) = remove(secret, "stringData") else { return };
    within(secret, "data", |data| {
        for (key, value) in plain {
            set(data, &key, STANDARD.encode(text(&value)));
        }
    });
}

/// What may not change is complained about first.
fn check(secret: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        secret.at("type").unchanged(&old["type"], errors);
        data::sealed(secret, old, &["data"], errors);
    }
    let data = secret.at("data");
    data::keys(&data, errors);
    if data::decoded_size(data.value) > MAX_BYTES {
        errors.push(data.too_long(MAX_BYTES));
    }
    promised(secret, errors);
}

/// What the type of a secret promises its readers.
fn promised(secret: &At<'_, '_>, errors: &mut Errors) {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let data = secret.at("data");
    let wanted: &[&str] = match secret.at("type").text() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" => {
            let either = ["username", "password"];
            if either.iter().all(|key| is_missing(&data, key)) {
                errors.extend(either.map(|key| data.entry(key).required("")));
            }
            return;
        }
        "kubernetes.io/service-account-token" => {
            secret.at("metadata.annotations").entry(ACCOUNT).require(errors);
            return;
        }
        _ => return,
    };
    for key in wanted {
        let entry = data.entry(key);
        if is_missing(&data, key) {
            errors.push(entry.required(""));
        } else if key.starts_with(".docker")
            && let Some(why) = not_an_object(entry.value)
        {
            errors.push(entry.invalid_value("<secret contents redacted>", &why));
        }
    }
}

/// A certificate and a key that do not belong together are stored all the same.
fn warnings(secret: &Value) -> Vec<String> {
    if secret["type"] != "kubernetes.io/tls" {
        return Vec::new();
    }
    let [certificate, key] = ["tls.crt", "tls.key"]
        .map(|name| STANDARD.decode(text(&secret["data"][name])).unwrap_or_default());
    key_pair::mistake(&certificate, &key).into_iter().collect()
}

/// Whether a key is not there; that of a key pair for SSH must also have a value.
fn is_missing(data: &At<'_, '_>, key: &str) -> bool {
    let empty = key == "ssh-privatekey" && data.entry(key).text().is_empty();
    data.value.get(key).is_none() || empty
}

/// Why a value is not the JSON object it should be, in Go's words.
fn not_an_object(encoded: &Value) -> Option<String> {
    let bytes = STANDARD.decode(text(encoded)).unwrap_or_default();
    go_json::mistake(&bytes, Shape::Object, "map[string]interface {}")
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("Type", "type", ""),
        Column::count("Data", |secret, _| len(&secret["data"]).into()).called_text(),
        age(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::field::messages;

    #[test]
    fn plain_text_of_a_secret_is_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "hello"}});
        RULES.fill_in(&mut secret);
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "eA==", "b": "aGVsbG8="}}));
    }

    #[test]
    fn the_type_of_a_secret_requires_keys_and_may_not_change() {
        let tls = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}});
        assert_eq!(messages(&RULES.validate_create(&tls)), ["data[tls.key]: Required value"]);
        let opaque = json!({"type": "Opaque"});
        assert_eq!(RULES.validate_update(&opaque, &json!({"type": "x"}))[0].field, "type");
    }

    #[test]
    fn a_pair_that_does_not_serve_is_warned_of_whenever_it_is_written() {
        let data = json!({"tls.crt": STANDARD.encode("a"), "tls.key": STANDARD.encode("b")});
        let mut secret = json!({"type": "kubernetes.io/tls", "data": data});
        let warning = "tls: failed to find any PEM data in certificate input";
        assert_eq!(RULES.warnings(&secret, None), [warning]);
        assert_eq!(RULES.warnings(&secret, Some(&secret)), [warning]);
        secret["type"] = json!("Opaque");
        assert_eq!(RULES.warnings(&secret, None), [""; 0]);
    }

    #[test]
    fn what_is_no_configuration_of_docker_is_told_as_go_tells_it() {
        let unfit = "into Go value of type map[string]interface {}";
        for (text, why) in [
            ("[]", &*format!("json: cannot unmarshal array {unfit}")),
            ("7", &*format!("json: cannot unmarshal number {unfit}")),
            ("{\"a\":", "unexpected end of JSON input"),
            ("", "unexpected end of JSON input"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ] {
            let data = json!({".dockerconfigjson": STANDARD.encode(text)});
            let secret = json!({"type": "kubernetes.io/dockerconfigjson", "data": data});
            let place = "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\"";
            let told = messages(&RULES.validate_create(&secret));
            assert_eq!(told, [format!("{place}: {why}")], "{text}");
        }
    }
}
