//! The columns that kinds with a pod template share.

use jiff::Timestamp;
use serde_json::Value;

use super::Column;
use super::cells::{joined, number, selector};

/// What `-o wide` shows of the template.
pub(crate) fn containers() -> [Column; 2] {
    [
        Column::text("Containers", |object, _| joined(containers_of(object), "name").into()),
        Column::text("Images", |object, _| joined(containers_of(object), "image").into()),
    ]
    .map(Column::wide)
}

/// What `-o wide` shows of the template, and of the selector of its pods.
pub(crate) fn containers_and_selector() -> [Column; 3] {
    let [names, images] = containers();
    let show = |object: &Value, _: Timestamp| selector(&object["spec"]["selector"]).into();
    [names, images, Column::text("Selector", show).wide()]
}

/// The containers of the template, wherever a kind keeps it.
pub(crate) fn containers_of(object: &Value) -> &Value {
    let job = &object["spec"]["jobTemplate"]["spec"]["template"];
    let own = &object["spec"]["template"];
    let template = [job, own, &object["template"]].into_iter().find(|t| !t.is_null());
    template.map_or(&Value::Null, |template| &template["spec"]["containers"])
}

/// How many pods are ready of those that are wanted, as `1/3`.
pub(crate) fn ready_of_wanted(object: &Value, _: Timestamp) -> Value {
    let ready = number(&object["status"]["readyReplicas"]);
    format!("{ready}/{}", number(&object["spec"]["replicas"])).into()
}
