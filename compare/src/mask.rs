//! What two servers cannot have in common: uids, versions, the present time, what is allocated
//! or generated. Each becomes a word of the same meaning; what only looks alike stays.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// The words by which one server's answers become comparable.
#[derive(Clone, Debug)]
pub(crate) struct Masks {
    /// What this run names its objects after.
    pub(crate) run: String,
    /// The server's host and port.
    pub(crate) address: String,
}

/// Patterns of texts, each with the word that stands for them.
pub(crate) struct Words(Vec<(Regex, &'static str)>);

impl Words {
    pub(crate) fn of(words: &[(&str, &'static str)]) -> Self {
        let pattern = |text| Regex::new(text).expect("it is a pattern");
        Self(words.iter().map(|(text, word)| (pattern(text), *word)).collect())
    }

    /// The text with the words in it.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (pattern, word) in &self.0 {
            if pattern.is_match(&masked) {
                masked = pattern.replace_all(&masked, *word).into_owned();
            }
        }
        masked
    }
}

/// The prefix of every generated name in the corpus.
pub(crate) const GENERATED: &str = "gen-";

/// Texts, by pattern. The corpus names no time after 2025, so that later ones are the servers'.
static TEXTS: LazyLock<Words> = LazyLock::new(|| {
    Words::of(&[
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "MICROTIME"),
        (r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "NANOTIME"),
        (r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \+0000 UTC(?: m=\S+)?", "TIME"),
        (r"(gen-|kube-api-access-)[a-z0-9]{5}\b", "${1}NAME"),
        (r"(Too large resource version: \d+, current: )\d+", "${1}RV"),
        (r"(too old resource version: \d+ \()\d+", "${1}RV"),
        (r"((?i:resource ?version)(?: in [a-z ]+)?:? )[1-9]\d*", "${1}RV"),
        (r"\bhash=[0-9A-Fa-f]{32,}", "hash=HASH"),
        (r"(in record \()\d+", "${1}RV"),
        (r"(ResourceVersion in the precondition \()\d{2,}", "${1}RV"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "JWT"),
        (r"\(0x[0-9a-f]{6,}\)", "(POINTER)"),
        (r"\bselfType[\w.@]*", "SELF"),
    ])
});

/// A value that an error quotes.
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"Invalid value: ("\{(?:[^"\\]|\\.)*")"#).ok());

/// A cell of a table that tells an age.
static AGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:\d+(?:ms|s|m|h|d))+(?: ago)?$").ok());

impl Masks {
    /// Masks what stands in a text.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut masked = self.quoted(text);
        for (made_up, word) in [(&self.address, "HOST"), (&self.run, "RUN")] {
            if !made_up.is_empty() {
                masked = masked.replace(made_up, word);
            }
        }
        if !masked.bytes().any(|byte| byte.is_ascii_digit() || byte == b'-') {
            return masked;
        }
        TEXTS.mask(&masked)
    }

    /// Masks the value of a header. Tags and times of documents are whatever a server likes, as
    /// long as they change with the document.
    pub(crate) fn header(&self, name: &str, value: &str) -> String {
        match name {
            "etag" if value.starts_with('"') && value.ends_with('"') => "\"ETAG\"".to_owned(),
            "last-modified" | "expires" if value.ends_with(" GMT") => "TIME".to_owned(),
            _ => self.text(value),
        }
    }

    /// Masks the documents that errors quote; the order of their keys does not count. Who owns
    /// them and their status is compared where they are read: controllers of the other server
    /// write to some of them at any time.
    fn quoted(&self, text: &str) -> String {
        let Some(quoted) = QUOTED.as_ref().filter(|_| text.contains("Invalid value: \"{")) else {
            return text.to_owned();
        };
        let masked = quoted.replace_all(text, |found: &regex::Captures<'_>| {
            let document = serde_json::from_str::<String>(&found[1])
                .and_then(|text| serde_json::from_str::<Value>(&text));
            match document {
                Ok(mut document) => {
                    if let Some(metadata) = document["metadata"].as_object_mut() {
                        metadata.remove("managedFields");
                    }
                    if document["status"].is_object() {
                        document["status"] = "STATUS".into();
                    }
                    self.document(&mut document);
                    format!("Invalid value: {:?}", document.to_string())
                }
                Err(_) => found[0].to_owned(),
            }
        });
        masked.into_owned()
    }

    /// Masks a document.
    pub(crate) fn document(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.document(item)),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    if name == "managedFields" {
                        in_no_order_of_time(value);
                    }
                    if !mask_field(name, value) {
                        self.document(value);
                    }
                }
                let masked = std::mem::take(fields).into_iter();
                *fields = masked.map(|(name, value)| (self.text(&name), value)).collect();
            }
            _ => {}
        }
    }
}

