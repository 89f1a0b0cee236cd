//! Services: where their Pods are, and which addresses they have.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, all_become, deployment, managers, object};

pub(crate) fn service(name: &str, spec: &Value) -> Service {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "shop"}},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        service["spec"][key] = value.clone();
    }
    object(service)
}

pub(crate) fn selecting(name: &str) -> Service {
    service(name, &json!({"selector": {"app": name}}))
}

/// How many endpoints slices have that are ready, and how many in all.
fn counted(slices: &[EndpointSlice]) -> (usize, usize) {
    let endpoints = || slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let ready =
        endpoints().filter(|it| it.conditions.as_ref().and_then(|it| it.ready) == Some(true));
    (ready.count(), endpoints().count())
}

/// The slices of a Service.
async fn slices(cluster: &Cluster, service: &str) -> Result<Vec<EndpointSlice>> {
    let label = format!("kubernetes.io/service-name={service}");
    cluster.client().list(&ListOptions::namespace("default").labels(label)).await
}

/// Waits until a Service has so many endpoints that are ready, and no others.
pub(crate) async fn has_endpoints(cluster: &Cluster, service: &str, count: usize) -> Result<()> {
    let of_service = |slice: &&EndpointSlice| {
        let labels = slice.metadata.labels.clone().unwrap_or_default();
        labels.get("kubernetes.io/service-name").is_some_and(|name| name == service)
    };
    let has = |all: &[EndpointSlice]| {
        let of_service: Vec<_> = all.iter().filter(of_service).cloned().collect();
        !of_service.is_empty() && counted(&of_service) == (count, count)
    };
    all_become(cluster, has).await.map(drop)
}

/// The addresses in Endpoints that are ready, and those that are not.
fn addresses(endpoints: &Endpoints) -> (usize, usize) {
    let subsets = || endpoints.subsets.iter().flatten();
    let ready = subsets().flat_map(|subset| subset.addresses.iter().flatten()).count();
    (ready, subsets().flat_map(|subset| subset.not_ready_addresses.iter().flatten()).count())
}

#[steersman::test]
async fn a_service_tells_in_both_forms_where_its_pods_are(cluster: Cluster) -> Result<()> {
    cluster.client().create(&selecting("web")).await?;
    has_endpoints(&cluster, "web", 0).await?;
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    has_endpoints(&cluster, "web", 3).await?;
    cluster.eventually("web", |it: &Endpoints| addresses(it) == (3, 0)).await?;
    let slice = slices(&cluster, "web").await?.remove(0);
    assert!(slice.metadata.name.as_ref().unwrap().starts_with("web-"));
    assert_eq!(slice.metadata.owner_references.as_ref().unwrap()[0].kind, "Service");
    assert_eq!(slice.metadata.labels.as_ref().unwrap()["team"], "shop");
    let endpoint = &slice.endpoints.as_ref().unwrap()[0];
    let name = endpoint.target_ref.as_ref().unwrap().name.clone().unwrap();
    let pod: Pod = cluster.client().get(&*name).await?.unwrap();
    assert_eq!(Some(&endpoint.addresses[0]), pod.status.as_ref().unwrap().pod_ip.as_ref());
    assert_eq!(endpoint.node_name, pod.spec.as_ref().unwrap().node_name);
    // A Pod that no longer has the labels is no endpoint, and what somebody deletes comes back.
    let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
    cluster.client().patch::<Pod, _>(&*name, &other).await?;
    let names = |all: &[EndpointSlice]| {
        let endpoints = all.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        endpoints.filter_map(|it| it.target_ref.clone()?.name).collect::<Vec<_>>()
    };
    all_become(&cluster, |all: &[EndpointSlice]| !names(all).contains(&name)).await?;
    cluster.client().delete::<Endpoints>("web", &DeleteParams::default()).await?;
    let slice = slice.metadata.name.unwrap();
    cluster.client().delete::<EndpointSlice>(&*slice, &DeleteParams::default()).await?;
    has_endpoints(&cluster, "web", 3).await?;
    cluster.eventually("web", |it: &Endpoints| addresses(it) == (3, 0)).await?;
    cluster.client().delete::<Service>("web", &DeleteParams::default()).await?;
    cluster.gone::<Endpoints>("web").await?;
    all_become(&cluster, |all: &[EndpointSlice]| names(all).is_empty()).await?;
    Ok(())
}

