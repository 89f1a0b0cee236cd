//! The priority levels and flow schemas that every cluster has, kept as Kubernetes keeps them, and
//! what the server says about schemas.
//!
//! [`reconcile`] runs at every start and whenever such an object changes. What is missing is made.
//! What is mandatory is put right; what is suggested is, too, as long as its annotation
//! `apf.kubernetes.io/autoupdate-spec` is `true`, or says nothing and nobody changed the object.
//! What is annotated so and no longer among the suggested goes.

mod conditions;
mod fresh;
mod revise;

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use steersman_store::{Entry, Expected, Key, RangeRequest, StoreError, WriteRequest};

use crate::document::Stored;
use crate::fairness::defaults;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};
pub(crate) use conditions::tell_whether_dangling;

/// The group of both kinds.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Who owns what the server makes.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

/// Who owns what it says about schemas.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// How often others may write the same at the same time.
const ATTEMPTS: usize = 10;

/// Brings levels and schemas into the store. Over a store that has them, it only reads.
pub(crate) async fn reconcile(server: &Arc<Server>) -> Result<()> {
    let kinds = Kinds::of(server)?;
    for _ in 0..ATTEMPTS {
        if attempt(server, &kinds).await? {
            return Ok(());
        }
    }
    Err(Status::internal("flow schemas and priority levels are changed by others all the time"))
}

/// Makes and mends what it can; false, if something has to be looked at again.
async fn attempt(server: &Arc<Server>, kinds: &Kinds) -> Result<bool> {
    let mut found = kinds.read(server).await?;
    let mut missing = Vec::new();
    let mut settled = true;
    let levels = defaults::levels().into_iter().map(|level| (level, &kinds.levels));
    let schemas = defaults::schemas().into_iter().map(|schema| (schema, &kinds.schemas));
    for (wanted, resource) in levels.chain(schemas) {
        let key = resource.key(Place { namespace: "", name: metadata::text(&wanted, "name") });
        match found.remove(&*key) {
            None => {
                let bytes = fresh::document(server, resource, wanted)?;
                missing.push(WriteRequest::put(key, bytes, Expected::Absent));
            }
            Some(entry) => settled &= mend(server, resource, &wanted, &entry).await?,
        }
    }
    // All at once, so that a disk is synced for many of them, and etcd need not be waited for.
    for written in join_all(missing.into_iter().map(|new| server.store.write(new))).await {
        match written {
            Ok(_) => {}
            Err(StoreError::Conflict { .. } | StoreError::Unknown { .. }) => settled = false,
            Err(error) => return Err(error.into()),
        }
    }
    for entry in found.values() {
        remove_unwanted(server, kinds, entry).await?;
    }
    Ok(settled)
}

/// Puts an object right; false, if somebody else has changed it meanwhile.
async fn mend(
    server: &Arc<Server>,
    resource: &Resource,
    wanted: &Value,
    entry: &Entry,
) -> Result<bool> {
    let object = Stored::from(entry).decode_as_stored()?;
    if revise::revised(wanted, &object).is_none() {
        return Ok(true);
    }
    let writer = writer(server, resource);
    let place = Place { namespace: "", name: metadata::text(wanted, "name") };
    let mended = change::change(&writer, place, |old| {
        let Some(mut new) = revise::revised(wanted, old) else { return Ok(old.clone()) };
        writer.track(Some(old), &mut new);
        Ok(new)
    });
    match mended.await {
        Ok(_) => Ok(true),
        Err(status) if matches!(status.code, 404 | 409) => Ok(false),
        Err(status) => Err(status),
    }
}

/// Removes an object that was suggested once.
async fn remove_unwanted(server: &Arc<Server>, kinds: &Kinds, entry: &Entry) -> Result<()> {
    let object = Stored::from(entry).decode_as_stored()?;
    if object["metadata"]["annotations"][defaults::AUTO_UPDATE] != "true"
        || metadata::is_deleting(&object)
    {
        return Ok(());
    }
    let resource = if object["kind"] == "FlowSchema" { &kinds.schemas } else { &kinds.levels };
    let uid = Some(metadata::text(&object, "uid").to_owned());
    let options = DeleteOptions { uid, ..DeleteOptions::default() };
    let place = Place { namespace: "", name: metadata::text(&object, "name") };
    match delete_object(&writer(server, resource), place, &options).await {
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(()),
    }
}

fn writer<'a>(server: &'a Arc<Server>, resource: &'a Resource) -> Writer<'a> {
    let manager = PRODUCER.to_owned();
    Writer { trusted: true, manager, ..Writer::internal(server, resource) }
}

/// The two kinds.
struct Kinds {
    levels: Arc<Resource>,
    schemas: Arc<Resource>,
}

impl Kinds {
    fn of(server: &Server) -> Result<Self> {
        let table = server.registry.table();
        let get = |plural: &str| {
            table.get(GROUP, "v1", plural).cloned().ok_or_else(Status::no_such_resource)
        };
        Ok(Self { levels: get("prioritylevelconfigurations")?, schemas: get("flowschemas")? })
    }

    /// All objects of these kinds, by their keys.
    async fn read(&self, server: &Server) -> Result<HashMap<Key, Entry>> {
        let ranges = [&self.levels, &self.schemas].map(|kind| {
            let prefix = kind.prefix("");
            server.store.range(RangeRequest { prefix, ..RangeRequest::default() })
        });
        let read = try_join_all(ranges).await?;
        let entries = read.into_iter().flat_map(|range| range.entries);
        Ok(entries.map(|entry| (Key::clone(&entry.key), entry)).collect())
    }
}