/// Removes from a document about everything what runs have made, this one or another.
pub(crate) fn without_runs(value: &mut Value) {
    let of_a_run = |text: &str| text.contains(".example.com");
    match value {
        Value::Array(items) => {
            items.retain(|item| {
                let item = item.pointer("/metadata/name").unwrap_or(&item["name"]);
                !item.as_str().is_some_and(of_a_run)
            });
            items.iter_mut().for_each(without_runs);
        }
        Value::Object(fields) => {
            fields.retain(|name, _| !of_a_run(name));
            fields.values_mut().for_each(without_runs);
        }
        _ => {}
    }
}

/// Managers stand in the order of the seconds in which they wrote, appliers before updaters: two
/// that one server heard in the same second may have met another server in two.
fn in_no_order_of_time(managers: &mut Value) {
    let Some(managers) = managers.as_array_mut() else { return };
    for alike in managers.chunk_by_mut(|one, next| one["operation"] == next["operation"]) {
        alike.sort_by_key(|manager| {
            let text = |field: &str| manager[field].as_str().unwrap_or_default().to_owned();
            ["manager", "subresource", "apiVersion"].map(text)
        });
    }
}

/// Masks a field whose name says that the server makes it up; whether it did.
fn mask_field(name: &str, value: &mut Value) -> bool {
    let word = match name {
        "resourceVersion" if is_version(value) => "RV",
        "continue" if is_text(value) => "CONTINUE",
        "clusterIP" if is_address(value) => "CLUSTER-IP",
        "nodePort" | "healthCheckNodePort" if value.as_i64().is_some_and(|port| port > 0) => "PORT",
        "clusterIPs" => {
            for address in value.as_array_mut().into_iter().flatten() {
                if is_address(address) {
                    *address = "CLUSTER-IP".into();
                }
            }
            return true;
        }
        "cells" => {
            for cell in value.as_array_mut().into_iter().flatten() {
                if is_age(cell) {
                    *cell = "AGE".into();
                } else if is_address(cell) {
                    *cell = "CLUSTER-IP".into();
                }
            }
            return false;
        }
        _ => return false,
    };
    *value = word.into();
    true
}

/// Whether a version is one that a server gave: zero and nothing are not.
fn is_version(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    !text.is_empty() && text != "0" && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_address(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok())
}

