//! ControllerRevisions: what a set of pods was, kept to go back to.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::table::cells::{items, or_none, text};
use crate::table::{Column, age};

/// What is said of ControllerRevisions.
pub(super) const KIND: Kind = Kind {
    plural: "controllerrevisions",
    name: "ControllerRevision",
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules { check, ..Rules::NONE };

fn columns() -> Vec<Column> {
    vec![
        Column::text("Controller", controller),
        Column::number("Revision", "revision").called_text(),
        age(),
    ]
}

fn controller(object: &Value, _: Timestamp) -> Value {
    let owners = items(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return or_none("");
    };
    let group = text(&owner["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
    let kind = text(&owner["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text(&owner["name"])).into()
}

/// Data is only looked at when it is new: it never changes.
fn check(revision: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    revision.at("revision").not_negative(errors);
    let data = revision.at("data");
    if !old.is_null() {
        if old["data"] != *data.value {
            errors.push(data.invalid("field is immutable"));
        }
    } else if data.is_absent() {
        errors.push(data.required("data is mandatory"));
    } else if !data.value.is_object() {
        errors.push(data.required("data must be a valid JSON object"));
    }
}
