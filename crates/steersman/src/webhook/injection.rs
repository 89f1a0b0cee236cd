//! Writes whom the API server is to trust to where it looks for that.
//!
//! It is done again from time to time, because configurations may be applied anew without it, or
//! only after the server has started. Nothing but `caBundle` is written, and what stands there of
//! the same name and has not expired stays: another replica may still show a certificate of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header};
use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, TestOperation};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

use super::succession::{is_over, ordered, tidied};
use crate::error::Result;
use crate::serve::Trusted;

/// Which configurations and definitions get the authorities: those that the server itself makes,
/// and those that its author named.
#[derive(Clone, Debug, Default)]
pub(super) struct CaInjection {
    pub(super) mutating: Vec<String>,
    pub(super) validating: Vec<String>,
    pub(super) definitions: Vec<String>,
    pub(super) labels: Option<String>,
}

/// A kind whose objects get the authorities.
pub(crate) struct Needed<'a> {
    pub(crate) group: String,
    pub(crate) plural: String,
    /// The objects that are known by name.
    pub(crate) names: &'a [String],
    /// Whether others are found by a label.
    pub(crate) by_label: bool,
}

/// Whom to trust.
pub(super) struct Bundle<'a> {
    pub(super) trusted: &'a [Trusted],
    pub(super) now: Timestamp,
}

impl CaInjection {
    /// What gets the authorities: kinds, with the names of their objects.
    fn targets(&self) -> [(ApiResource, &[String]); 3] {
        [
            (ApiResource::erase::<MutatingWebhookConfiguration>(&()), &self.mutating),
            (ApiResource::erase::<ValidatingWebhookConfiguration>(&()), &self.validating),
            (ApiResource::erase::<CustomResourceDefinition>(&()), &self.definitions),
        ]
    }

    /// What must be allowed for that.
    pub(super) fn needs(&self) -> impl Iterator<Item = Needed<'_>> {
        self.targets().into_iter().map(|(resource, names)| {
            let by_label = self.labels.is_some();
            Needed { group: resource.group, plural: resource.plural, names, by_label }
        })
    }

    /// Writes the authorities wherever they are missing. What cannot be written does not keep them
    /// from the rest.
    pub(super) async fn inject(&self, client: &kube::Client, bundle: &Bundle<'_>) -> Result<()> {
        let mut outcome = Ok(());
        for (resource, names) in self.targets() {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            outcome = self.inject_into(&api, names, bundle).await.and(outcome);
        }
        outcome
    }

    async fn inject_into(
        &self,
        api: &Api<DynamicObject>,
        names: &[String],
        bundle: &Bundle<'_>,
    ) -> Result<()> {
        let (found, mut outcome) = self.found(api, names).await;
        for object in found {
            let patch = bundle.missing(&object);
            let Some(name) = object.metadata.name.filter(|_| !patch.0.is_empty()) else { continue };
            let path = format!("{}/{name}", api.resource_url());
            let written = send(api.clone().into_client(), &path, &patch).await;
            if written.is_ok() {
                tracing::info!(path, "CA bundle injected");
            }
            outcome = written.and(outcome);
        }
        outcome
    }

    /// What could be found, and whether that was all.
    async fn found(
        &self,
        api: &Api<DynamicObject>,
        names: &[String],
    ) -> (Vec<DynamicObject>, Result<()>) {
        let mut found = Vec::new();
        let mut outcome = Ok(());
        for name in names {
            match api.get_opt(name).await {
                Ok(object) => found.extend(object),
                Err(error) => outcome = Err(error.into()),
            }
        }
        if let Some(labels) = &self.labels {
            let named = |object: &DynamicObject| {
                object.metadata.name.as_ref().is_some_and(|name| names.contains(name))
            };
            match api.list(&ListParams::default().labels(labels)).await {
                Ok(listed) => found.extend(listed.items.into_iter().filter(|it| !named(it))),
                Err(error) => outcome = Err(error.into()),
            }
        }
        (found, outcome)
    }
}

async fn send(client: kube::Client, path: &str, patch: &json_patch::Patch) -> Result<()> {
    let request = Request::patch(path)
        .header(header::CONTENT_TYPE, "application/json-patch+json")
        .body(serde_json::to_vec(patch)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}

impl Bundle<'_> {
    /// The patch that writes the authorities wherever this object lacks them, if the object is
    /// still as it was read: places in lists may have changed.
    fn missing(&self, object: &DynamicObject) -> json_patch::Patch {
        let webhooks = object.data.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len);
        let mut places: Vec<String> =
            (0..webhooks).map(|index| format!("/webhooks/{index}/clientConfig")).collect();
        places.push("/spec/conversion/webhook/clientConfig".to_owned());
        let lacking = places.into_iter().filter_map(|place| {
            let found = object.data.pointer(&place)?.get("caBundle");
            let wanted = Value::String(self.beside(found));
            (found != Some(&wanted)).then_some((place, wanted))
        });
        let mut operations: Vec<PatchOperation> = lacking
            .map(|(place, value)| {
                let path = pointer(&format!("{place}/caBundle"));
                PatchOperation::Add(AddOperation { path, value })
            })
            .collect();
        if let (false, Some(version)) = (operations.is_empty(), &object.metadata.resource_version) {
            let path = pointer("/metadata/resourceVersion");
            let value = Value::String(version.clone());
            operations.insert(0, PatchOperation::Test(TestOperation { path, value }));
        }
        json_patch::Patch(operations)
    }

    /// The authorities, with those that stand there until they expire: another replica may need
    /// them, or whoever served before. Always in the same order, so that replicas agree.
    fn beside(&self, found: Option<&Value>) -> String {
        let found = found.and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
        let others = |other: &Trusted| !self.trusted.contains(other) && !is_over(other, self.now);
        let found = Trusted::read_all(&found.unwrap_or_default()).into_iter().filter(others);
        let mut all = tidied(found.collect());
        all.extend_from_slice(self.trusted);
        let all = ordered(all);
        STANDARD.encode(all.iter().map(|trusted| trusted.pem.as_str()).collect::<String>())
    }
}

fn pointer(text: &str) -> PointerBuf {
    PointerBuf::parse(text.to_owned()).unwrap_or_default()
}
