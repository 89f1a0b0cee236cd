//! API aggregation: which server answers for a group and version, as APIServices say.
//!
//! What this server serves itself has [local] APIServices. Others name a service; requests below
//! their paths are [passed on](proxy) to it, with the user in headers that are believed because of
//! this server's [certificate](front). A task for each [looks after it](keeper): whether it is
//! [available](availability), and what it [tells](learn) of itself, which discovery and OpenAPI show
//! from memory, so that a server that is gone delays nobody. Nobody looks after
//! [residents](crate::state::residents): they are there, and asked for documents when those are wanted.

mod availability;
mod conditions;
pub(crate) mod front;
mod headers;
mod keeper;
pub(crate) mod learn;
pub(crate) mod local;
pub(crate) mod proxy;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Resource;
use steersman_store::{Entry, Event, RangeRequest, Revision};

use crate::document::Stored;
use crate::state::Server;
use crate::state::effects::{Effects, Written};
use crate::state::remotes::Remote;
use crate::status::{Result, Status};
use crate::webhook_client::Target;

/// The group of APIServices.
const GROUP: &str = "apiregistration.k8s.io";

/// The label that says how long the server looks after an APIService.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Where APIServices are stored.
pub(crate) fn folder() -> String {
    format!("/registry/{GROUP}/apiservices/")
}

/// The kind itself; a server that only extends another has none.
fn resource(server: &Server) -> Result<Arc<Resource>> {
    let table = server.registry.table();
    table.get(GROUP, "v1", "apiservices").cloned().ok_or_else(Status::no_such_resource)
}

/// What the writes of APIServices mean to the server.
pub(crate) struct ApiServices;

impl Effects for ApiServices {
    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Written { server, object, revision, gone, .. } = written;
            let name = metadata::text(object, "name");
            if gone {
                server.remotes.remove(name, revision);
            } else {
                take_in(server, object, revision).await;
                if object["spec"]["service"].is_null() {
                    conditions::tell_local(server, object).await;
                }
            }
            // What belongs to a definition comes back, and stays as it was.
            if let Some((version, group)) = name.split_once('.') {
                let custom = server.registry.table().resources().any(|resource| {
                    resource.is_custom() && resource.group == group && resource.version == version
                });
                if custom {
                    local::follow_definition(server, group, &[version]).await;
                }
            }
        })
    }
}

/// Follows a write of whatever server.
pub(crate) async fn followed(server: &Arc<Server>, event: &Event) {
    match &event.current {
        Some(entry) => take_in_entry(server, entry).await,
        None => server.remotes.remove(name(&event.key), event.revision),
    }
}

/// Takes in all that is stored, and says of which revision that is.
pub(crate) async fn load(server: &Arc<Server>) -> Result<Revision> {
    let request = RangeRequest { prefix: folder(), ..RangeRequest::default() };
    let state = server.store.range(request).await?;
    for gone in server.remotes.table().keys() {
        if !state.entries.iter().any(|entry| name(&entry.key) == gone) {
            server.remotes.remove(gone, state.revision);
        }
    }
    for entry in &state.entries {
        take_in_entry(server, entry).await;
    }
    Ok(state.revision)
}

fn name(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

async fn take_in_entry(server: &Arc<Server>, entry: &Entry) {
    // Most are local, and need not be read for that to be known.
    let is_remote = entry.value.windows(10).any(|window| window == br#""service":"#);
    if !is_remote {
        server.remotes.remove(name(&entry.key), entry.modified);
        return;
    }
    match Stored::from(entry).decode_as_stored() {
        Ok(object) => take_in(server, &object, entry.modified).await,
        Err(error) => tracing::error!(%error, key = %entry.key, "cannot decode APIService"),
    }
}

/// Lets requests go where an APIService says. Older news change nothing.
async fn take_in(server: &Arc<Server>, object: &Value, revision: Revision) {
    let name = metadata::text(object, "name");
    let spec = &object["spec"];
    if spec["service"].is_null() {
        server.remotes.remove(name, revision);
        return;
    }
    let available = conditions::is_available(object);
    if server.remotes.knows(name, spec, available, revision) {
        return;
    }
    let target = Target::of_api_service(spec);
    if let Some(resident) = target
        .service
        .as_ref()
        .and_then(|service| server.residents.iter().find(|resident| resident.is(service)))
    {
        let remote = Remote::new(name, spec, target, revision);
        server.remotes.install(&Arc::new(remote.resident(resident.resources.clone())));
        conditions::tell_passed(server, object).await;
        return;
    }
    let identity = match front::identity(server).await {
        Ok(front) => Some(front.client.clone()),
        Err(error) => {
            tracing::warn!(%error, "cannot tell aggregated API servers who this server is");
            None
        }
    };
    let remote = Arc::new(Remote::new(name, spec, target.showing(identity), revision));
    remote.set_available(available);
    if server.remotes.install(&remote) {
        keeper::start(server, remote);
    }
}
