//! The APIServices of what this server serves itself. Those of built-in groups are made at each
//! start, with Kubernetes' priorities, and left alone afterwards; those of definitions follow their
//! definitions. Those of [residents](crate::state::residents) are made at each start as well.
//!
//! Thirty of them are written before the first request of every cluster, each once, with the
//! condition that would be added to it at once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use steersman_store::{Entry, Expected, RangeRequest, StoreError, WriteRequest};

use super::conditions::{LOCAL, PASSED};
use super::{GROUP, MANAGED, resource};
use crate::document::{self, Stored};
use crate::registry::Table;
use crate::state::Server;
use crate::state::residents::{Resident, is_of_resident};
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};

/// How often others may write the same at the same time.
const ATTEMPTS: usize = 10;

/// Where the groups of definitions stand, and their versions.
const OF_DEFINITIONS: (i64, i64) = (1000, 100);

/// The priorities of built-in groups and of their versions.
const PRIORITIES: &[(&str, &str, i64, i64)] = &[
    ("", "v1", 18000, 1),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("apps", "v1", 17800, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authentication.k8s.io", "v1alpha1", 17700, 1),
    ("authentication.k8s.io", "v1beta1", 17700, 9),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("certificates.k8s.io", "v1alpha1", 17300, 1),
    ("certificates.k8s.io", "v1beta1", 17300, 9),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("coordination.k8s.io", "v1alpha2", 16500, 12),
    ("coordination.k8s.io", "v1beta1", 16500, 13),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("networking.k8s.io", "v1", 17200, 15),
    ("networking.k8s.io", "v1beta1", 17200, 9),
    ("node.k8s.io", "v1", 16300, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1alpha3", 16200, 1),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("scheduling.k8s.io", "v1alpha2", 16600, 2),
    ("storage.k8s.io", "v1", 16800, 15),
    ("storage.k8s.io", "v1alpha1", 16800, 1),
    ("storage.k8s.io", "v1beta1", 16800, 9),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
];

/// How long an APIService is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Management {
    /// When a server starts.
    OnStart,
    /// Always.
    Continuous,
}

impl Management {
    /// The value of the label that says so.
    fn label(self) -> &'static str {
        match self {
            Self::OnStart => "onstart",
            Self::Continuous => "true",
        }
    }

    fn of(object: &Value) -> Option<Self> {
        let label = object["metadata"]["labels"][MANAGED].as_str()?;
        [Self::OnStart, Self::Continuous].into_iter().find(|managed| managed.label() == label)
    }
}

/// An APIService that there should be.
#[derive(Clone, Debug)]
struct Wanted {
    group: String,
    version: String,
    priorities: (i64, i64),
    /// Nobody looks after those that lead elsewhere.
    managed: Option<Management>,
    /// The service that it leads to, if to any.
    service: Option<Value>,
}

