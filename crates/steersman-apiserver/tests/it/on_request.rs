//! What Kubernetes serves on request only: there where it is asked for, and nowhere else.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_store::memory::MemoryStore;

use crate::api::{Api, seconds_pass};

const RULES: &str = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";
const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn serving(asked: &str) -> Api {
    let asked = asked.parse().unwrap();
    Api::with(Arc::new(MemoryStore::new()), |config| config.runtime_config = asked).await
}

fn rule(effect: &str) -> Value {
    json!({"metadata": {"name": "broken"}, "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "broken", "effect": effect},
    }})
}

/// The versions of a group, the preferred one first.
async fn versions(api: &Api, group: &str) -> Vec<String> {
    let groups = api.get("/apis").await.ok();
    let groups = groups["groups"].as_array().unwrap();
    let group = groups.iter().find(|it| it["name"] == group);
    let versions = group.and_then(|group| group["versions"].as_array());
    let versions = versions.into_iter().flatten();
    versions.map(|it| it["version"].as_str().unwrap().to_owned()).collect()
}

/// The documents, paths and definitions of OpenAPI that are about what is served on request.
async fn described(api: &Api) -> Vec<String> {
    let parts = ["v1beta2", "storagemigration", "internal"];
    let is_ours = |name: &&String| parts.iter().any(|part| name.contains(part));
    let index = api.get("/openapi/v3").await.ok();
    let documents = index["paths"].as_object().unwrap().keys().cloned();
    let whole = api.get("/openapi/v2").await.ok();
    let [paths, definitions] =
        ["paths", "definitions"].map(|part| whole[part].as_object().unwrap().keys().cloned());
    documents.chain(paths).chain(definitions).filter(|name| is_ours(&name)).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_of_it_is_there_unless_somebody_asks() {
    let api = Api::start().await;
    assert_eq!(api.get(RULES).await.code, 404);
    assert_eq!(api.get(MIGRATIONS).await.code, 404);
    assert_eq!(api.get(VERSIONS).await.code, 404);
    assert_eq!(versions(&api, "resource.k8s.io").await, ["v1"]);
    assert!(versions(&api, "storagemigration.k8s.io").await.is_empty());
    assert_eq!(described(&api).await, [""; 0]);
    let migrator = format!("{ROLES}/system:controller:storage-version-migrator-controller");
    api.get(&migrator).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_is_discovered_described_and_permitted() {
    let api = serving("api/beta=true").await;
    assert_eq!(versions(&api, "resource.k8s.io").await, ["v1", "v1beta2"]);
    assert_eq!(versions(&api, "storagemigration.k8s.io").await, ["v1beta1"]);
    let described = described(&api).await;
    for part in [
        "apis/resource.k8s.io/v1beta2",
        "apis/storagemigration.k8s.io",
        "apis/storagemigration.k8s.io/v1beta1",
        "/apis/resource.k8s.io/v1beta2/devicetaintrules/{name}/status",
        "io.k8s.api.resource.v1beta2.DeviceTaintSelector",
    ] {
        assert!(described.iter().any(|name| name == part), "{part}: {described:#?}");
    }
    let role = |name: &str| format!("{ROLES}/system:controller:{name}");
    let evictor = api.get(&role("device-taint-eviction-controller")).await.ok();
    let rules = evictor["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["resources"] == json!(["devicetaintrules/status"])));
    api.get(&role("storage-version-migrator-controller")).await.ok();
    // Of another level.
    assert!(versions(&api, "internal.apiserver.k8s.io").await.is_empty());
    let api = serving("api/alpha=true").await;
    assert_eq!(versions(&api, "internal.apiserver.k8s.io").await, ["v1alpha1"]);
    let path = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/{name}/status";
    assert!(self::described(&api).await.iter().any(|name| name == path));
    api.get(&role("storage-version-garbage-collector")).await.ok();
    // One of them alone.
    let api = serving("storagemigration.k8s.io/v1beta1").await;
    assert_eq!(api.get(RULES).await.code, 404);
    api.get(MIGRATIONS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_rule_says_since_when_it_has_its_effect() {
    let api = serving("resource.k8s.io/v1beta2=true").await;
    let made = api.post(RULES, &rule("None")).await.ok();
    let first = made["spec"]["taint"]["timeAdded"].clone();
    assert_eq!(
        (&first, &made["metadata"]["generation"]),
        (&made["metadata"]["creationTimestamp"], &json!(1))
    );
    seconds_pass(60).await;
    let path = format!("{RULES}/broken");
    let other = json!({"spec": {"taint": {"value": "very"}}});
    let changed = api.merge(&path, &other).await.ok();
    assert_eq!(
        (&changed["spec"]["taint"]["timeAdded"], &changed["metadata"]["generation"]),
        (&first, &json!(2))
    );
    let changed = api.merge(&path, &json!({"spec": {"taint": {"effect": "NoExecute"}}})).await.ok();
    assert_ne!(changed["spec"]["taint"]["timeAdded"], first);
    let chosen =
        json!({"spec": {"taint": {"effect": "None", "timeAdded": "2020-01-01T00:00:00Z"}}});
    let changed = api.merge(&path, &chosen).await.ok();
    assert_eq!(changed["spec"]["taint"]["timeAdded"], "2020-01-01T00:00:00Z");
    let refused = api.merge(&path, &json!({"spec": {"taint": {"effect": "Never"}}})).await;
    let refused = refused.refused(422);
    assert!(
        refused["message"].as_str().unwrap().contains("Unsupported value: \"Never\""),
        "{refused}"
    );
    let table = api.get_as(RULES, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<&str> = columns.map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]);
    let gone = api.delete(&path).await.ok();
    assert_eq!(
        (&gone["kind"], &gone["metadata"]["uid"]),
        (&json!("DeviceTaintRule"), &made["metadata"]["uid"])
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_migration_is_of_and_how_it_ended_stays() {
    let api = serving("api/all").await;
    let pods = json!({"metadata": {"name": "pods"}, "spec": {"resource": {"resource": "pods"}},
                      "status": {"resourceVersion": "7"}});
    let made = api.post(MIGRATIONS, &pods).await.ok();
    assert_eq!(made["spec"]["resource"], json!({"group": "", "resource": "pods"}));
    assert_eq!(made["status"], json!({}));
    let path = format!("{MIGRATIONS}/pods");
    let other = json!({"spec": {"resource": {"resource": "secrets"}}});
    api.merge(&path, &other).await.refused(422);
    let status = format!("{path}/status");
    api.merge(&status, &json!({"status": {"resourceVersion": "7"}})).await.ok();
    api.merge(&status, &json!({"status": {"resourceVersion": "8"}})).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn a_storage_version_says_what_servers_agree_on() {
    let api = serving("internal.apiserver.k8s.io/v1alpha1").await;
    let wrong = api.post(VERSIONS, &json!({"metadata": {"name": "pods"}})).await.refused(422);
    let said = wrong["message"].as_str().unwrap();
    assert!(said.contains("name must be in the form of <group>.<resource>"), "{said}");
    let ignored = json!({"metadata": {"name": "apps.deployments"}, "spec": {"any": 1},
                         "status": {"commonEncodingVersion": "v7"}});
    let made = api.post(VERSIONS, &ignored).await.ok();
    assert_eq!((&made["spec"], &made["status"]), (&json!({}), &json!({})));
    let status = format!("{VERSIONS}/apps.deployments/status");
    let server = json!({"apiServerID": "apiserver-1", "encodingVersion": "apps/v1",
                        "decodableVersions": ["apps/v1"]});
    let alone = json!({"status": {"storageVersions": [server]}});
    let refused = api.merge(&status, &alone).await.refused(422);
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains("the common encoding version is apps/v1"), "{said}");
    let agreed =
        json!({"status": {"storageVersions": [server], "commonEncodingVersion": "apps/v1"}});
    let told = api.merge(&status, &agreed).await.ok();
    assert_eq!(told["status"], agreed["status"]);
    let table = api.get_as(VERSIONS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    let cells = json!(["apps.deployments", "apps/v1", "apiserver-1=apps/v1", "0s"]);
    assert_eq!(table["rows"][0]["cells"], cells);
}
