//! The program as it is deployed: what it prints allows whatever it asks for, and deploy.yaml runs
//! it under that.

use std::sync::{Arc, Mutex};

use backup::operator::{NAME, NAMESPACE, manifests, operator, served};
use backup::{Backup, Folders};
use http::{Method, Request};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::DeleteParams;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;
use steersman::Manager;
use steersman::prelude::*;
use steersman_testkit::Cluster;
use tower::ServiceExt;

use crate::fixture::{db, prepared, until};

/// The objects of a kind among others.
fn all<K: k8s_openapi::Resource + DeserializeOwned>(objects: &[Value]) -> Vec<K> {
    let of_kind = |object: &&Value| object["kind"] == K::KIND;
    let typed = |object: &Value| serde_json::from_value(object.clone()).unwrap();
    objects.iter().filter(of_kind).map(typed).collect()
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    verb: &'static str,
    group: String,
    resource: String,
    namespace: Option<String>,
}

impl Asked {
    /// Of a path such as `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`.
    fn of(request: &Request<Body>) -> Self {
        let mut parts = request.uri().path().trim_matches('/').split('/').collect::<Vec<_>>();
        let group = if parts.remove(0) == "apis" { parts.remove(0).to_owned() } else { "".into() };
        parts.remove(0); // the version
        let mut namespace = None;
        if parts[0] == "namespaces" && parts.len() > 2 {
            namespace = Some(parts[1].to_owned());
            parts.drain(..2);
        }
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let verb = match (request.method(), parts.len()) {
            (&Method::GET, _) if watches => "watch",
            (&Method::GET, 1) => "list",
            (&Method::GET, _) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            _ => "delete",
        };
        let resource = parts.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, part)| *part);
        let resource = resource.collect::<Vec<_>>().join("/");
        Self { verb, group, resource, namespace }
    }

    fn is_allowed_by(&self, rule: &PolicyRule) -> bool {
        let lists = |list: &Option<Vec<String>>, wanted: &str| {
            list.iter().flatten().any(|listed| listed == wanted)
        };
        lists(&Some(rule.verbs.clone()), self.verb)
            && lists(&rule.api_groups, &self.group)
            && lists(&rule.resources, &self.resource)
    }
}

#[steersman::test(nodes = 0, controllers = false)]
async fn what_it_prints_allows_whatever_it_asks_for(cluster: Cluster) -> Result<()> {
    prepared(&cluster).await?;
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.into());
    cluster.client().create(&namespace).await?;

    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    let api = cluster.inner().api().clone().map_request(move |request: Request<Body>| {
        notes.lock().unwrap().push(Asked::of(&request));
        request
    });
    let folder = std::env::temp_dir().join(format!("steersman-backup-{}", std::process::id()));
    let manager = Manager::new(kube::Client::new(api, "default"));
    let running = operator(manager, Folders::new(&folder)).start();
    cluster.client().create(&db("1m", 1)).await?;
    until(&cluster, "00:03:30").await; // runs were started, and some retired
    assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    cluster.client().delete::<Backup>("db", &DeleteParams::default()).await?;
    cluster.gone::<Backup>("db").await?;
    running.stop().await;
    assert_eq!(std::fs::read_dir(&folder)?.count(), 0);
    std::fs::remove_dir(&folder)?;

    let printed = manifests(None).objects();
    let everywhere: Vec<PolicyRule> =
        all::<ClusterRole>(&printed).into_iter().filter_map(|role| role.rules).flatten().collect();
    let at_home: Vec<PolicyRule> =
        all::<Role>(&printed).into_iter().filter_map(|role| role.rules).flatten().collect();
    let asked = asked.lock().unwrap();
    for asked in asked.iter() {
        let own = at_home.iter().filter(|_| asked.namespace.as_deref() == Some(NAMESPACE));
        let allowed = everywhere.iter().chain(own).any(|rule| asked.is_allowed_by(rule));
        assert!(allowed, "nothing allows {asked:?}");
    }
    for (verb, resource) in
        [("create", "pods"), ("delete", "pods"), ("patch", "backups/status"), ("create", "leases")]
    {
        let done = asked.iter().any(|asked| asked.verb == verb && asked.resource == resource);
        assert!(done, "it never came to {verb} {resource}");
    }
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
