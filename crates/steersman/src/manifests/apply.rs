//! Writing manifests into a cluster, as `kubectl apply` would.

use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;
use tokio::time::Instant;

use super::Manifests;
use crate::error::{Error, Result};

/// Under which name the objects are applied.
const FIELD_MANAGER: &str = "steersman-manifests";
/// How long it may take until a kind is served that is defined.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
/// How long until one looks again whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Manifests {
    /// Writes everything into a cluster, by server-side apply, and waits until the kinds that are
    /// defined are served. The client must be one of an administrator: who grants permissions needs
    /// them, and more. Namespaces must be there.
    pub async fn apply(&self, client: &kube::Client) -> Result<()> {
        self.applied(client).await
    }

    /// Boxed, so that it is compiled here and not in each crate that calls it.
    fn applied<'a>(&'a self, client: &'a kube::Client) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for object in self.objects() {
                apply(client, &object).await?;
            }
            for definition in &self.definitions {
                let name = definition.metadata.name.as_deref().unwrap_or_default();
                established(client, name).await?;
            }
            Ok(())
        })
    }
}

/// The kinds that manifests consist of.
fn kinds() -> [ApiResource; 8] {
    [
        ApiResource::erase::<CustomResourceDefinition>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<ClusterRole>(&()),
        ApiResource::erase::<ClusterRoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    ]
}

async fn apply(client: &kube::Client, object: &Value) -> Result<()> {
    let kinds = kinds();
    let kind = kinds.iter().find(|kind| object["kind"] == *kind.kind);
    let kind = kind.ok_or_else(|| Error::message("manifests hold an object of another kind"))?;
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

/// Waits until the kind of this definition is served.
async fn established(client: &kube::Client, name: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let deadline = Instant::now() + SERVED_WITHIN;
    while !definitions.get_opt(name).await?.is_some_and(|definition| is_served(&definition)) {
        if Instant::now() >= deadline {
            let seconds = SERVED_WITHIN.as_secs();
            let text =
                format!("the kind that {name} defines is not served after {seconds} seconds");
            return Err(Error::message(text));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

fn is_served(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}
