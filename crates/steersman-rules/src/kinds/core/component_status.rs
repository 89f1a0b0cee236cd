//! Component statuses, which Kubernetes keeps for old clients: whether a part of it is well.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::table::Column;
use crate::table::cells::{items, text};

/// What is said of `ComponentStatus`.
pub(super) const KIND: Kind = Kind {
    plural: "componentstatuses",
    name: "ComponentStatus",
    short_names: &["cs"],
    traits: &[Trait::ReadOnly],
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

fn columns() -> Vec<Column> {
    vec![
        Column::text("Status", status),
        Column::text("Message", |o, _| text(&healthy(o)["message"]).into()),
        Column::text("Error", |o, _| text(&healthy(o)["error"]).into()),
    ]
}

/// The one condition that the components of old have; null where they do not.
fn healthy(component: &Value) -> &Value {
    let conditions = items(&component["conditions"]).iter();
    conditions.into_iter().find(|c| c["type"] == "Healthy").unwrap_or(&Value::Null)
}

fn status(component: &Value, _: Timestamp) -> Value {
    match text(&healthy(component)["status"]) {
        "" => "Unknown".into(),
        "True" => "Healthy".into(),
        _ => "Unhealthy".into(),
    }
}
