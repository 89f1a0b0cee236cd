//! Webhooks on the cluster of a test: without a socket where the cluster is ours, else behind a
//! socket of this machine, with a certificate of their own, for the namespace of the test alone.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::webhook::{ClientConfig, Configurations, WebhookServerBuilder, install};
use steersman::{Client, Result};
use tokio::net::TcpListener;

use crate::Cluster;

/// Where the webhooks of a test are without a socket.
const ORIGIN: &str = "https://webhooks.test";
/// Names the host by which a cluster that exists reaches this machine.
const HOST: &str = "STEERSMAN_TEST_WEBHOOK_HOST";
/// How long an API server takes to hear of webhooks that are told to another part of it.
const HEARD: Duration = Duration::from_secs(3);
/// The label by which namespaces are chosen by name.
const NAME: &str = "kubernetes.io/metadata.name";

impl Cluster {
    /// Serves webhooks and tells the API server of them. On a cluster that exists they are asked
    /// about the namespace of the test alone, at 127.0.0.1 or the host that
    /// `STEERSMAN_TEST_WEBHOOK_HOST` names, and are taken away when the test ends; conversions
    /// are for the whole cluster, so only one test at a time should have those of a kind.
    pub async fn webhooks(&self, webhooks: WebhookServerBuilder) -> Result<()> {
        if !self.is_ours() {
            return self.webhooks_on_socket(webhooks).await;
        }
        let server = webhooks.in_process().build()?;
        self.serve_webhooks(ORIGIN, server.handler());
        install(self.client().kube(), &server, &ClientConfig::url(ORIGIN)).await
    }

    async fn webhooks_on_socket(&self, webhooks: WebhookServerBuilder) -> Result<()> {
        let host = std::env::var(HOST).ok().filter(|host| !host.is_empty());
        let bound = if host.is_some() { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let host = host.unwrap_or_else(|| bound.to_string());
        let listener = TcpListener::bind((bound, 0)).await?;
        let port = listener.local_addr()?.port();
        let server = webhooks.named(self.namespace()).self_signed([host.clone()]).build()?;
        let authority = server.ca().unwrap_or_default().to_owned();
        let reached = ClientConfig::url(format!("https://{host}:{port}")).ca_bundle(authority);
        let conversions = server.conversions(&reached);
        let configurations = server.configurations(&reached);
        tokio::spawn(server.run_on(listener, Default::default()));
        for (definition, conversion) in conversions {
            self.convert(&definition, &json!({"spec": {"conversion": conversion}})).await?;
        }
        self.configure(configurations).await?;
        tokio::time::sleep(HEARD).await;
        Ok(())
    }

    async fn convert(&self, definition: &str, conversion: &Value) -> Result<()> {
        let client = self.client().clone();
        let name = definition.to_owned();
        let never = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        let restore = async move { patch(&client, &name, &never).await };
        self.clean_up_by(restore.boxed());
        patch(self.client(), definition, conversion).await
    }

    async fn configure(&self, configurations: Configurations) -> Result<()> {
        let Configurations { mutating, validating } = configurations;
        if let Some(mut mutating) = mutating {
            let webhooks = mutating.webhooks.iter_mut().flatten();
            webhooks.for_each(|webhook| self.restrict(&mut webhook.namespace_selector));
            let client = self.client().clone();
            let name = mutating.metadata.name.clone();
            self.clean_up_by(
                async move {
                    let name = name.unwrap_or_default();
                    let params = DeleteParams::default();
                    client.delete::<MutatingWebhookConfiguration>(&*name, &params).await?;
                    Ok(())
                }
                .boxed(),
            );
            self.client().create(&mutating).await?;
        }
        if let Some(mut validating) = validating {
            let webhooks = validating.webhooks.iter_mut().flatten();
            webhooks.for_each(|webhook| self.restrict(&mut webhook.namespace_selector));
            let client = self.client().clone();
            let name = validating.metadata.name.clone();
            self.clean_up_by(
                async move {
                    let name = name.unwrap_or_default();
                    let params = DeleteParams::default();
                    client.delete::<ValidatingWebhookConfiguration>(&*name, &params).await?;
                    Ok(())
                }
                .boxed(),
            );
            self.client().create(&validating).await?;
        }
        Ok(())
    }

    /// Lets a webhook be asked about nothing but the namespace of the test.
    fn restrict(&self, selector: &mut Option<LabelSelector>) {
        let labels = selector.get_or_insert_default().match_labels.get_or_insert_default();
        labels.insert(NAME.to_owned(), self.namespace().to_owned());
    }
}

async fn patch(client: &Client, definition: &str, patch: &Value) -> Result<()> {
    client.patch::<CustomResourceDefinition, _>(definition, &Patch::Merge(patch)).await?;
    Ok(())
}
