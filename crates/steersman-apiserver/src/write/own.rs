//! Objects that the server itself keeps: made where they are missing, put right where they differ.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Place;

use super::create::create_object;
use super::{Tracking, Writer, change};
use crate::state::Server;
use crate::status::{Result, Status};

/// Creates an object that is not there.
pub(crate) async fn ensure(
    server: &Arc<Server>,
    path: [&str; 3],
    namespace: &str,
    name: &str,
    object: impl FnOnce() -> Value,
) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = path;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    if server.known(&resource.key(Place { namespace, name })).await?.is_some() {
        return Ok(());
    }
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    match create_object(&writer, namespace, object(), Tracking::Record).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

/// Creates an object, in the namespace `default` if its kind lives in one, and puts it right.
pub(crate) async fn keep(
    server: &Arc<Server>,
    path: [&str; 3],
    wanted: Value,
    put_right: impl Fn(&mut Value, &Value) + Send + Sync,
) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = path;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    let namespace = if resource.namespaced { "default" } else { "" };
    let name = metadata::text(&wanted, "name");
    ensure(server, path, namespace, name, || wanted.clone()).await?;
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let kept = change::change(&writer, Place { namespace, name }, |old| {
        let mut new = old.clone();
        put_right(&mut new, &wanted);
        if new != *old {
            writer.track(Some(old), &mut new);
        }
        Ok(new)
    });
    match kept.await {
        // Deleted this very moment: next time it is made anew.
        Err(status) if status.code == 404 => Ok(()),
        kept => kept.map(drop),
    }
}

/// Changes an object that is there, in what the server itself notes on it.
pub(crate) async fn amend(
    server: &Arc<Server>,
    path: [&str; 3],
    place: Place<'_>,
    note: impl Fn(&mut Value) + Send + Sync,
) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = path;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let amended = change::change(&writer, place, |old| {
        let mut new = old.clone();
        note(&mut new);
        if new != *old {
            writer.track(Some(old), &mut new);
        }
        Ok(new)
    });
    amended.await.map(drop)
}
