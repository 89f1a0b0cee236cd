//! Webhooks of the framework, asked by the API server of the cluster.

mod conversion;
mod names;
mod shared_ca;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use kube::api::{DeleteParams, Patch};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::webhook::{
    AdmissionRequest, AdmissionResponse, ClientConfig, CustomDefaulter, CustomValidator, Defaulter,
    Denied, FailurePolicy, FieldError, Operation, Validator, Warnings, Webhook, WebhookServer,
    install,
};
use steersman::{Client, Result};
use steersman_testkit::Cluster;

/// A shop that wants a number of sellers.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "demo.steersman.dev", version = "v1", kind = "Shop", namespaced)]
struct ShopSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sellers: Option<i32>,
    #[serde(default)]
    owner: String,
}

impl Defaulter for Shop {
    fn set_defaults(&mut self, request: &AdmissionRequest) -> Result<(), Denied> {
        self.spec.sellers.get_or_insert(2);
        if self.spec.owner.is_empty() {
            self.spec.owner = request.user().to_owned();
        }
        Ok(())
    }
}

impl Validator for Shop {
    const OPERATIONS: &'static [Operation] =
        &[Operation::Create, Operation::Update, Operation::Delete];

    fn validate_create(&self, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        let sellers = self.spec.sellers.unwrap_or_default();
        if sellers > 0 {
            return Ok(Warnings::new());
        }
        Err(FieldError::invalid("spec.sellers", sellers, "somebody must sell").into())
    }

    fn validate_update(&self, old: &Self, request: &AdmissionRequest) -> Result<Warnings, Denied> {
        if self.spec.owner != old.spec.owner {
            return Err(FieldError::forbidden("spec.owner", "cannot change").into());
        }
        self.validate_create(request)
    }

    fn validate_delete(&self, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        match self.annotations().contains_key("closed") {
            true => Ok(Warnings::new()),
            false => Err(Denied::because("close the shop first")),
        }
    }
}

fn shop(name: &str, sellers: Option<i32>) -> Shop {
    Shop::new(name, ShopSpec { sellers, owner: String::new() })
}

#[steersman::test(anywhere)]
async fn a_kind_sets_its_own_defaults(cluster: Cluster) -> Result<()> {
    cluster.install::<Shop>().await?;
    cluster.webhooks(WebhookServer::builder("shop").defaults::<Shop>()).await?;
    let made = cluster.client().create(&shop("corner", None)).await?;
    assert_eq!(made.spec.sellers, Some(2));
    assert!(!made.spec.owner.is_empty(), "who asked owns it");
    let stored: Shop = cluster.client().get("corner").await?.unwrap();
    assert_eq!(stored.spec.sellers, Some(2));
    let null = Patch::Merge(json!({"spec": {"sellers": null}}));
    let patched: Shop = cluster.client().patch("corner", &null).await?;
    assert_eq!(patched.spec.sellers, Some(2), "on updates as well");
    Ok(())
}

#[steersman::test(anywhere)]
async fn a_kind_refuses_what_makes_no_sense(cluster: Cluster) -> Result<()> {
    cluster.install::<Shop>().await?;
    cluster.webhooks(WebhookServer::builder("shop").validates::<Shop>()).await?;
    let client = cluster.client();
    let refused = client.create(&shop("empty", Some(0))).await.unwrap_err();
    let status = refused.status().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let cause = &status.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.field, "spec.sellers");
    let wanted = "admission webhook \"validate.v1.shops.demo.steersman.dev\" denied the request: \
                  Shop.demo.steersman.dev \"empty\" is invalid: spec.sellers: Invalid value: 0: \
                  somebody must sell";
    assert_eq!(status.message, wanted);
    assert!(client.get::<Shop>("empty").await?.is_none());

    client.create(&shop("corner", Some(1))).await?;
    let sold = Patch::Merge(json!({"spec": {"owner": "bob"}}));
    let refused = client.patch::<Shop, Value>("corner", &sold).await.unwrap_err();
    assert!(refused.to_string().contains("spec.owner: Forbidden: cannot change"), "{refused}");

    let refused = client.delete::<Shop>("corner", &DeleteParams::default()).await.unwrap_err();
    assert_eq!(refused.status().unwrap().code, 403);
    assert!(refused.to_string().ends_with("denied the request: close the shop first"));
    let closed = Patch::Merge(json!({"metadata": {"annotations": {"closed": "yes"}}}));
    client.patch::<Shop, Value>("corner", &closed).await?;
    client.delete::<Shop>("corner", &DeleteParams::default()).await?;
    assert!(client.get::<Shop>("corner").await?.is_none());
    Ok(())
}

#[steersman::test(anywhere)]
async fn defaults_are_set_before_anything_is_validated(cluster: Cluster) -> Result<()> {
    cluster.install::<Shop>().await?;
    cluster.webhooks(WebhookServer::builder("shop").validates::<Shop>().defaults::<Shop>()).await?;
    let made = cluster.client().create(&shop("corner", None)).await?;
    assert_eq!(made.spec.sellers, Some(2));
    Ok(())
}

/// Gives every Pod a sidecar, unless its namespace says otherwise.
struct Sidecar {
    client: Client,
}

impl CustomDefaulter<Pod> for Sidecar {
    const OPERATIONS: &'static [Operation] = &[Operation::Create];

    async fn set_defaults(&self, pod: &mut Pod, request: &AdmissionRequest) -> Result<(), Denied> {
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let namespace: Option<Namespace> = self.client.get(namespace).await?;
        if namespace.is_some_and(|namespace| namespace.labels().contains_key("plain")) {
            return Ok(());
        }
        let containers = &mut pod.spec.get_or_insert_default().containers;
        if !containers.iter().any(|container| container.name == "mesh") {
            let image = Some("mesh".to_owned());
            containers.push(Container { name: "mesh".to_owned(), image, ..Container::default() });
        }
        Ok(())
    }
}

