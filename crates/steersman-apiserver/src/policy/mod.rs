//! The bootstrap policy: the roles and bindings that every cluster has, those of Kubernetes 1.36
//! with its features as they are by default.
//!
//! The policy is a table, by topic: what [everybody may know](discovery), what [people are
//! given](users), what [parts of a cluster](components) and its [controllers] need, also [where more is
//! served](on_request), and what is permitted [within a namespace](namespaced). [`reconcile`] brings it into the store
//! at every start, as kube-apiserver does: what is missing is made, what exists is given what it
//! lacks and keeps what it was given, and what is annotated with
//! `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

mod complete;
mod components;
mod controllers;
mod covered;
mod discovery;
mod fresh;
mod namespaced;
mod on_request;
mod rules;
mod users;
mod wanted;

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use steersman_store::{Entry, Expected, Key, RangeRequest, StoreError, WriteRequest};

use crate::document::Stored;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};
use complete::{AUTO_UPDATE, complete, has_another_role};
use fresh::Stamp;
use rules::RBAC;
use wanted::{Wanted, policy};

/// How often others may write the same at the same time, or the store may not say what it wrote.
const ATTEMPTS: usize = 10;

/// Brings the policy into the store. Over a store that has it, it only reads.
pub(crate) async fn reconcile(server: &Arc<Server>) -> Result<()> {
    let kinds = Kinds::of(server)?;
    for _ in 0..ATTEMPTS {
        if attempt(server, &kinds).await? {
            return Ok(());
        }
    }
    Err(Status::internal("the bootstrap policy is changed by others all the time"))
}

/// Makes and mends what it can; false, if something has to be looked at again.
async fn attempt(server: &Arc<Server>, kinds: &Kinds) -> Result<bool> {
    let found = kinds.read(server).await?;
    let now = server.now();
    let mut missing = Vec::new();
    let mut settled = true;
    let table = server.registry.table();
    let all: Vec<Wanted> = policy(&|group, version| table.serves(group, version)).collect();
    for wanted in all {
        let resource = kinds.resource(&wanted);
        let key = resource.key(Place { namespace: wanted.namespace(), name: wanted.name() });
        match found.get(&*key) {
            None => {
                let stamp = Stamp { uid: &server.random.uid(), now: &now };
                let bytes = fresh::document(&wanted, stamp);
                missing.push(WriteRequest::put(key, bytes, Expected::Absent));
            }
            Some(entry) if fresh::is_untouched(&wanted, &entry.value) => {}
            Some(entry) => settled &= mend(server, resource, &wanted, entry).await?,
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
    Ok(settled)
}

/// Gives an object what it lacks; false, if it has to be made anew.
async fn mend(
    server: &Arc<Server>,
    resource: &Resource,
    wanted: &Wanted,
    entry: &Entry,
) -> Result<bool> {
    let mut object = Stored::from(entry).decode_as_stored()?;
    let another = has_another_role(wanted, &object);
    if !another && !complete(wanted, &mut object) {
        return Ok(true);
    }
    let name = wanted.name();
    if object["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        let kind = wanted.kind();
        tracing::warn!(kind, name, "role or binding lacks permissions, and is not to be updated");
        return Ok(true);
    }
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let place = Place { namespace: wanted.namespace(), name };
    let mended = if another {
        // One that cannot go yet keeps its name; the next start looks again.
        if metadata::is_deleting(&object) {
            return Ok(true);
        }
        let uid = Some(metadata::text(&object, "uid").to_owned());
        let options = DeleteOptions { uid, ..DeleteOptions::default() };
        delete_object(&writer, place, &options).await.map(drop)
    } else {
        change::change(&writer, place, |old| Ok(completed(&writer, wanted, old))).await.map(drop)
    };
    match mended {
        Ok(()) => Ok(!another),
        // Somebody was faster.
        Err(status) if matches!(status.code, 404 | 409) => Ok(false),
        Err(status) => Err(status),
    }
}

fn completed(writer: &Writer<'_>, wanted: &Wanted, old: &Value) -> Value {
    let mut new = old.clone();
    if complete(wanted, &mut new) {
        writer.track(Some(old), &mut new);
    }
    new
}

/// The resources that the policy consists of.
struct Kinds {
    roles: [Arc<Resource>; 2],
    bindings: [Arc<Resource>; 2],
}

impl Kinds {
    fn of(server: &Server) -> Result<Self> {
        let table = server.registry.table();
        let get = |plural: &str| {
            table.get(RBAC, "v1", plural).cloned().ok_or_else(Status::no_such_resource)
        };
        Ok(Self {
            roles: [get("clusterroles")?, get("roles")?],
            bindings: [get("clusterrolebindings")?, get("rolebindings")?],
        })
    }

    fn resource(&self, wanted: &Wanted) -> &Resource {
        let namespaced = usize::from(!wanted.namespace().is_empty());
        match wanted {
            Wanted::Role(_) => &self.roles[namespaced],
            Wanted::Binding(_) => &self.bindings[namespaced],
        }
    }

    /// All objects of these kinds, by their keys.
    async fn read(&self, server: &Server) -> Result<HashMap<Key, Entry>> {
        let kinds = self.roles.iter().chain(&self.bindings);
        let ranges = kinds.map(|kind| {
            let prefix = kind.prefix("");
            server.store.range(RangeRequest { prefix, ..RangeRequest::default() })
        });
        let read = try_join_all(ranges).await?;
        let entries = read.into_iter().flat_map(|range| range.entries);
        Ok(entries.map(|entry| (Key::clone(&entry.key), entry)).collect())
    }
}

#[cfg(test)]
mod tests;
