//! What is valid but hardly meant: formats that mean nothing, and finalizers that others may have,
//! too.

use std::collections::HashSet;

use serde_json::Value;

use super::resources::versions_of;
use crate::names;
use crate::rules::document::items;
use crate::schema::is_known_format;

/// The finalizers that are Kubernetes' own.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// Formats in the schemas of a definition that nobody checks; those that were there before are not
/// told again.
pub(super) fn of_definition(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let before: HashSet<&str> = old.into_iter().flat_map(unknown_formats).collect();
    let new = unknown_formats(definition).into_iter().filter(|format| !before.contains(format));
    new.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unknown_formats(definition: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for version in versions_of(definition) {
        formats_in(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn formats_in<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    if !schema.is_object() {
        return;
    }
    let format = schema["format"].as_str().unwrap_or("");
    if !format.is_empty() && !is_known_format(schema["type"].as_str().unwrap_or(""), format) {
        found.push(format);
    }
    formats_in(&schema["items"], found);
    for key in ["allOf", "anyOf", "oneOf"] {
        items(&schema[key]).iter().for_each(|part| formats_in(part, found));
    }
    formats_in(&schema["not"], found);
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.for_each(|(_, property)| formats_in(property, found));
    formats_in(&schema["additionalProperties"], found);
}

/// Finalizers that an instance did not have before and whose names anybody may choose.
pub(super) fn of_instance(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map_or(&[][..], |old| items(&old["metadata"]["finalizers"]));
    let added = items(&object["metadata"]["finalizers"]).iter();
    let added = added.filter(|finalizer| !before.contains(finalizer)).filter_map(Value::as_str);
    let mut added: Vec<&str> = added.collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().flat_map(of_finalizer).collect()
}

fn of_finalizer(name: &str) -> Vec<String> {
    const OTHERS: &str = "to avoid accidental conflicts with other finalizer writers";
    let told = |why: &str| format!("metadata.finalizers: {name:?}: {why}");
    let mut found: Vec<String> = names::qualified_name(name).iter().map(|why| told(why)).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        found.push(told(&format!("prefer a domain-qualified finalizer name{path} {OTHERS}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{of_definition, of_instance};

    #[test]
    fn formats_that_nobody_checks_are_told_when_they_are_new() {
        let definition = |format: &str| {
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {
                "a": {"type": "string", "format": format},
                "b": {"type": "integer", "format": "int32"},
                "c": {"type": "string", "format": "date-time"},
                "d": {"type": "array", "items": {"type": "integer", "format": "uint8"}},
            }}}}]}})
        };
        let new = definition("colour");
        assert_eq!(
            of_definition(&new, None),
            ["unrecognized format \"colour\"", "unrecognized format \"uint8\""]
        );
        assert_eq!(
            of_definition(&new, Some(&definition("uri"))),
            ["unrecognized format \"colour\""]
        );
    }

    #[test]
    fn finalizers_without_a_domain_are_told_when_they_are_new() {
        let of = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        let object = of(json!(["orphan", "hold", "hold.example.com", "example.com/hold", "old"]));
        assert_eq!(
            of_instance(&object, Some(&of(json!(["old"])))),
            [
                "metadata.finalizers: \"hold\": prefer a domain-qualified finalizer name to avoid \
                 accidental conflicts with other finalizer writers",
                "metadata.finalizers: \"hold.example.com\": prefer a domain-qualified finalizer \
                 name including a path (/) to avoid accidental conflicts with other finalizer \
                 writers",
            ]
        );
    }
}