impl CustomValidator<Pod> for Sidecar {
    const OPERATIONS: &'static [Operation] = &[Operation::Create];

    async fn validate_create(&self, pod: &Pod, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
        match containers.unwrap_or_default().iter().any(|container| container.name == "mesh") {
            true => Ok(Warnings::new()),
            false => Err(Denied::because("a Pod needs its mesh")),
        }
    }

    async fn validate_update(
        &self,
        _: &Pod,
        _: &Pod,
        _: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        Ok(Warnings::new())
    }
}

fn pod(name: &str) -> Pod {
    let pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "nobody",
        "containers": [{"name": "web", "image": "web"}]}});
    serde_json::from_value(pod).unwrap()
}

fn containers(pod: &Pod) -> Vec<&str> {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
    containers.unwrap_or_default().iter().map(|container| container.name.as_str()).collect()
}

#[steersman::test]
async fn the_pods_of_a_deployment_get_their_sidecar(cluster: Cluster) -> Result<()> {
    let sidecar = Sidecar { client: cluster.client().clone() };
    cluster.webhooks(WebhookServer::builder("shop").defaults_with::<Pod>(sidecar)).await?;
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "web", "image": "web"}]}},
        },
    }))?;
    cluster.client().create(&deployment).await?;
    let available = |deployment: &Deployment| {
        deployment.status.as_ref().and_then(|status| status.available_replicas) == Some(2)
    };
    cluster.eventually("web", available).await?;
    let pods: Vec<Pod> = cluster.client().list(&steersman::ListOptions::default()).await?;
    let ours: Vec<&Pod> = pods.iter().filter(|pod| pod.labels().contains_key("app")).collect();
    assert_eq!(ours.len(), 2);
    assert!(ours.iter().all(|pod| containers(pod) == ["web", "mesh"]));
    Ok(())
}

#[steersman::test]
async fn a_defaulter_may_ask_the_api_server_itself(cluster: Cluster) -> Result<()> {
    let sidecar = Sidecar { client: cluster.client().clone() };
    cluster.webhooks(WebhookServer::builder("shop").defaults_with::<Pod>(sidecar)).await?;
    let made = cluster.client().create(&pod("first")).await?;
    assert_eq!(containers(&made), ["web", "mesh"]);
    let plain = Patch::Merge(json!({"metadata": {"labels": {"plain": ""}}}));
    cluster.client().patch::<Namespace, Value>("default", &plain).await?;
    let made = cluster.client().create(&pod("second")).await?;
    assert_eq!(containers(&made), ["web"]);
    Ok(())
}

#[steersman::test(anywhere)]
async fn a_dry_run_is_validated_too(cluster: Cluster) -> Result<()> {
    let sidecar = Sidecar { client: cluster.client().clone() };
    cluster.webhooks(WebhookServer::builder("shop").validates_with::<Pod>(sidecar)).await?;
    let pods: kube::Api<Pod> = kube::Api::default_namespaced(cluster.client().kube().clone());
    let dry = kube::api::PostParams { dry_run: true, ..kube::api::PostParams::default() };
    let refused = pods.create(&dry, &pod("web")).await.unwrap_err();
    assert!(refused.to_string().contains("a Pod needs its mesh"), "{refused}");
    Ok(())
}

#[steersman::test]
async fn a_panic_refuses_and_a_webhook_that_is_not_there_does_as_configured(
    cluster: Cluster,
) -> Result<()> {
    async fn broken(_: AdmissionRequest) -> AdmissionResponse {
        panic!("as it was told")
    }
    let rules: Vec<_> = serde_json::from_value(json!([{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods"], "operations": ["CREATE"]}]))?;
    let webhooks =
        WebhookServer::builder("shop").with(Webhook::validating("/broken", rules.clone(), broken));
    cluster.webhooks(webhooks).await?;
    let refused = cluster.client().create(&pod("web")).await.unwrap_err().to_string();
    assert!(refused.contains("panic: as it was told"), "{refused}");

    let gone = |policy| {
        let webhook = Webhook::validating("/gone", rules.clone(), broken).failure_policy(policy);
        WebhookServer::builder("shop").with(webhook).in_process().build()
    };
    let nowhere = ClientConfig::url("https://nowhere.test");
    let kube = cluster.client().kube();
    cluster
        .serve_webhooks("https://nowhere.test", WebhookServer::builder("shop").build()?.handler());
    install(kube, &gone(FailurePolicy::Fail)?, &nowhere).await?;
    let refused = cluster.client().create(&pod("web")).await.unwrap_err().to_string();
    assert!(refused.contains("failed calling webhook"), "{refused}");
    install(kube, &gone(FailurePolicy::Ignore)?, &nowhere).await?;
    cluster.client().create(&pod("web")).await?;
    Ok(())
}

#[steersman::test(anywhere)]
async fn what_nobody_decides_about_in_time_is_as_the_failure_policy_says(
    cluster: Cluster,
) -> Result<()> {
    async fn stuck(_: AdmissionRequest) -> AdmissionResponse {
        std::future::pending().await
    }
    let rules: Vec<_> = serde_json::from_value(json!([{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods"], "operations": ["CREATE"]}]))?;
    let stuck = |path: &str, policy| {
        let webhook = Webhook::validating(path, rules.clone(), stuck).failure_policy(policy);
        webhook.timeout(std::time::Duration::from_secs(1))
    };
    let ignored = WebhookServer::builder("shop").with(stuck("/ignored", FailurePolicy::Ignore));
    cluster.webhooks(ignored).await?;
    cluster.client().create(&pod("passed")).await?;
    Ok(())
}
