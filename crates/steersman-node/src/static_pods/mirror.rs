//! What the API server is shown of a static Pod: a Pod that nobody runs, and that comes back when
//! somebody deletes it.

use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};
use steersman::{Client, ObjectKey, Result};

use super::{MIRROR, annotation};

/// What is to be done so that the API server shows a static Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    /// What it shows is another one, or somebody wants it away.
    Replace,
    /// It has another status.
    Report,
    /// All is as it should be, or somebody else has the name.
    Nothing,
}

/// Decides on what there is of that name.
pub(super) fn step(pod: &Pod, status: &PodStatus, found: Option<&Pod>) -> Step {
    let Some(found) = found else { return Step::Create };
    match annotation(found, MIRROR) {
        None => Step::Nothing,
        Some(hash) if hash != uid(pod) || found.metadata.deletion_timestamp.is_some() => {
            Step::Replace
        }
        Some(_) if !says(found, status) => Step::Report,
        Some(_) => Step::Nothing,
    }
}

/// Whether a Pod says all that a status does; the server says more by itself.
fn says(found: &Pod, status: &PodStatus) -> bool {
    let (found, wanted) = (serde_json::to_value(&found.status), serde_json::to_value(status));
    let (Ok(found), Ok(Value::Object(wanted))) = (found, wanted) else { return false };
    wanted.iter().all(|(field, value)| found.get(field) == Some(value))
}

/// Lets the API server show a static Pod with this status, where it shows what was `found`.
pub(crate) async fn show(
    pod: &Pod,
    status: &PodStatus,
    found: Option<&Pod>,
    client: &Client,
) -> Result<()> {
    let key = ObjectKey::of(pod);
    let mut step = step(pod, status, found);
    if let (Step::Replace, Some(old)) = (step, found) {
        delete(old, client).await?;
        step = Step::Create;
    }
    match step {
        Step::Create => {
            let Some(node) = node_of(pod, client).await? else { return Ok(()) };
            client.create(&mirror(pod, &node)).await?;
        }
        Step::Replace | Step::Nothing => return Ok(()),
        Step::Report => {}
    }
    let patch = Patch::Merge(json!({"status": status}));
    client.patch_status::<Pod, _>(&key, &patch).await.map(drop)
}

/// Takes away what the API server shows.
pub(crate) async fn delete(found: &Pod, client: &Client) -> Result<()> {
    let uid = found.metadata.uid.clone();
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    match client.delete::<Pod>(&ObjectKey::of(found), &params).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        deleted => deleted.map(drop),
    }
}

async fn node_of(pod: &Pod, client: &Client) -> Result<Option<Node>> {
    let name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    client.get::<Node>(name.as_str()).await
}

/// The Pod that shows a static one. It goes with its node.
pub(super) fn mirror(pod: &Pod, node: &Node) -> Pod {
    let meta = &pod.metadata;
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.insert(MIRROR.into(), uid(pod).to_owned());
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: node.metadata.name.clone().unwrap_or_default(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    Pod {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            labels: meta.labels.clone(),
            annotations: Some(annotations),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: pod.spec.clone(),
        status: None,
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
