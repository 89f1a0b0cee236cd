//! Bodies as JSON and as YAML.

use serde_json::Value;
use steersman_rules::body::{json, syntax, yaml};

use crate::text::schema_of;

/// A JSON body, read with and without a schema.
pub(crate) fn json(bytes: &[u8]) {
    let _ = json::operations(bytes);
    let (document, _) = match json::plain(bytes) {
        Ok(read) => read,
        Err(error) => {
            let complaint = syntax::complaint(bytes, &error);
            assert!(!complaint.is_empty(), "a complaint says something");
            return;
        }
    };
    let written = document.to_string();
    let again = json::plain(written.as_bytes()).expect("what is written can be read");
    assert_eq!(again, (document.clone(), Vec::new()), "what is written is read as it was");
    let schema = schema_of(&document);
    if let Ok((read, findings)) = json::read(bytes, &schema) {
        let text = read.to_string();
        let (again, _) = json::read(text.as_bytes(), &schema).expect("it was read before");
        assert_eq!(again, read, "what a schema left is left again");
        findings.iter().for_each(|finding| drop(finding.to_string()));
    }
}

/// A YAML body.
pub(crate) fn yaml(bytes: &[u8]) {
    let _ = yaml::repeated(bytes);
    let document: Value = match yaml::read(bytes) {
        Ok(document) => document,
        Err(error) => return drop(yaml::complaint(bytes, &error)),
    };
    let written = document.to_string();
    // JSON is YAML.
    if let Ok(again) = yaml::read(written.as_bytes()) {
        assert_eq!(again, document, "JSON is read as YAML as it was written");
    }
}
