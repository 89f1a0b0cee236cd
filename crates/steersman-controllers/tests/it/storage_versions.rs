//! What API servers said of how they store objects goes with them.

use k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{ObjectKey, Result};
use steersman_testkit::{Cluster, Restarts, Settings};

use crate::objects::object;
use crate::restarts::{built_in_serving_all, small};

const ASKED: &str = "internal.apiserver.k8s.io/v1alpha1=true";
const NAME: &str = "apps.deployments";

/// The Lease by which a server says that it is there.
async fn comes(cluster: &Cluster, server: &str, component: &str) -> Result<()> {
    let labels = json!({"apiserver.kubernetes.io/identity": component});
    let lease: Lease = object(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": server, "namespace": "kube-system", "labels": labels},
        "spec": {"holderIdentity": server},
    }));
    cluster.client().create(&lease).await.map(drop)
}

async fn goes(cluster: &Cluster, server: &str) -> Result<()> {
    let key = ObjectKey::namespaced("kube-system", server);
    cluster.client().delete::<Lease>(key, &DeleteParams::default()).await.map(drop)
}

/// What servers say of how they store Deployments.
async fn say(cluster: &Cluster, said: &[(&str, &str)], common: Option<&str>) -> Result<()> {
    let client = cluster.client();
    if client.get::<StorageVersion>(NAME).await?.is_none() {
        let version: StorageVersion = object(json!({
            "apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
            "metadata": {"name": NAME}, "spec": {},
        }));
        client.create(&version).await?;
    }
    let entry = |(server, encodes): &(&str, &str)| {
        json!({"apiServerID": server, "encodingVersion": encodes,
               "decodableVersions": ["apps/v1", "apps/v2"]})
    };
    let said: Vec<Value> = said.iter().map(entry).collect();
    let status = json!({"status": {"storageVersions": said, "commonEncodingVersion": common}});
    client.patch_status::<StorageVersion, _>(NAME, &Patch::Merge(status)).await.map(drop)
}

/// The servers that have said something, in which version they agree, and whether they do.
fn told(version: &StorageVersion) -> (Vec<String>, Option<String>, Vec<String>) {
    let status = version.status.clone().unwrap_or_default();
    let servers = status.storage_versions.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let line = |it: &k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersionCondition| {
        format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message)
    };
    (
        servers.into_iter().map(|it| it.api_server_id).collect(),
        status.common_encoding_version,
        conditions.iter().map(line).collect(),
    )
}

/// What is left when `new` is the only server.
fn is_of_new_alone(version: &StorageVersion) -> bool {
    let equal =
        "AllEncodingVersionsEqual=True CommonEncodingVersionSet: Common encoding version set";
    told(version) == (vec!["new".into()], Some("apps/v2".into()), vec![equal.into()])
}

/// Two servers of which one goes.
async fn upgrade(cluster: &Cluster) -> Result<()> {
    comes(cluster, "old", "kube-apiserver").await?;
    comes(cluster, "new", "kube-apiserver").await?;
    say(cluster, &[("old", "apps/v1"), ("new", "apps/v2")], None).await?;
    goes(cluster, "old").await?;
    cluster.eventually(NAME, is_of_new_alone).await
}

#[steersman::test(nodes = 0, runtime_config = ASKED)]
async fn what_a_server_said_goes_when_its_lease_does(cluster: Cluster) -> Result<()> {
    upgrade(&cluster).await?;
    goes(&cluster, "new").await?;
    cluster.gone::<StorageVersion>(NAME).await
}

#[steersman::test(nodes = 0, runtime_config = ASKED)]
async fn what_is_said_for_a_server_that_is_not_there_goes_at_once(cluster: Cluster) -> Result<()> {
    comes(&cluster, "new", "kube-apiserver").await?;
    comes(&cluster, "other", "kube-controller-manager").await?;
    let said = [("ghost", "apps/v1"), ("new", "apps/v2"), ("other", "apps/v1")];
    say(&cluster, &said, None).await?;
    cluster.eventually(NAME, is_of_new_alone).await
}

#[test]
fn the_same_is_left_whenever_the_collector_is_restarted() {
    let collector = built_in_serving_all("storageversion-garbage-collector-controller");
    let settings = Settings { runtime_config: ASKED, ..small() };
    Restarts::of(collector).settings(settings).check(async |cluster| upgrade(cluster).await);
}
