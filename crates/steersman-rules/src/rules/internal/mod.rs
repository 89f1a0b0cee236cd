//! How errors show what has parts: as Go writes its internal types, under the names that their
//! fields have there, with everything that is not set. Of a large one that may not change there is
//! a diff.

mod unified;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use steersman_values::html_escaped;

const TABLE: &str = include_str!("types.txt");

/// The types by name.
static TYPES: LazyLock<HashMap<&str, Vec<Line>>> = LazyLock::new(|| {
    let mut types: HashMap<&str, Vec<Line>> = HashMap::new();
    let mut last = "";
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["type", name] => last = name,
            ["..", other] => types.entry(last).or_default().push(Line::Embedded(other, None)),
            ["..", other, key] => {
                types.entry(last).or_default().push(Line::Embedded(other, Some(key)));
            }
            [name, key, kind] => {
                types.entry(last).or_default().push(Line::Field { name, key, kind });
            }
            _ => {}
        }
    }
    types
});

enum Line {
    /// A field by its name in Go and in JSON.
    Field { name: &'static str, key: &'static str, kind: &'static str },
    /// The fields of another type, which may be under a name of their own in JSON.
    Embedded(&'static str, Option<&'static str>),
}

/// How much room what is written takes.
#[derive(Clone, Copy)]
enum Room {
    /// A line for each part, so far in.
    Lines(usize),
    /// No more than it needs.
    Line,
}

impl Room {
    /// Further in.
    fn inside(self) -> Self {
        match self {
            Self::Lines(depth) => Self::Lines(depth + 1),
            Self::Line => Self::Line,
        }
    }

    fn break_line(self, out: &mut String) {
        if let Self::Lines(depth) = self {
            out.push('\n');
            out.push_str(&" ".repeat(depth));
        }
    }
}

/// What differs between two specs of a pod, line by line.
pub(crate) fn pod_diff(old: &Value, new: &Value) -> String {
    diff("PodSpec", old, new)
}

/// A value of an internal type in one line.
pub fn shown(kind: &str, value: &Value) -> String {
    let mut text = String::new();
    write(kind, value, Room::Line, &mut text);
    text
}

/// What differs between two values of an internal type, line by line.
pub fn diff(kind: &str, old: &Value, new: &Value) -> String {
    let [old, new] = [old, new].map(|value| {
        let mut text = String::new();
        write(kind, value, Room::Lines(0), &mut text);
        text
    });
    unified::diff(&old, &new)
}

/// Internally, what a pod shares with its node belongs to its security context.
fn with_host_settings(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    let keys = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
    let told = keys.iter().filter_map(|key| fields.remove_entry(*key));
    let told: Map<String, Value> = told.filter(|(_, setting)| !setting.is_null()).collect();
    if told.is_empty() {
        return spec;
    }
    let context = fields.entry("securityContext").or_insert(Value::Null);
    if context.is_null() {
        *context = json!({});
    }
    if let Value::Object(context) = context {
        context.extend(told);
    }
    spec
}

fn write(kind: &str, value: &Value, room: Room, out: &mut String) {
    if let Some(kind) = kind.strip_prefix('*') {
        return if value.is_null() { out.push_str("null") } else { write(kind, value, room, out) };
    }
    if let Some(kind) = kind.strip_prefix("[]") {
        let Some(items) = value.as_array() else { return out.push_str("null") };
        let items = items.iter().map(|item| (None, kind, item));
        return block(['[', ']'], items.collect(), room, out);
    }
    if let Some(kind) = kind.strip_prefix("{}") {
        let Some(entries) = value.as_object() else { return out.push_str("null") };
        let mut entries: Vec<_> =
            entries.iter().map(|(key, value)| (Some(key.as_str()), kind, value)).collect();
        entries.sort_by_key(|(key, ..)| *key);
        return block(['{', '}'], entries, room, out);
    }
    match kind {
        "string" => out.push_str(&quoted(value.as_str().unwrap_or_default())),
        "quantity" => out.push_str(&quoted(value.as_str().unwrap_or("0"))),
        "bool" => out.push_str(if *value == true { "true" } else { "false" }),
        "int" | "intorstring" if value.is_null() => out.push('0'),
        "raw" if value.is_object() => {
            let mut fields: Vec<_> = value.as_object().into_iter().flatten().collect();
            // Of selectors, the labels come first.
            fields.sort_by_key(|(key, _)| (*key != "matchLabels", *key));
            let fields = fields.into_iter().map(|(key, value)| (Some(key.as_str()), "raw", value));
            block(['{', '}'], fields.collect(), room, out);
        }
        "raw" if value.is_array() => write("[]raw", value, room, out),
        "PodSpec" => {
            let spec = with_host_settings(value);
            block(['{', '}'], fields(kind, &spec), room, out);
        }
        name => match TYPES.get(name) {
            Some(_) => block(['{', '}'], fields(name, value), room, out),
            None => match value {
                Value::String(text) => out.push_str(&quoted(text)),
                other => out.push_str(&other.to_string()),
            },
        },
    }
}

type Part<'a> = (Option<&'a str>, &'a str, &'a Value);

