//! The names a definition claims, and whether they are free.

use serde_json::Value;
use steersman_rules::metadata;

use crate::registry::Table;

/// The first name that another resource of the group has: the condition's reason and message.
pub(super) fn conflict(table: &Table, definition: &Value) -> Option<(&'static str, String)> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = spec["group"].as_str().unwrap_or("");
    let text = |field: &str| names[field].as_str().unwrap_or("");
    let others = || table.others_in_group(group, metadata::text(definition, "name"));
    let taken = |name: &str| {
        others().any(|other| {
            other.plural == name
                || other.singular == name
                || other.short_names.iter().any(|s| s == name)
        })
    };
    let taken_kind =
        |kind: &str| others().any(|other| other.kind == kind || other.list_kind == kind);
    let short_names =
        names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let found = if taken(text("plural")) {
        ("PluralConflict", text("plural"))
    } else if taken(text("singular")) {
        ("SingularConflict", text("singular"))
    } else if let Some(short) = short_names.into_iter().find(|name| taken(name)) {
        ("ShortNamesConflict", short)
    } else if taken_kind(text("kind")) {
        ("KindConflict", text("kind"))
    } else if taken_kind(text("listKind")) {
        ("ListKindConflict", text("listKind"))
    } else {
        return None;
    };
    Some((found.0, format!("{:?} is already in use", found.1)))
}
