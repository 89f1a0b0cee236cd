//! What the definition of a custom resource says of its migration: that it runs, how it ended, and which
//! versions objects are stored in from then on.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupResource;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::{Client, Result, clock};

use super::RUNNER;

const MIGRATING: &str = "StorageMigrating";

/// Says that a migration of this name runs.
pub(super) async fn begin(resource: &GroupResource, name: &str, client: &Client) -> Result<()> {
    let Some(definition) = find(resource, client).await? else { return Ok(()) };
    let message = format!("Migration {name} is running");
    let status = json!({
        "conditions": [condition(&definition, "True", "MigrationRunning", &message)],
    });
    tell(&definition, &status, client).await
}

/// Says how a migration ended. If it succeeded, and the definition is the one that it began with, all is
/// stored in the version that the definition says.
pub(super) async fn end(resource: &GroupResource, succeeded: bool, client: &Client) -> Result<()> {
    let Some(definition) = find(resource, client).await? else { return Ok(()) };
    let is_same = begun_with(&definition) == definition.metadata.generation;
    let (reason, message) = match (succeeded, is_same) {
        (true, true) => (
            "MigrationSucceeded",
            "The migration has succeeded and the stored versions have been updated",
        ),
        (true, false) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a \
             generation mismatch",
        ),
        (false, _) => ("MigrationFailed", "The migration has failed"),
    };
    let mut status = json!({"conditions": [condition(&definition, "False", reason, message)]});
    // Kubernetes does so also after a failure, which leaves objects in versions that nobody tells of.
    if is_same {
        let storage = definition.spec.versions.iter().find(|version| version.storage);
        status["storedVersions"] = storage.iter().map(|version| version.name.as_str()).collect();
    }
    tell(&definition, &status, client).await
}

/// The definition of a resource, if it has one.
async fn find(
    GroupResource { group, resource }: &GroupResource,
    client: &Client,
) -> Result<Option<CustomResourceDefinition>> {
    client.get(format!("{resource}.{group}").as_str()).await
}

/// The generation that the definition had when the migration began.
fn begun_with(definition: &CustomResourceDefinition) -> Option<i64> {
    let status = definition.status.as_ref();
    let mut conditions = status.and_then(|it| it.conditions.as_ref()).into_iter().flatten();
    let of_migration = |it: &&CustomResourceDefinitionCondition| it.type_ == MIGRATING;
    conditions.find(of_migration).and_then(|condition| condition.observed_generation)
}

fn condition(
    definition: &CustomResourceDefinition,
    status: &str,
    reason: &str,
    message: &str,
) -> Value {
    json!({
        "type": MIGRATING, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": clock::now_time(),
        "observedGeneration": definition.metadata.generation,
    })
}

/// Writes the status, unless somebody has changed the definition since.
async fn tell(
    definition: &CustomResourceDefinition,
    status: &Value,
    client: &Client,
) -> Result<()> {
    let name = definition.metadata.name.as_deref().unwrap_or_default();
    let patch = Patch::Apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "resourceVersion": definition.metadata.resource_version},
        "status": status,
    }));
    let client = client.with_field_manager(RUNNER);
    client.patch_status::<CustomResourceDefinition, _>(name, &patch).await.map(drop)
}