/// The fields of a type, those of embedded types in their place.
fn fields<'a>(name: &str, value: &'a Value) -> Vec<Part<'a>> {
    let lines = TYPES.get(name).into_iter().flatten();
    let parts = lines.flat_map(|line| match line {
        Line::Field { name, key, kind } => match (kind.strip_prefix('?'), &value[*key]) {
            (Some(_), Value::Null) => Vec::new(),
            (Some(kind), value) => vec![(Some(*name), kind, value)],
            (None, value) => vec![(Some(*name), *kind, value)],
        },
        Line::Embedded(other, key) => fields(other, key.map_or(value, |key| &value[key])),
    });
    parts.collect()
}

/// What stands between brackets.
fn block([open, close]: [char; 2], parts: Vec<Part<'_>>, room: Room, out: &mut String) {
    out.push(open);
    let is_empty = parts.is_empty();
    for (index, (key, kind, value)) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        room.inside().break_line(out);
        if let Some(key) = key {
            out.push_str(&quoted(key));
            out.push_str(if matches!(room, Room::Line) { ":" } else { ": " });
        }
        write(kind, value, room.inside(), out);
    }
    if !is_empty {
        room.break_line(out);
    }
    out.push(close);
}

/// A text as Go writes it: safe to stand in HTML.
fn quoted(text: &str) -> String {
    html_escaped(&Value::from(text).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TYPES, diff, pod_diff, shown};

    #[test]
    fn every_type_in_the_table_is_known() {
        let scalars = ["string", "int", "bool", "bytes", "quantity", "intorstring", "raw"];
        for (name, lines) in TYPES.iter() {
            for line in lines {
                let (super::Line::Field { kind, .. } | super::Line::Embedded(kind, _)) = line;
                let base = kind.trim_start_matches(['?', '*', '[', ']', '{', '}']);
                assert!(scalars.contains(&base) || TYPES.contains_key(base), "{name}: {kind}");
            }
        }
    }

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let old = json!({"accessModes": ["ReadWriteOnce"], "resources": {}});
        let new = json!({"accessModes": ["ReadWriteOncePod", "ReadWriteMany"], "resources": {}});
        assert_eq!(
            diff("PersistentVolumeClaimSpec", &old, &new),
            "@@ -1,6 +1,7 @@\n {\n  \"AccessModes\": [\n-  \"ReadWriteOnce\"\n\
             +  \"ReadWriteOncePod\",\n+  \"ReadWriteMany\"\n  ],\n  \"Selector\": null,\n  \
             \"Resources\": {\n"
        );
    }

    #[test]
    fn what_a_pod_shares_with_its_node_is_in_its_security_context() {
        let old = json!({"securityContext": {}, "containers": [{"name": "a"}]});
        let new = json!({"securityContext": {}, "containers": [{"name": "a"}], "hostPID": true});
        let shown = pod_diff(&old, &new);
        assert!(shown.contains("\n-  \"HostPID\": false,\n+  \"HostPID\": true,\n"), "{shown}");
    }

    #[test]
    fn what_is_shown_in_one_line_has_the_metadata_of_the_api_itself() {
        let template = json!({
            "metadata": {"creationTimestamp": null, "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "<c>"}], "hostNetwork": true},
        });
        let shown = shown("*PodTemplateSpec", &template);
        let start = r#"{"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,"#;
        assert!(shown.starts_with(start), "{shown}");
        assert!(shown.contains(r#""Containers":[{"Name":"\u003cc\u003e","Image":"","#), "{shown}");
        assert!(shown.contains(r#""SecurityContext":{"HostNetwork":true,"#), "{shown}");
    }
}
