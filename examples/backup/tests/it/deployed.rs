//! The program as it is deployed: what it prints allows whatever it asks for, and deploy.yaml runs
//! it under that.

use backup::Backup;
use backup::operator::{NAME, NAMESPACE, manifests, operator, served};
use backup::webhooks::webhooks;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::DeleteParams;
use serde::de::DeserializeOwned;
use serde_json::Value;
use steersman::Manager;
use steersman::prelude::*;
use steersman::webhook::SharedCa;
use steersman_testkit::Cluster;

use crate::fixture::{Memory, db, prepared, until};

/// The objects of a kind among others.
fn all<K: k8s_openapi::Resource + DeserializeOwned>(objects: &[Value]) -> Vec<K> {
    let of_kind = |object: &&Value| object["kind"] == K::KIND;
    let typed = |object: &Value| serde_json::from_value(object.clone()).unwrap();
    objects.iter().filter(of_kind).map(typed).collect()
}

/// Under real rules, and with everything that it does: the webhooks' authority as well.
#[steersman::test(nodes = 0, controllers = false)]
async fn what_it_prints_allows_whatever_it_asks_for(cluster: Cluster) -> Result<()> {
    let (_, node) = prepared(&cluster).await?;
    let webhooks = || {
        let authority = SharedCa::for_hosts([format!("{NAME}.{NAMESPACE}.svc")]);
        webhooks().in_process().shared_ca(authority).build()
    };
    let deployed = cluster.deploy(&manifests(Some(&webhooks()?))).await?;
    let server = webhooks()?;
    cluster.serve_webhooks(&format!("https://{NAME}.{NAMESPACE}.svc"), server.handler());
    let store = Memory::default();
    let manager = operator(Manager::new(deployed.client()), store.clone());
    let running = manager.webhooks(server).start();
    cluster.client().create(&db("1m", 1)).await?;
    until(&cluster, "00:03:30").await; // runs were started, and some retired
    assert_eq!(store.present().len(), 1);
    cluster.client().delete::<Backup>("db", &DeleteParams::default()).await?;
    cluster.gone::<Backup>("db").await?;
    running.stop().await;
    assert_eq!((node.seen().len(), store.deleted().len()), (3, 1));
    let authority = ObjectKey::namespaced(NAMESPACE, format!("{NAME}-webhook-ca"));
    assert!(cluster.client().get::<Secret>(authority).await?.is_some());
    assert_eq!(deployed.missing(), []);
    Ok(())
}

#[steersman::test(nodes = 2)]
async fn it_is_deployed_under_what_it_prints(cluster: Cluster) -> Result<()> {
    let deployed: Vec<Value> = serde_saphyr::from_multiple(include_str!("../../deploy.yaml"))?;
    let printed = manifests(Some(&served()?));
    for namespace in all::<Namespace>(&deployed) {
        cluster.client().apply(&namespace).await?;
    }
    for object in printed.objects().iter().chain(&deployed) {
        apply(&cluster, object).await?;
    }
    let available = |deployment: &Deployment| {
        deployment.status.as_ref().is_some_and(|status| status.available_replicas == Some(2))
    };
    cluster.eventually(ObjectKey::namespaced(NAMESPACE, NAME), available).await?;

    // The Service in front of the webhooks is the one that their configurations name.
    let service = all::<Service>(&deployed).remove(0);
    assert_eq!(ObjectKey::of(&service), ObjectKey::namespaced(NAMESPACE, NAME));
    for configuration in all::<ValidatingWebhookConfiguration>(&printed.objects()) {
        for webhook in configuration.webhooks.into_iter().flatten() {
            let asked = webhook.client_config.service.expect("it is reached by a Service");
            assert_eq!((asked.name.as_str(), asked.namespace.as_str()), (NAME, NAMESPACE));
        }
    }
    Ok(())
}

/// Applies an object of whatever kind, as kubectl does.
async fn apply(cluster: &Cluster, object: &Value) -> Result<()> {
    let object: kube::core::DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.clone().unwrap_or_default();
    let kind = cluster.client().discover(&kube::core::GroupVersionKind::try_from(&types)?).await?;
    cluster.client().of_kind(&kind).apply(&object).await?;
    Ok(())
}