fn is_age(value: &Value) -> bool {
    let age = AGE.as_ref();
    value.as_str().zip(age).is_some_and(|(text, age)| age.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn masks() -> Masks {
        Masks { run: "abcde".into(), address: "127.0.0.1:6443".into() }
    }

    #[test]
    fn what_a_server_makes_up_is_masked_and_nothing_else() {
        let mut document = json!({
            "metadata": {
                "uid": "0f8fad5b-d9cb-469f-a165-70867728950e",
                "resourceVersion": "77",
                "creationTimestamp": "2026-11-15T21:00:00Z",
                "name": "gen-x7k2p",
                "namespace": "cmp-abcde-pods",
                "annotations": {"at": "2025-01-01T00:00:00Z", "version": "77"},
            },
            "spec": {"clusterIP": "10.96.3.4", "clusterIPs": ["10.96.3.4", "None"], "ports": [
                {"port": 80, "nodePort": 30123}, {"port": 81, "nodePort": 0},
            ]},
        });
        masks().document(&mut document);
        assert_eq!(
            document,
            json!({
                "metadata": {
                    "uid": "UID",
                    "resourceVersion": "RV",
                    "creationTimestamp": "TIME",
                    "name": "gen-NAME",
                    "namespace": "cmp-RUN-pods",
                    "annotations": {"at": "2025-01-01T00:00:00Z", "version": "77"},
                },
                "spec": {"clusterIP": "CLUSTER-IP", "clusterIPs": ["CLUSTER-IP", "None"], "ports": [
                    {"port": 80, "nodePort": "PORT"}, {"port": 81, "nodePort": 0},
                ]},
            })
        );
    }

    #[test]
    fn a_version_that_no_server_gave_is_compared() {
        for version in ["", "0", "abc"] {
            let mut document = json!({"resourceVersion": version});
            masks().document(&mut document);
            assert_eq!(document["resourceVersion"], version);
        }
    }

    #[test]
    fn versions_and_times_within_messages_are_masked() {
        let cases = [
            (
                "Too large resource version: 9, current: 3",
                "Too large resource version: RV, current: RV",
            ),
            (
                "ResourceVersion in precondition: 5, ResourceVersion in object meta: 77",
                "ResourceVersion in precondition: RV, ResourceVersion in object meta: RV",
            ),
            ("at 127.0.0.1:6443", "at HOST"),
            ("must be between 1 and 65535, inclusive", "must be between 1 and 65535, inclusive"),
            ("2026-11-15T21:00:00.123456Z", "MICROTIME"),
        ];
        for (text, masked) in cases {
            assert_eq!(masks().text(text), masked);
        }
    }

    #[test]
    fn documents_that_errors_quote_are_masked_too() {
        let text =
            r#"patch: Invalid value: "{\"metadata\":{\"resourceVersion\":\"7\"},\"a\":1}": no"#;
        let masked =
            r#"patch: Invalid value: "{\"a\":1,\"metadata\":{\"resourceVersion\":\"RV\"}}": no"#;
        assert_eq!(masks().text(text), masked);
    }

    #[test]
    fn what_runs_made_is_left_out_of_documents_about_everything() {
        let mut document = json!({
            "groups": [{"name": "apps"}, {"name": "create-zqabcd.example.com"}],
            "paths": {"/apis/apps": {}, "/apis/create-zqabcd.example.com": {}},
        });
        without_runs(&mut document);
        assert_eq!(document, json!({"groups": [{"name": "apps"}], "paths": {"/apis/apps": {}}}));
    }

    #[test]
    fn the_order_of_managers_by_time_does_not_count_but_appliers_come_first() {
        let manager =
            |name: &str, operation: &str| json!({"manager": name, "operation": operation});
        let [a, b, c] = [("a", "Apply"), ("b", "Apply"), ("c", "Update")];
        let [a, b, c] = [a, b, c].map(|(name, operation)| manager(name, operation));
        for (managers, masked) in [([&b, &a, &c], [&a, &b, &c]), ([&c, &b, &a], [&c, &a, &b])] {
            let mut document = json!({"metadata": {"managedFields": managers}});
            masks().document(&mut document);
            assert_eq!(document["metadata"]["managedFields"], json!(masked));
        }
    }

    #[test]
    fn tags_and_times_of_documents_are_masked_in_headers() {
        for (name, value, masked) in [
            ("etag", "\"276DB9A3\"", "\"ETAG\""),
            ("etag", "276DB9A3", "276DB9A3"),
            ("last-modified", "Mon, 16 Nov 2026 00:31:06 GMT", "TIME"),
            ("warning", "299 - \"odd\"", "299 - \"odd\""),
        ] {
            assert_eq!(masks().header(name, value), masked);
        }
    }

    #[test]
    fn ages_in_tables_are_masked() {
        let mut row = json!({"cells": ["web", "5s", "2m3s", 5, "<unknown>", "5"]});
        masks().document(&mut row);
        assert_eq!(row["cells"], json!(["web", "AGE", "AGE", 5, "<unknown>", "5"]));
    }
}
