//! Migrations: every object of a resource is stored anew, one migration of it at a time.

use std::time::Duration;

use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use steersman::Result;
use steersman_store::{RangeRequest, Store};
use steersman_testkit::{Cluster, Restarts, Settings};

use crate::garbage::{boat_kind, boats, fleet};
use crate::objects::object;
use crate::restarts::{built_in_serving_all, small};

const ASKED: &str = "storagemigration.k8s.io/v1beta1=true";

fn migration(name: &str, group: &str, resource: &str) -> StorageVersionMigration {
    object(json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": resource}},
    }))
}

/// What the conditions of a migration say.
fn says(migration: &StorageVersionMigration) -> Vec<String> {
    let status = migration.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let line = |it: &Condition| format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message);
    conditions.iter().map(line).collect()
}

fn has_ended(migration: &StorageVersionMigration) -> bool {
    says(migration).iter().any(|line| line.starts_with("Running=False"))
}

/// The versions in which boats are stored, and what they are called.
async fn stored(cluster: &Cluster) -> Vec<(String, Value)> {
    let prefix = "/registry/example.com/boats/".into();
    let request = RangeRequest { prefix, ..RangeRequest::default() };
    let found = cluster.inner().store().range(request).await.unwrap().entries;
    let boats = found.iter().map(|entry| serde_json::from_slice::<Value>(&entry.value).unwrap());
    let boats = boats.map(|boat| {
        (boat["apiVersion"].as_str().unwrap().to_owned(), boat["metadata"]["name"].clone())
    });
    boats.collect()
}

/// Boats in the version `v1`, of which the storage version is `v2` from then on.
async fn launch(cluster: &Cluster, count: usize) -> Result<()> {
    cluster.define(&boats(&[("v1", true), ("v2", true)])).await?;
    for number in 0..count {
        let boat = DynamicObject::new(&format!("boat-{number}"), &boat_kind("v1"));
        fleet("v1", cluster).create(&Default::default(), &boat).await?;
    }
    let mut definition: CustomResourceDefinition =
        cluster.client().get("boats.example.com").await?.expect("boats are defined");
    for version in &mut definition.spec.versions {
        version.storage = version.name == "v2";
    }
    cluster.client().update(&definition).await?;
    let both = |it: &CustomResourceDefinition| stored_versions(it) == ["v1", "v2"];
    cluster.eventually("boats.example.com", both).await
}

fn stored_versions(definition: &CustomResourceDefinition) -> Vec<String> {
    definition.status.clone().and_then(|it| it.stored_versions).unwrap_or_default()
}

#[steersman::test(nodes = 0, runtime_config = ASKED)]
async fn a_migration_stores_every_object_anew_and_the_definition_says_so(
    cluster: Cluster,
) -> Result<()> {
    launch(&cluster, 3).await?;
    assert!(stored(&cluster).await.iter().all(|(version, _)| version == "example.com/v1"));

    cluster.client().create(&migration("boats", "example.com", "boats")).await?;
    cluster.eventually("boats", has_ended).await?;
    let told: StorageVersionMigration = cluster.client().get("boats").await?.unwrap();
    assert_eq!(
        says(&told),
        [
            "Running=False MigrationCompleted: Migration completed",
            "Succeeded=True StorageVersionMigrationSucceeded: ",
        ]
    );
    let stored = stored(&cluster).await;
    assert_eq!(stored.len(), 3);
    assert!(stored.iter().all(|(version, _)| version == "example.com/v2"), "{stored:?}");
    let definition: CustomResourceDefinition =
        cluster.client().get("boats.example.com").await?.unwrap();
    assert_eq!(stored_versions(&definition), ["v2"]);
    let conditions = definition.status.unwrap_or_default().conditions.unwrap_or_default();
    let ours = conditions.iter().find(|it| it.type_ == "StorageMigrating").unwrap();
    let (reason, message) = (ours.reason.as_deref(), ours.message.as_deref());
    assert_eq!((ours.status.as_str(), reason), ("False", Some("MigrationSucceeded")));
    let said = "The migration has succeeded and the stored versions have been updated";
    assert_eq!(message, Some(said));
    let established = conditions.iter().find(|it| it.type_ == "Established").unwrap();
    assert_eq!(established.status, "True", "what the server says of it stays");
    Ok(())
}

#[steersman::test(nodes = 0, runtime_config = ASKED)]
async fn what_cannot_be_migrated_is_told(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&migration("ghosts", "example.com", "ghosts")).await?;
    client.create(&migration("reviews", "authorization.k8s.io", "subjectaccessreviews")).await?;
    cluster.eventually("reviews", has_ended).await?;
    let told: StorageVersionMigration = client.get("reviews").await?.unwrap();
    assert_eq!(
        says(&told)[1],
        "Failed=True StorageVersionMigrationFailed: resource \"authorization.k8s.io/v1, \
         Resource=subjectaccessreviews\" does not support discovery operations: [update patch list]"
    );
    // It may come yet.
    cluster.advance(Duration::from_secs(30)).await;
    let waits: StorageVersionMigration = client.get("ghosts").await?.unwrap();
    assert_eq!(says(&waits), ["Running=True MigrationRunning: The migration is running"]);
    cluster.eventually("ghosts", has_ended).await?;
    let told: StorageVersionMigration = client.get("ghosts").await?.unwrap();
    let failed = "Failed=True StorageVersionMigrationFailed: resource does not exist in discovery";
    assert_eq!(says(&told)[1], failed);
    Ok(())
}

#[steersman::test(nodes = 0, runtime_config = ASKED)]
async fn migrations_of_a_resource_run_one_after_the_other(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&migration("first", "example.com", "boats")).await?;
    client.create(&migration("second", "example.com", "boats")).await?;
    client.create(&migration("other", "", "configmaps")).await?;
    cluster.eventually("other", has_ended).await?;
    let runs = "Running=True MigrationRunning: The migration is running";
    assert_eq!(says(&client.get("first").await?.unwrap()), [runs]);
    assert!(says(&client.get("second").await?.unwrap()).is_empty(), "it waits");
    launch(&cluster, 1).await?;
    for name in ["first", "second"] {
        cluster.eventually(name, has_ended).await?;
        let told: StorageVersionMigration = client.get(name).await?.unwrap();
        assert_eq!(says(&told)[1], "Succeeded=True StorageVersionMigrationSucceeded: ", "{name}");
    }
    Ok(())
}

#[test]
fn a_migration_ends_whenever_its_controllers_are_restarted() {
    let [checkpoints, runner] = ["resource-version-controller", "migration-runner-controller"];
    let migrator = Restarts::of(built_in_serving_all("storage-version-migrator-controller"));
    let all =
        migrator.beside(built_in_serving_all(checkpoints)).beside(built_in_serving_all(runner));
    let settings = Settings { runtime_config: ASKED, ..small() };
    all.settings(settings).check(async |cluster| {
        launch(cluster, 2).await?;
        cluster.client().create(&migration("boats", "example.com", "boats")).await?;
        cluster.eventually("boats", has_ended).await?;
        let stored = stored(cluster).await;
        assert!(stored.iter().all(|(version, _)| version == "example.com/v2"), "{stored:?}");
        let all_v2 = |it: &CustomResourceDefinition| stored_versions(it) == ["v2"];
        cluster.eventually("boats.example.com", all_v2).await
    });
}
