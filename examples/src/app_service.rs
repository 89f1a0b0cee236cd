//! An AppService keeps one Deployment and reports how much of it is available.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steersman::controller::Builder;
use steersman::manifests::Manifests;
use steersman::prelude::*;

/// What the author of an AppService asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "demo.steersman.dev",
    version = "v1alpha1",
    kind = "AppService",
    namespaced,
    status = "AppServiceStatus",
    shortname = "app",
    printcolumn(json_path = ".spec.replicas", name = "Replicas", type_ = "integer"),
    printcolumn(json_path = ".status.availableReplicas", name = "Available", type_ = "integer")
)]
#[serde(rename_all = "camelCase")]
pub struct AppServiceSpec {
    /// The name of the Deployment to keep.
    pub deployment_name: String,
    /// How many Pods it shall have.
    #[schemars(range(min = 0))]
    pub replicas: i32,
}

/// What was observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AppServiceStatus {
    /// How many Pods are available.
    pub available_replicas: i32,
}

/// Keeps one Deployment per AppService and reports how much of it is available.
async fn reconcile(app: Arc<AppService>, ctx: Context<AppService>) -> Result<Next> {
    let deployment = ctx.apply(deployment_for(&app)).await?;
    ctx.status(AppServiceStatus { available_replicas: available(&deployment) });
    Ok(Next::Settled)
}

/// The controller of AppServices.
pub fn app_services() -> Controller {
    app_services_with(|builder| builder)
}

/// The same with what somebody adds who has many of them: workers, or shards.
pub fn app_services_with(
    adjust: impl FnOnce(Builder<AppService>) -> Builder<AppService>,
) -> Controller {
    adjust(Controller::of::<AppService>().owns::<Deployment>()).reconcile(reconcile)
}

/// What a cluster must have before.
pub fn manifests() -> Manifests {
    let manifests = Manifests::new("app-services", "default").definition(AppService::crd());
    manifests.controller(&app_services())
}

/// An AppService with a Deployment of the same name.
pub fn app_service(name: &str, replicas: i32) -> AppService {
    AppService::new(name, AppServiceSpec { deployment_name: name.into(), replicas })
}

impl AppService {
    /// How many Pods are available, as last reported.
    pub fn available(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.available_replicas)
    }
}

/// The Deployment that an AppService asks for.
fn deployment_for(app: &AppService) -> Deployment {
    let name = app.spec.deployment_name.clone();
    let labels = BTreeMap::from([("app".to_owned(), name.clone())]);
    let container =
        Container { name: "app".into(), image: Some("nginx:1.29".into()), ..Container::default() };
    Deployment {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(app.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn available(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}