#[steersman::test]
async fn what_somebody_writes_into_endpoints_is_mirrored(cluster: Cluster) -> Result<()> {
    cluster.client().create(&service("db", &json!({}))).await?;
    let endpoints: Endpoints = object(json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "db", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}],
                     "ports": [{"name": "http", "port": 5432}]}],
    }));
    cluster.client().create(&endpoints).await?;
    has_endpoints(&cluster, "db", 2).await?;
    let fewer = json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}],
                                    "ports": [{"name": "http", "port": 5432}]}]});
    cluster.client().patch::<Endpoints, _>("db", &Patch::Merge(fewer)).await?;
    has_endpoints(&cluster, "db", 1).await?;
    assert_eq!(slices(&cluster, "db").await?.len(), 1);
    for (name, expected) in [
        ("changes{operation=\"update\"}", 1.0),
        ("endpoints_removed_per_sync_sum", 1.0),
        ("endpoints_desired", 1.0),
        ("num_endpoint_slices", 1.0),
        ("desired_endpoint_slices", 1.0),
    ] {
        let name = format!("endpoint_slice_mirroring_controller_{name}");
        assert_eq!(crate::objects::counted(&cluster, &name).await?, Some(expected), "{name}");
    }
    // A selector does it better.
    let selects = Patch::Merge(json!({"spec": {"selector": {"app": "db"}}}));
    cluster.client().patch::<Service, _>("db", &selects).await?;
    has_endpoints(&cluster, "db", 0).await?;
    cluster.client().delete::<Service>("db", &DeleteParams::default()).await?;
    cluster.gone::<Endpoints>("db").await
}

/// What is counted under a name.
async fn metric(cluster: &Cluster, name: &str) -> Result<usize> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = cluster.client().kube().request_text(request).await?;
    let lines = text.lines().filter(|line| line.starts_with(name));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum())
}

#[steersman::test]
async fn pods_are_replaced_with_few_writes_of_slices(cluster: Cluster) -> Result<()> {
    const PODS: i32 = 150;
    cluster.client().create(&selecting("web")).await?;
    let mut web = deployment("web", PODS, "nginx:1");
    web.spec.as_mut().unwrap().strategy =
        object(json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}));
    cluster.client().create(&web).await?;
    let runs = |web: &Deployment| {
        let status = web.status.clone().unwrap_or_default();
        status.observed_generation == web.metadata.generation
            && [status.replicas, status.updated_replicas, status.available_replicas]
                == [Some(PODS); 3]
    };
    cluster.eventually("web", runs).await?;
    has_endpoints(&cluster, "web", 150).await?;
    let changes = "endpoint_slice_controller_changes";
    let before = metric(&cluster, changes).await?;
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    let new = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    cluster.client().patch::<Deployment, _>("web", &Patch::Merge(new)).await?;
    cluster.eventually("web", runs).await?;
    has_endpoints(&cluster, "web", 150).await?;
    let all = slices(&cluster, "web").await?;
    assert!(all.len() <= 3, "{} slices for {PODS} Pods", all.len());
    assert_eq!(metric(&cluster, "endpoint_slice_controller_num_endpoint_slices").await?, all.len());
    let writes = metric(&cluster, changes).await? - before;
    // Each Pod comes and another goes, and many of them at once.
    assert!(writes <= 300, "{writes} writes of slices for {PODS} Pods that were replaced");
    Ok(())
}

