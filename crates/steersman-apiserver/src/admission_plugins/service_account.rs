//! `ServiceAccount` lets every pod run as a service account: it must exist, lends the pod its
//! pull secrets, and its token is mounted into the containers.
//!
//! A namespace that is just being made gets its account `default` from a controller; a pod that
//! comes sooner waits for it a moment.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use steersman_rules::metadata;

use super::account::Account;
use super::fields::{items, push, set, text};
use super::{secrets, stored};
use crate::admission_registration::Operation;
use crate::lookup;
use crate::state::Server;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

const DEFAULT: &str = "default";

/// Marks what a kubelet runs by itself and only shows to the server: its spec must stay.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Where containers find the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the names of volumes with a token begin with.
const VOLUME: &str = "kube-api-access-";

/// How long a token holds; a multiple of an hour would look like one that somebody chose.
const TOKEN_SECONDS: i64 = 3607;

/// How long the account `default` is waited for. Kubernetes looks ten times, each time 100 to 200
/// milliseconds later.
const PATIENCE: Duration = Duration::from_millis(1350);

/// How long to wait before looking again when the store cannot tell.
const PAUSE: Duration = Duration::from_millis(150);

/// Gives every pod an account.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        let asked = match write.operation {
            Operation::Create => write.subresource.is_empty(),
            Operation::Update => write.subresource == "ephemeralcontainers",
            Operation::Delete | Operation::Connect => false,
        };
        asked && write.resource.is("", "pods")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            if write.operation != Operation::Create {
                return Ok(false);
            }
            if is_mirror(new) {
                return check_mirror(&write, new).map(|()| false);
            }
            let named = fill_in_name(&mut new["spec"]);
            let account = account_of(&write, new).await?;
            let completed = complete(&mut new["spec"], &account, write.server);
            check_secrets(&write, new, &account).map(|()| named || completed)
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(pod) = new else { return Ok(()) };
            if write.operation == Operation::Create && is_mirror(pod) {
                return check_mirror(&write, pod);
            }
            let name = metadata::text(pod, "name");
            if text(&pod["spec"]["serviceAccountName"]).is_empty() {
                let namespace = write.place.namespace;
                let why = format!("no service account specified for pod {namespace}/{name}");
                return Err(write.forbidden(pod, &why));
            }
            let account = account_of(&write, pod).await?;
            check_secrets(&write, pod, &account)
        })
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Names the account of a pod that names none; says whether it did.
fn fill_in_name(spec: &mut Value) -> bool {
    if !text(&spec["serviceAccountName"]).is_empty() {
        return false;
    }
    // The field has an older name, too, which says the same.
    set(spec, "serviceAccountName", DEFAULT) | set(spec, "serviceAccount", DEFAULT)
}

fn check_mirror(write: &Attributes<'_>, pod: &Value) -> Result<()> {
    let spec = &pod["spec"];
    let mut sources =
        items(&spec["volumes"]).iter().flat_map(|v| items(&v["projected"]["sources"]));
    let why = if !text(&spec["serviceAccountName"]).is_empty() {
        "a mirror pod may not reference service accounts"
    } else if secrets::are_referenced(spec) {
        "a mirror pod may not reference secrets"
    } else if sources.any(|source| source["serviceAccountToken"].is_object()) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(write.forbidden(pod, why))
}

/// Refuses secrets that the account of a pod does not name, if it minds.
fn check_secrets(write: &Attributes<'_>, pod: &Value, account: &Account) -> Result<()> {
    if !account.limits_secrets() {
        return Ok(());
    }
    if write.operation == Operation::Create {
        return secrets::limit(account, &pod["spec"]).map_err(|why| write.forbidden(pod, &why));
    }
    // In Kubernetes this is no refusal, but an error of the server.
    secrets::limit_ephemeral(account, &pod["spec"]).map_err(Status::failure)
}

/// The account that a pod names.
async fn account_of(write: &Attributes<'_>, pod: &Value) -> Result<Account> {
    let namespace = write.place.namespace;
    let name = text(&pod["spec"]["serviceAccountName"]);
    let key = format!("/registry/serviceaccounts/{namespace}/{name}");
    let found = match stored::object(write.server, &key).await? {
        None if name == DEFAULT => awaited(write.server, &key).await?,
        found => found,
    };
    found.ok_or_else(|| {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        write.forbidden(pod, &why)
    })
}

/// Waits a while for an account that is about to be made. Nothing is asked meanwhile: the store
/// tells when it is there.
async fn awaited(server: &Server, key: &str) -> Result<Option<Account>> {
    let appears = async {
        loop {
            let revision = lookup::revision(&*server.store, true).await?;
            if let found @ Some(_) = stored::object(server, key).await? {
                return Ok(found);
            }
            lookup::moved_past(&*server.store, &[key], revision).await;
            if let found @ Some(_) = stored::object(server, key).await? {
                return Ok(found);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, appears).await.unwrap_or(Ok(None))
}

/// Gives a pod what its account has for it; says whether there was anything.
fn complete(spec: &mut Value, account: &Account, server: &Server) -> bool {
    let mut changed = account.is_mounted_into(spec) && mount_token(spec, server);
    if items(&spec["imagePullSecrets"]).is_empty() {
        let lent = account.image_pull_secrets.iter();
        let lent: Vec<Value> = lent.map(|secret| json!({"name": secret.name})).collect();
        changed |= !lent.is_empty() && set(spec, "imagePullSecrets", lent);
    }
    changed
}

/// Mounts the token into every container that has nothing of its own in that place.
fn mount_token(spec: &mut Value, server: &Server) -> bool {
    let mut names = items(&spec["volumes"]).iter().map(|volume| text(&volume["name"]));
    let existing = names.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let name = existing.clone().unwrap_or_else(|| format!("{VOLUME}{}", server.random.suffix()));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = items(&container["volumeMounts"]);
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
            push(container, "volumeMounts", mount);
            mounted = true;
        }
    }
    if mounted && existing.is_none() {
        push(spec, "volumes", json!({"name": name, "projected": token()}));
    }
    mounted
}

/// What is mounted: a token, who the server is, and the name of the namespace.
fn token() -> Value {
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            {"configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }},
            {"downwardAPI": {"items": [{
                "path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
            }]}},
        ],
    })
}