impl Wanted {
    fn of_definition(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            priorities: OF_DEFINITIONS,
            managed: Some(Management::Continuous),
            service: None,
        }
    }

    fn of_resident(resident: &Resident) -> Self {
        Self {
            group: resident.group.clone(),
            version: resident.version.clone(),
            priorities: resident.priorities,
            managed: None,
            service: Some(resident.service()),
        }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    fn spec(&self) -> Value {
        let (group_priority, version_priority) = self.priorities;
        let mut spec = json!({
            "groupPriorityMinimum": group_priority,
            "version": self.version,
            "versionPriority": version_priority,
        });
        if !self.group.is_empty() {
            spec["group"] = self.group.as_str().into();
        }
        if let Some(service) = &self.service {
            spec["insecureSkipTLSVerify"] = true.into();
            spec["service"] = service.clone();
        }
        spec
    }

    /// A new one, with the condition that would be added at once and nobody but the server owning
    /// anything of it.
    fn object(&self, uid: &str, now: &str) -> Value {
        let spec = self.spec();
        let api_version = format!("{GROUP}/v1");
        let mut owned = json!({"f:spec": owned_fields(&spec)});
        let mut labels = Map::new();
        if let Some(managed) = self.managed {
            labels.insert(MANAGED.to_owned(), managed.label().into());
            let label = format!("f:{MANAGED}");
            owned["f:metadata"] = json!({"f:labels": {".": {}, label: {}}});
        }
        let (reason, message) = if self.service.is_none() { LOCAL } else { PASSED };
        let entry = |owned: Value| {
            json!({
                "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": owned,
                "manager": "kube-apiserver", "operation": "Update", "time": now,
            })
        };
        let mut managers = vec![entry(owned)];
        // Of what leads nowhere else the condition comes with the object; nobody has written it.
        if self.service.is_some() {
            let condition = json!({
                ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {},
                "f:status": {}, "f:type": {},
            });
            let conditions = json!({".": {}, r#"k:{"type":"Available"}"#: condition});
            let mut of_status = entry(json!({"f:status": {"f:conditions": conditions}}));
            of_status["subresource"] = "status".into();
            managers.push(of_status);
        }
        let mut object = json!({
            "apiVersion": api_version, "kind": "APIService",
            "metadata": {
                "creationTimestamp": now,
                "labels": labels,
                "managedFields": managers,
                "name": self.name(), "uid": uid,
            },
            "spec": spec,
            "status": {"conditions": [{
                "lastTransitionTime": now, "message": message, "reason": reason,
                "status": "True", "type": "Available",
            }]},
        });
        if self.managed.is_none() {
            metadata::set(&mut object, "labels", None);
        }
        object
    }
}

/// All fields of a document, as those that somebody owns.
fn owned_fields(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(field, value)| (format!("f:{field}"), owned_fields(value))).collect()
}

/// The priorities of a built-in version of a group.
fn priorities(group: &str, version: &str) -> Option<(i64, i64)> {
    // It has no APIService of its own, and comes first all the same.
    if group == GROUP {
        return Some((20_001, 0));
    }
    let found = PRIORITIES.iter().find(|(g, v, ..)| (*g, *v) == (group, version));
    found.map(|(.., group, version)| (*group, *version))
}

/// The priorities of the group and version of a resource.
pub(crate) fn priorities_of(resource: &Resource) -> (i64, i64) {
    let own = priorities(&resource.group, &resource.version);
    own.filter(|_| !resource.is_custom()).unwrap_or(OF_DEFINITIONS)
}

/// Makes the APIServices that there should be, puts right what is looked after, and removes those of
/// that sort that there should not be.
pub(crate) async fn reconcile(server: &Arc<Server>) -> Result<()> {
    let resource = resource(server)?;
    for _ in 0..ATTEMPTS {
        if attempt(server, &resource).await? {
            return Ok(());
        }
    }
    Err(Status::internal("APIServices are changed by others all the time"))
}

async fn attempt(server: &Arc<Server>, resource: &Resource) -> Result<bool> {
    let request = RangeRequest { prefix: resource.prefix(""), ..RangeRequest::default() };
    let found = server.store.range(request).await?.entries;
    let name = |entry: &Entry| entry.key[resource.prefix("").len()..].to_owned();
    let mut found: BTreeMap<String, Entry> = found.into_iter().map(|e| (name(&e), e)).collect();
    let now = server.now();
    let mut missing = Vec::new();
    let mut settled = true;
    for wanted in all_wanted(server) {
        match found.remove(&wanted.name()) {
            None => missing.push(put(server, resource, &wanted, &now)?),
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
        let is_ours = |object: &Value| is_managed(object) || is_of_resident(object);
        remove(server, resource, entry, is_ours).await?;
    }
    Ok(settled)
}

fn all_wanted(server: &Server) -> Vec<Wanted> {
    let table = server.registry.table();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for served in table.resources() {
        let (group, version) = (&*served.group, &*served.version);
        if group == GROUP || !seen.insert((group, version)) {
            continue;
        }
        if served.is_custom() {
            all.push(Wanted::of_definition(group, version));
        } else if let Some(priorities) = priorities(group, version) {
            let (group, version) = (group.to_owned(), version.to_owned());
            let managed = Some(Management::OnStart);
            all.push(Wanted { group, version, priorities, managed, service: None });
        }
    }
    // What is defined here counts more.
    let residents = server.residents.iter().filter(|own| own.is_standing);
    let residents = residents.filter(|own| !seen.contains(&(&*own.group, &*own.version)));
    all.extend(residents.map(Wanted::of_resident));
    all
}

fn put(server: &Server, resource: &Resource, wanted: &Wanted, now: &str) -> Result<WriteRequest> {
    let key = resource.key(Place { namespace: "", name: &wanted.name() });
    let bytes = document::encode(&wanted.object(&server.random.uid(), now))?;
    Ok(WriteRequest::put(key, bytes, Expected::Absent))
}

/// Puts one right that is looked after; false, if it has to be made anew.
async fn mend(
    server: &Arc<Server>,
    resource: &Resource,
    wanted: &Wanted,
    entry: &Entry,
) -> Result<bool> {
    let object = Stored::from(entry).decode_as_stored()?;
    if !is_managed(&object) || object["spec"] == wanted.spec() {
        return Ok(true);
    }
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let name = &wanted.name();
    let mended = change::change(&writer, Place { namespace: "", name }, |old| {
        let mut new = old.clone();
        if is_managed(old) {
            new["spec"] = wanted.spec();
            writer.track(Some(old), &mut new);
        }
        Ok(new)
    });
    match mended.await {
        Err(status) if status.code == 404 => Ok(false),
        mended => mended.map(|_| true),
    }
}

/// Whether an APIService is looked after.
fn is_managed(object: &Value) -> bool {
    Management::of(object).is_some()
}

/// Removes one that there should not be, if it is this server's to remove.
async fn remove(
    server: &Arc<Server>,
    resource: &Resource,
    entry: &Entry,
    is_ours: fn(&Value) -> bool,
) -> Result<()> {
    let object = Stored::from(entry).decode_as_stored()?;
    if !is_ours(&object) || metadata::is_deleting(&object) {
        return Ok(());
    }
    let uid = Some(metadata::text(&object, "uid").to_owned());
    let options = DeleteOptions { uid, ..DeleteOptions::default() };
    let place = Place { namespace: "", name: metadata::text(&object, "name") };
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    match delete_object(&writer, place, &options).await {
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(()),
    }
}

/// How many APIServices of one definition are written at a time: a disk is synced once for many,
/// and a definition may have thousands of versions.
const AT_A_TIME: usize = 64;

/// Brings the APIServices of a definition's versions up to what is served now.
pub(crate) async fn follow_definition(server: &Arc<Server>, group: &str, versions: &[&str]) {
    let Ok(resource) = resource(server) else { return };
    let table = server.registry.table();
    let served = served_versions(&table, group);
    let follow = |version: &str| {
        let wanted = Wanted::of_definition(group, version);
        let (resource, is_served) = (&resource, served.contains(version));
        async move {
            if let Err(error) = follow_version(server, resource, &wanted, is_served).await {
                let name = wanted.name();
                tracing::warn!(%error, name, "cannot write the APIService of a definition");
            }
        }
    };
    for versions in versions.chunks(AT_A_TIME) {
        join_all(versions.iter().map(|version| follow(version))).await;
    }
}

/// The versions of a group in which definitions are served.
fn served_versions<'a>(table: &'a Table, group: &str) -> HashSet<&'a str> {
    let served = table.resources().filter(|r| r.is_custom() && r.group == group);
    served.map(|resource| &*resource.version).collect()
}