#[steersman::test]
async fn load_balancers_have_an_address_of_the_pool_until_they_go(cluster: Cluster) -> Result<()> {
    cluster.run(steersman_controllers::load_balancer("10.200.0.0/24".parse()?));
    let balancer = json!({"type": "LoadBalancer", "selector": {"app": "web"}});
    for name in ["a", "b"] {
        cluster.client().create(&service(name, &balancer)).await?;
    }
    let address = |service: &Service| {
        let balancer = service.status.clone()?.load_balancer?;
        let ingress = balancer.ingress?.into_iter().next()?;
        Some((ingress.ip?, ingress.ip_mode?))
    };
    cluster.eventually("a", |it: &Service| address(it).is_some()).await?;
    cluster.eventually("b", |it: &Service| address(it).is_some()).await?;
    let mut found: Vec<_> = all::<Service>(&cluster).await?.iter().filter_map(address).collect();
    found.sort();
    let vip = |ip: &str| (ip.to_owned(), "VIP".to_owned());
    assert_eq!(found, [vip("10.200.0.1"), vip("10.200.0.2")]);
    let b: Service = cluster.client().get("b").await?.unwrap();
    let finalizers = b.metadata.finalizers.clone();
    assert_eq!(finalizers, Some(vec!["service.kubernetes.io/load-balancer-cleanup".into()]));
    let inside = Patch::Merge(json!({"spec": {"type": "ClusterIP"}}));
    cluster.client().patch::<Service, _>("a", &inside).await?;
    let is_free = |it: &Service| address(it).is_none() && it.metadata.finalizers.is_none();
    cluster.eventually("a", is_free).await?;
    cluster.client().delete::<Service>("b", &DeleteParams::default()).await?;
    cluster.gone::<Service>("b").await?;
    let told = told(&cluster, "Service").await?;
    for line in [
        "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer",
        "service-controller Normal EnsuredLoadBalancer: Ensured load balancer",
        "service-controller Normal DeletingLoadBalancer: Deleting load balancer",
        "service-controller Normal DeletedLoadBalancer: Deleted load balancer",
    ] {
        assert!(told.iter().any(|it| it == line), "{line} in {told:#?}");
    }
    Ok(())
}

#[steersman::test]
async fn people_are_told_what_becomes_of_a_load_balancer(cluster: Cluster) -> Result<()> {
    for node in ["node-0", "node-1", "node-2"] {
        cluster.eventually(node, |_: &k8s_openapi::api::core::v1::Node| true).await?;
    }
    cluster.run(steersman_controllers::load_balancer("10.200.0.0/30".parse()?));
    let balancer = json!({"type": "LoadBalancer", "selector": {"app": "web"}});
    cluster.client().create(&service("a", &balancer)).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let said = async |reason: &str| -> Result<usize> {
        let events: Vec<k8s_openapi::api::core::v1::Event> = all(&cluster).await?;
        let of = events.iter().filter(|it| it.reason.as_deref() == Some(reason));
        Ok(of.map(|it| usize::try_from(it.count.unwrap_or(1)).unwrap_or(0)).sum())
    };
    assert_eq!(said("EnsuredLoadBalancer").await?, 1);
    let change = |change: Value| Patch::Merge(change);
    let labelled = change(json!({"metadata": {"labels": {"x": "y"}}}));
    cluster.client().patch::<Service, _>("a", &labelled).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(said("EnsuredLoadBalancer").await?, 1, "that is none of its business");
    let annotated = change(json!({"metadata": {"annotations": {"x": "y"}}}));
    cluster.client().patch::<Service, _>("a", &annotated).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(said("EnsuredLoadBalancer").await?, 2);
    let extra: k8s_openapi::api::core::v1::Node =
        object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "extra"}}));
    cluster.client().create(&extra).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(said("UpdatedLoadBalancer").await?, 1);
    // There are two addresses. Who gets none is held from the beginning, as if it had one.
    for name in ["b", "c"] {
        cluster.client().create(&service(name, &balancer)).await?;
        cluster.advance(Duration::from_secs(1)).await;
    }
    let c: Service = cluster.client().get("c").await?.unwrap();
    assert_eq!(c.metadata.finalizers.map(|all| all.len()), Some(1));
    assert_eq!(said("EnsuringLoadBalancer").await?, 4);
    assert_eq!(said("SyncLoadBalancerFailed").await?, 1);
    cluster.client().delete::<Service>("c", &DeleteParams::default()).await?;
    cluster.gone::<Service>("c").await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(said("DeletingLoadBalancer").await?, 0, "there was none");
    assert_eq!(said("DeletedLoadBalancer").await?, 1);
    Ok(())
}

