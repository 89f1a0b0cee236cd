//! `OwnerReferencesPermissionEnforcement`: who gives an object other owners must be allowed to
//! delete it, and who makes it block the deletion of an owner, to update that owner's finalizers.

use futures::future::{self, BoxFuture};
use serde_json::Value;

use super::fields::items;
use crate::admission_registration::Operation;
use crate::authz::{self, Target};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Lets nobody use the garbage collector for what they may not do themselves.
pub(super) struct OwnerReferencesPermissionEnforcement;

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        let is_status = write.subresource == "status" && write.resource.is("", "pods");
        write.operation != Operation::Delete && !is_status
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(future::ready(new.map_or(Ok(()), |new| check(write, new, old))))
    }
}

fn check(write: Attributes<'_>, new: &Value, old: Option<&Value>) -> Result<()> {
    let wanted = owners(new);
    let before = old.map_or(&[][..], owners);
    if wanted == before {
        return Ok(());
    }
    // Who creates an object need not have done so.
    if write.operation != Operation::Create
        && let Err(why) = may(write, "delete", own(&write))
    {
        let text = format!("cannot set an ownerRef on a resource you can't delete: {why}, <nil>");
        return Err(write.forbidden(new, &text));
    }
    let is_blocking = |owner: &&Value| owner["blockOwnerDeletion"] == true;
    let was_blocking = |owner: &Value| {
        // The last one of a uid counts.
        let same = before.iter().rev().find(|before| before["uid"] == owner["uid"]);
        same.as_ref().is_some_and(is_blocking)
    };
    let blocking: Vec<&Value> =
        wanted.iter().filter(is_blocking).filter(|owner| !was_blocking(owner)).collect();
    let anything = Target::Resource {
        group: "*",
        resource: "*",
        subresource: "finalizers",
        namespace: "",
        name: "*",
    };
    if blocking.is_empty() || may(write, "update", anything).is_ok() {
        return Ok(());
    }
    blocking.into_iter().try_for_each(|owner| check_owner(write, new, owner))
}

/// Refuses to block the deletion of an owner whose finalizers the user may not update.
fn check_owner(write: Attributes<'_>, new: &Value, owner: &Value) -> Result<()> {
    let text = |field: &str| owner[field].as_str().unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let table = write.server.registry.table();
    let named = |it: &&std::sync::Arc<_>| is_named(it, group, version, kind);
    let Some(resource) = table.resources().find(named) else {
        let why = format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
             APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version \
             {api_version:?}"
        );
        return Err(write.forbidden(new, &why));
    };
    let target = Target::Resource {
        group,
        resource: &resource.plural,
        subresource: "finalizers",
        namespace: if resource.namespaced { write.place.namespace } else { "" },
        name: text("name"),
    };
    may(write, "update", target).map_err(|why| {
        let text = format!(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
             set finalizers on: {why}, <nil>"
        );
        write.forbidden(new, &text)
    })
}

fn is_named(
    resource: &steersman_rules::resource::Resource,
    group: &str,
    version: &str,
    kind: &str,
) -> bool {
    &*resource.group == group && &*resource.version == version && &*resource.kind == kind
}

/// Whether the user may; else why not.
fn may(write: Attributes<'_>, verb: &str, target: Target<'_>) -> Result<(), String> {
    let asked = authz::Attributes::new(write.user, verb, target);
    let decision = write.server.authorizer.decide(&asked);
    if decision.allowed { Ok(()) } else { Err(decision.reason) }
}

/// What is written.
fn own<'a>(write: &Attributes<'a>) -> Target<'a> {
    Target::Resource {
        group: &write.resource.group,
        resource: &write.resource.plural,
        subresource: write.subresource,
        namespace: write.place.namespace,
        name: write.place.name,
    }
}

fn owners(object: &Value) -> &[Value] {
    items(&object["metadata"]["ownerReferences"])
}