async fn follow_version(
    server: &Arc<Server>,
    resource: &Resource,
    wanted: &Wanted,
    is_served: bool,
) -> Result<()> {
    let key = resource.key(Place { namespace: "", name: &wanted.name() });
    match server.known(&key).await? {
        None if is_served => {
            let new = put(server, resource, wanted, &server.now())?;
            match server.store.write(new).await {
                Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
        None => Ok(()),
        Some(entry) if is_served => mend(server, resource, wanted, &entry).await.map(drop),
        Some(entry) => remove(server, resource, &entry, is_managed).await,
    }
}

#[cfg(test)]
mod tests {
    use super::{Management, Wanted, priorities};
    use crate::registry::Registry;

    #[test]
    fn every_built_in_version_has_a_place_and_discovery_is_in_that_order() {
        let table = Registry::new().table();
        let mut last = i64::MAX;
        for resource in table.resources().filter(|resource| !resource.group.is_empty()) {
            let found = priorities(&resource.group, &resource.version);
            let (group, _) = found.unwrap_or_else(|| panic!("{}", resource.qualified()));
            assert!(group <= last, "{}", resource.qualified());
            last = group;
        }
    }

    #[test]
    fn a_new_one_is_a_document_that_says_what_it_is() {
        let wanted = Wanted {
            group: String::new(),
            version: "v1".to_owned(),
            priorities: (18000, 1),
            managed: Some(Management::OnStart),
            service: None,
        };
        let object = wanted.object("u", "now");
        assert_eq!(object["metadata"]["name"], "v1.");
        assert_eq!(object["spec"], wanted.spec());
        assert_eq!(Management::of(&object), Some(Management::OnStart));
    }
}
