//! Writes the authority of a self-signed certificate to where the API server looks for it.
//!
//! For development. Looks again from time to time, because configurations may be applied anew
//! without it, or only after the server has started. Writes nothing but `caBundle`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header};
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

use super::registration::Phase;
use super::server::WebhookServer;
use crate::error::Result;
use crate::random::jitter;

/// How long until it looks again.
const LOOK: Duration = Duration::from_secs(30);
/// How long until it tries again what failed.
const RETRY: Duration = Duration::from_secs(2);

/// Which configurations and definitions get the authority: those that the server itself makes,
/// and those named here.
pub struct CaInjection {
    client: kube::Client,
    mutating: Vec<String>,
    validating: Vec<String>,
    definitions: Vec<String>,
    labels: Option<String>,
}

impl CaInjection {
    /// Writes through this client.
    pub fn new(client: kube::Client) -> Self {
        let none = Vec::new;
        let mutating = none();
        let validating = none();
        let definitions = none();
        Self { client, mutating, validating, definitions, labels: None }
    }

    /// Also into this MutatingWebhookConfiguration.
    #[must_use]
    pub fn mutating(mut self, name: impl Into<String>) -> Self {
        self.mutating.push(name.into());
        self
    }

    /// Also into this ValidatingWebhookConfiguration.
    #[must_use]
    pub fn validating(mut self, name: impl Into<String>) -> Self {
        self.validating.push(name.into());
        self
    }

    /// Also into the conversion of this CustomResourceDefinition.
    #[must_use]
    pub fn definition(mut self, name: impl Into<String>) -> Self {
        self.definitions.push(name.into());
        self
    }

    /// Also into all configurations and definitions with these labels.
    #[must_use]
    pub fn labelled(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Adds what this server is known by.
    pub(super) fn of(mut self, server: &WebhookServer) -> Self {
        // Only what there is: who runs it may have no right to look at the rest.
        for (phase, names) in
            [(Phase::Mutating, &mut self.mutating), (Phase::Validating, &mut self.validating)]
        {
            if server.site.registrations(phase).next().is_some() {
                names.push(server.configuration_name(phase));
            }
        }
        self.definitions.extend(server.converted());
        self
    }

    /// Keeps the authority written. Never ends.
    pub(super) async fn keep(self, ca: String) {
        let bundle = Value::String(STANDARD.encode(ca));
        loop {
            let wait = match self.inject(&bundle).await {
                Ok(()) => LOOK,
                Err(error) => {
                    tracing::warn!(%error, "CA injection failed; retrying");
                    RETRY
                }
            };
            tokio::time::sleep(jitter(wait, 0.1)).await;
        }
    }

    /// Writes the authority wherever it is missing. What cannot be written does not keep it from
    /// the rest.
    async fn inject(&self, bundle: &Value) -> Result<()> {
        let kinds = [
            (ApiResource::erase::<MutatingWebhookConfiguration>(&()), &self.mutating),
            (ApiResource::erase::<ValidatingWebhookConfiguration>(&()), &self.validating),
            (ApiResource::erase::<CustomResourceDefinition>(&()), &self.definitions),
        ];
        let mut outcome = Ok(());
        for (resource, names) in kinds {
            outcome = self.inject_kind(&resource, names, bundle).await.and(outcome);
        }
        outcome
    }

    async fn inject_kind(
        &self,
        resource: &ApiResource,
        names: &[String],
        bundle: &Value,
    ) -> Result<()> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let mut outcome = Ok(());
        for object in self.targets(&api, names).await? {
            let patch = missing(&object, bundle);
            let Some(name) = object.metadata.name.filter(|_| !patch.0.is_empty()) else { continue };
            let written = self.patch(&format!("{}/{name}", api.resource_url()), &patch).await;
            if written.is_ok() {
                tracing::info!(kind = resource.kind, name, "CA bundle injected");
            }
            outcome = written.and(outcome);
        }
        outcome
    }

    async fn patch(&self, path: &str, patch: &json_patch::Patch) -> Result<()> {
        let request = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/json-patch+json")
            .body(serde_json::to_vec(patch)?)?;
        self.client.request::<Value>(request).await?;
        Ok(())
    }

    async fn targets(
        &self,
        api: &Api<DynamicObject>,
        names: &[String],
    ) -> Result<Vec<DynamicObject>> {
        let mut found = Vec::new();
        for name in names {
            found.extend(api.get_opt(name).await?);
        }
        if let Some(labels) = &self.labels {
            let labelled = api.list(&ListParams::default().labels(labels)).await?;
            let named = |object: &DynamicObject| {
                object.metadata.name.as_ref().is_some_and(|name| names.contains(name))
            };
            found.extend(labelled.items.into_iter().filter(|object| !named(object)));
        }
        Ok(found)
    }
}

/// The patch that writes the authority wherever this object lacks it, if the object is still as
/// it was read: places in lists may have changed.
fn missing(object: &DynamicObject, bundle: &Value) -> json_patch::Patch {
    let webhooks = object.data.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len);
    let mut places: Vec<String> =
        (0..webhooks).map(|index| format!("/webhooks/{index}/clientConfig")).collect();
    places.push("/spec/conversion/webhook/clientConfig".to_owned());
    let lacking = places.into_iter().filter(|place| {
        let config = object.data.pointer(place);
        config.is_some_and(|config| config.get("caBundle") != Some(bundle))
    });
    let mut operations: Vec<PatchOperation> = lacking
        .map(|place| {
            let path = pointer(&format!("{place}/caBundle"));
            PatchOperation::Add(AddOperation { path, value: bundle.clone() })
        })
        .collect();
    if let (false, Some(version)) = (operations.is_empty(), &object.metadata.resource_version) {
        let path = pointer("/metadata/resourceVersion");
        let value = Value::String(version.clone());
        operations.insert(0, PatchOperation::Test(TestOperation { path, value }));
    }
    json_patch::Patch(operations)
}

fn pointer(text: &str) -> PointerBuf {
    PointerBuf::parse(text.to_owned()).unwrap_or_default()
}