#[steersman::test]
async fn a_load_balancer_that_gets_no_address_is_tried_ever_later(cluster: Cluster) -> Result<()> {
    cluster.run(steersman_controllers::load_balancer("10.200.0.0/30".parse()?));
    let mut reconciles = cluster.reconciles();
    let balancer = json!({"type": "LoadBalancer", "selector": {"app": "web"}});
    for name in ["a", "b", "c"] {
        cluster.client().create(&service(name, &balancer)).await?;
        cluster.advance(Duration::from_secs(1)).await;
    }
    cluster.advance(Duration::from_secs(1000)).await;
    let records = std::iter::from_fn(|| reconciles.try_recv().ok());
    let tries: Vec<_> = records.filter(|it| &*it.key.name == "c").map(|it| it.started).collect();
    let waited = tries.windows(2).map(|two| two[1].duration_since(two[0]).as_secs_f64());
    let waited: Vec<f64> = waited.collect();
    let expected = [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0];
    // A wait is at most a tenth longer, so that not all are tried at once.
    let fits = |(waited, least): (&f64, &f64)| (*least..least * 1.1 + 0.1).contains(waited);
    assert!(waited.len() >= 7 && waited.iter().zip(&expected).all(fits), "{waited:?}");
    let failed = told(&cluster, "Service").await?;
    let failed = failed.iter().filter(|line| line.contains("Warning SyncLoadBalancerFailed"));
    assert_eq!(failed.count(), 1, "it is counted");
    Ok(())
}

#[steersman::test]
async fn what_cannot_be_written_of_a_service_is_tried_ever_later(cluster: Cluster) -> Result<()> {
    let refuse = object::<ValidatingAdmissionPolicy>(json!({
        "metadata": {"name": "frozen"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["", "discovery.k8s.io"], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["endpoints", "endpointslices"],
            }]},
            "validations": [{"expression": "false", "message": "not now"}],
        },
    }));
    let bind = object::<ValidatingAdmissionPolicyBinding>(json!({
        "metadata": {"name": "frozen"},
        "spec": {"policyName": "frozen", "validationActions": ["Deny"]},
    }));
    cluster.client().create(&refuse).await?;
    cluster.client().create(&bind).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let retries = async |name: &str| {
        metric(&cluster, &format!("workqueue_retries_total{{name=\"{name}\"")).await
    };
    let (endpoints, slices) = ("endpoints-controller", "endpointslice-controller");
    let before = (retries(endpoints).await?, retries(slices).await?);
    cluster.client().create(&selecting("web")).await?;
    cluster.advance(Duration::from_secs(100)).await;
    // Twice as long each time: from 5 ms on, and from 1 s on.
    let after = (retries(endpoints).await?, retries(slices).await?);
    let tried = (after.0 - before.0, after.1 - before.1);
    assert!((13..=16).contains(&tried.0) && (6..=7).contains(&tried.1), "{tried:?}");
    cluster
        .client()
        .delete::<ValidatingAdmissionPolicyBinding>("frozen", &DeleteParams::default())
        .await?;
    cluster.eventually("web", |_: &Endpoints| true).await?;
    has_endpoints(&cluster, "web", 0).await
}

#[steersman::test]
async fn a_range_of_addresses_is_ready_and_stays_while_it_is_used(cluster: Cluster) -> Result<()> {
    let finalizer = "networking.k8s.io/service-cidr-finalizer";
    let is_kept = |range: &ServiceCIDR| range.metadata.finalizers == Some(vec![finalizer.into()]);
    cluster.eventually("kubernetes", is_kept).await?;
    let spare: ServiceCIDR = object(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "spare"}, "spec": {"cidrs": ["10.8.0.0/24"]},
    }));
    cluster.client().create(&spare).await?;
    let says = |range: &ServiceCIDR, status: &str, message: &str| {
        let conditions = range.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all[0].status == status && all[0].message.contains(message))
    };
    cluster.eventually("spare", |it: &ServiceCIDR| says(it, "True", "CIDR is ready")).await?;
    let ready: ServiceCIDR = cluster.client().get("spare").await?.expect("it is there");
    let managers = managers(&ready);
    assert!(managers.contains(&"service-cidr-controller Apply status".to_owned()), "{managers:?}");
    let conditions = ready.status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(conditions[0].reason, "", "as upstream says it");
    cluster.client().create(&service("web", &json!({"clusterIP": "10.8.0.77"}))).await?;
    cluster.client().delete::<ServiceCIDR>("spare", &DeleteParams::default()).await?;
    let is_used = |it: &ServiceCIDR| says(it, "False", "There are still IPAddresses");
    cluster.eventually("spare", is_used).await?;
    cluster.advance(Duration::from_secs(3600)).await;
    assert!(cluster.client().get::<ServiceCIDR>("spare").await?.is_some(), "a Service is in it");
    cluster.client().delete::<Service>("web", &DeleteParams::default()).await?;
    cluster.gone::<ServiceCIDR>("spare").await
}
