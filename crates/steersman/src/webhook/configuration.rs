//! Webhooks as the API server must know them: configurations as data, and their installation.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as crd;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::registration::Phase;
use super::server::WebhookServer;
use super::site::CONVERT;
use crate::error::Result;

/// Who installs configurations.
const FIELD_MANAGER: &str = "steersman-webhooks";

/// How the API server reaches a webhook server.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    target: Target,
    ca_bundle: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Target {
    Url(String),
    Service { namespace: String, name: String, port: Option<i32> },
}

impl ClientConfig {
    /// By the address of the server: `https://host:9443`.
    pub fn url(origin: impl Into<String>) -> Self {
        let origin = origin.into().trim_end_matches('/').to_owned();
        Self { target: Target::Url(origin), ca_bundle: None }
    }

    /// By a Service in front of it, at port 443.
    pub fn service(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let namespace = namespace.into();
        let name = name.into();
        Self { target: Target::Service { namespace, name, port: None }, ca_bundle: None }
    }

    /// At another port of the Service.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        if let Target::Service { port: chosen, .. } = &mut self.target {
            *chosen = Some(port.into());
        }
        self
    }

    /// Trusts this authority, given in PEM.
    #[must_use]
    pub fn ca_bundle(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_bundle = Some(pem.into());
        self
    }

    fn at(&self, path: &str) -> WebhookClientConfig {
        let (url, service) = match &self.target {
            Target::Url(origin) => (Some(format!("{origin}{path}")), None),
            Target::Service { namespace, name, port } => {
                let namespace = namespace.clone();
                let name = name.clone();
                let path = path.to_owned();
                (None, Some(ServiceReference { namespace, name, path: Some(path), port: *port }))
            }
        };
        WebhookClientConfig { url, service, ca_bundle: self.ca_bundle.clone().map(ByteString) }
    }

    /// The same in the types of custom resource definitions.
    fn at_for_crd(&self, path: &str) -> crd::WebhookClientConfig {
        let WebhookClientConfig { url, service, ca_bundle } = self.at(path);
        let service = service.map(|service| {
            let ServiceReference { name, namespace, path, port } = service;
            crd::ServiceReference { name, namespace, path, port }
        });
        crd::WebhookClientConfig { url, service, ca_bundle }
    }
}

/// The configurations of the admission webhooks of a server.
#[derive(Clone, Debug, Default)]
pub struct Configurations {
    /// Of those that may change objects, if there are any.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// Of those that only refuse, if there are any.
    pub validating: Option<ValidatingWebhookConfiguration>,
}

impl WebhookServer {
    /// The configurations of its admission webhooks, for manifests and for [`install`].
    pub fn configurations(&self, client: &ClientConfig) -> Configurations {
        let of = |phase| -> Option<Vec<MutatingWebhook>> {
            let found = self.site.registrations(phase);
            let reached = found.map(|(path, webhook)| MutatingWebhook {
                client_config: client.at(path),
                ..webhook.clone()
            });
            Some(reached.collect()).filter(|webhooks: &Vec<_>| !webhooks.is_empty())
        };
        let named = |phase| ObjectMeta {
            name: Some(self.configuration_name(phase)),
            ..ObjectMeta::default()
        };
        Configurations {
            mutating: of(Phase::Mutating).map(|webhooks| MutatingWebhookConfiguration {
                metadata: named(Phase::Mutating),
                webhooks: Some(webhooks),
            }),
            validating: of(Phase::Validating).map(|webhooks| ValidatingWebhookConfiguration {
                metadata: named(Phase::Validating),
                webhooks: Some(webhooks.into_iter().map(validating).collect()),
            }),
        }
    }

    /// The names of the custom resource definitions whose versions it converts, and what their
    /// `spec.conversion` must say.
    pub fn conversions(
        &self,
        client: &ClientConfig,
    ) -> Vec<(String, crd::CustomResourceConversion)> {
        let conversion = crd::CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(crd::WebhookConversion {
                client_config: Some(client.at_for_crd(CONVERT)),
                conversion_review_versions: vec!["v1".to_owned()],
            }),
        };
        self.converted().into_iter().map(|name| (name, conversion.clone())).collect()
    }

    /// The names of the custom resource definitions whose versions it converts.
    pub(super) fn converted(&self) -> Vec<String> {
        let resources = self.site.conversions().iter().map(|conversion| &conversion.resource);
        resources.map(|resource| format!("{}.{}", resource.plural, resource.group)).collect()
    }

    pub(super) fn configuration_name(&self, phase: Phase) -> String {
        match phase {
            Phase::Mutating => format!("{}-mutating", self.name),
            Phase::Validating => format!("{}-validating", self.name),
        }
    }
}

fn validating(webhook: MutatingWebhook) -> ValidatingWebhook {
    ValidatingWebhook {
        admission_review_versions: webhook.admission_review_versions,
        client_config: webhook.client_config,
        failure_policy: webhook.failure_policy,
        match_conditions: webhook.match_conditions,
        match_policy: webhook.match_policy,
        name: webhook.name,
        namespace_selector: webhook.namespace_selector,
        object_selector: webhook.object_selector,
        rules: webhook.rules,
        side_effects: webhook.side_effects,
        timeout_seconds: webhook.timeout_seconds,
    }
}

/// Registers the webhooks of this server with the API server: applies its configurations and changes
/// `spec.conversion` of the custom resource definitions, which must exist. For development and
/// tests; in production manifests do this.
pub async fn install(
    client: &kube::Client,
    server: &WebhookServer,
    reached: &ClientConfig,
) -> Result<()> {
    for (name, conversion) in server.conversions(reached) {
        let definitions: Api<crd::CustomResourceDefinition> = Api::all(client.clone());
        let patch = Patch::Merge(json!({"spec": {"conversion": conversion}}));
        let params =
            PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..Default::default() };
        definitions.patch(&name, &params, &patch).await?;
    }
    let Configurations { mutating, validating } = server.configurations(reached);
    if let Some(mutating) = mutating {
        apply(client, &server.configuration_name(Phase::Mutating), &mutating).await?;
    }
    if let Some(validating) = validating {
        apply(client, &server.configuration_name(Phase::Validating), &validating).await?;
    }
    Ok(())
}

async fn apply<K>(client: &kube::Client, name: &str, object: &K) -> Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
    K: Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let params = PatchParams::apply(FIELD_MANAGER).force();
    Api::<K>::all(client.clone()).patch(name, &params, &Patch::Apply(object)).await?;
    Ok(())
}
