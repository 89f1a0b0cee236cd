//! Whether the priority level of a flow schema is there: its condition `Dangling`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::apply::{Apply, apply};
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};

use super::{CONSUMER, Kinds, writer};
use crate::document::Stored;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::versions::Served;
use crate::write::{Writer, change};

/// Tells of every schema whether it is dangling, where that is not told yet.
pub(crate) async fn tell_whether_dangling(server: &Arc<Server>) -> Result<()> {
    let kinds = Kinds::of(server)?;
    let found = kinds.read(server).await?;
    let (mut levels, mut schemas) = (HashSet::new(), Vec::new());
    for entry in found.values() {
        let object = Stored::from(entry).decode_as_stored()?;
        match object["kind"].as_str() {
            Some("FlowSchema") => schemas.push(object),
            _ => _ = levels.insert(metadata::text(&object, "name").to_owned()),
        }
    }
    // In the order of their names, whatever the order of the map.
    schemas.sort_by_cached_key(|schema| metadata::text(schema, "name").to_owned());
    for schema in schemas {
        let is_there = levels.contains(level(&schema));
        if !says(&schema, is_there) {
            tell(server, &kinds.schemas, metadata::text(&schema, "name"), is_there).await?;
        }
    }
    Ok(())
}

async fn tell(server: &Arc<Server>, resource: &Resource, name: &str, is_there: bool) -> Result<()> {
    let manager = CONSUMER.to_owned();
    let writer = Writer { manager, subresource: "status", ..writer(server, resource) };
    let told = change::change(&writer, Place { namespace: "", name }, |old| {
        if says(old, is_there) {
            return Ok(old.clone());
        }
        apply(Apply {
            live: Some(old),
            applied: &json!({
                "apiVersion": writer.api_version, "kind": "FlowSchema", "metadata": {"name": name},
                "status": {"conditions": [dangling(old, is_there, &writer.now)]},
            }),
            manager: &writer.manager,
            force: true,
            subresource: writer.subresource,
            api_version: &writer.api_version,
            now: &writer.now,
            schema: &writer.resource.schema,
            versions: &Served::of(&writer),
            resets: writer.resets(),
        })
        .map_err(Status::from)
    });
    match told.await {
        // Gone this very moment.
        Err(status) if status.code == 404 => Ok(()),
        told => told.map(drop),
    }
}

/// Whether a schema says of its level whether it is there.
fn says(schema: &Value, is_there: bool) -> bool {
    let wanted = dangling(schema, is_there, "");
    let same = |said: &Value| ["status", "reason", "message"].iter().all(|f| said[f] == wanted[f]);
    conditions(schema).any(|said| said["type"] == "Dangling" && same(said))
}

/// The condition of a schema.
pub(super) fn dangling(schema: &Value, is_there: bool, now: &str) -> Value {
    let level = level(schema);
    let (status, reason, rest) = if is_there {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    json!({
        "type": "Dangling", "status": status, "lastTransitionTime": now, "reason": reason,
        "message": format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}"
        ),
    })
}

fn level(schema: &Value) -> &str {
    schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or("")
}

fn conditions(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["status"]["conditions"].as_array().into_iter().flatten()
}
