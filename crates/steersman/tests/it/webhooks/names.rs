//! What configurations are called: two programs do not get into each other's way, and what one
//! prints is what it installs.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use steersman::manifests::Manifests;
use steersman::webhook::{
    AdmissionRequest, ClientConfig, CustomDefaulter, CustomValidator, Denied, Operation, Warnings,
    WebhookServer, install,
};
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

/// Signs every ConfigMap, and refuses what is not signed.
struct Signature(&'static str);

impl CustomDefaulter<ConfigMap> for Signature {
    const OPERATIONS: &'static [Operation] = &[Operation::Create];

    async fn set_defaults(&self, map: &mut ConfigMap, _: &AdmissionRequest) -> Result<(), Denied> {
        map.labels_mut().insert(self.0.to_owned(), "signed".to_owned());
        Ok(())
    }
}

impl CustomValidator<ConfigMap> for Signature {
    const OPERATIONS: &'static [Operation] = &[Operation::Create];

    async fn validate_create(
        &self,
        map: &ConfigMap,
        _: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        match map.labels().contains_key(self.0) {
            true => Ok(Warnings::new()),
            false => Err(Denied::because("it is not signed")),
        }
    }

    async fn validate_update(
        &self,
        _: &ConfigMap,
        _: &ConfigMap,
        _: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        Ok(Warnings::new())
    }
}

/// The webhooks of a program, and how it is reached.
fn program(cluster: &Cluster, name: &'static str) -> Result<(WebhookServer, ClientConfig)> {
    let server = WebhookServer::builder(name)
        .defaults_with::<ConfigMap>(Signature(name))
        .validates_with::<ConfigMap>(Signature(name))
        .in_process()
        .build()?;
    let origin = format!("https://{name}.test");
    cluster.serve_webhooks(&origin, server.handler());
    Ok((server, ClientConfig::url(origin)))
}

/// The names of all configurations.
async fn configurations(cluster: &Cluster) -> Result<Vec<String>> {
    let all = ListOptions::default();
    let mutating: Vec<MutatingWebhookConfiguration> = cluster.client().list(&all).await?;
    let validating: Vec<ValidatingWebhookConfiguration> = cluster.client().list(&all).await?;
    let names = mutating.iter().map(ResourceExt::name_any);
    Ok(names.chain(validating.iter().map(ResourceExt::name_any)).collect())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn two_programs_of_a_cluster_have_their_own(cluster: Cluster) -> Result<()> {
    for name in ["bank", "shop"] {
        let (server, reached) = program(&cluster, name)?;
        install(cluster.client().kube(), &server, &reached).await?;
    }
    let names = ["bank-mutating", "shop-mutating", "bank-validating", "shop-validating"];
    assert_eq!(configurations(&cluster).await?, names);
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
    let made = cluster.client().create(&map).await?;
    assert!(made.labels().contains_key("bank") && made.labels().contains_key("shop"));
    Ok(())
}

/// Applies an object as `kubectl apply --server-side` would, without force.
async fn apply(client: &kube::Client, object: &Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let resource = match object.types.as_ref().map(|types| types.kind.as_str()) {
        Some("MutatingWebhookConfiguration") => {
            kube::core::ApiResource::erase::<MutatingWebhookConfiguration>(&())
        }
        _ => kube::core::ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    api.patch(&object.name_any(), &PatchParams::apply("kubectl"), &Patch::Apply(&object)).await?;
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn what_is_printed_is_what_is_installed(cluster: Cluster) -> Result<()> {
    let (server, reached) = program(&cluster, "shop")?;
    install(cluster.client().kube(), &server, &reached).await?;
    let installed = configurations(&cluster).await?;
    // Whatever the program is called otherwise: the server's name decides.
    let manifests = Manifests::new("shop-operator", "default").webhooks(&server, &reached);
    let printed = manifests.objects();
    let of_webhooks = |object: &&Value| {
        object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
    };
    let printed: Vec<&Value> = printed.iter().filter(of_webhooks).collect();
    assert_eq!(printed.len(), 2);
    let version = async || -> Result<Option<i64>> {
        let found: Option<MutatingWebhookConfiguration> =
            cluster.client().get("shop-mutating").await?;
        Ok(found.and_then(|found| found.metadata.generation))
    };
    let before = version().await?;
    for object in printed {
        apply(cluster.client().kube(), object).await?; // a conflict would be an error
    }
    assert_eq!(configurations(&cluster).await?, installed);
    assert_eq!(version().await?, before, "it was so already");
    Ok(())
}
