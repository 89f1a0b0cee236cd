//! Controllers that are restarted after each of their writes come to the same end.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Controller, Result};
use steersman_testkit::{Cluster, Restarts};

use crate::objects::{all, all_become, deployment, image, is_ready, object};
use crate::services::{has_endpoints, selecting, service};

/// The built-in controller of this name, as a new one.
fn built_in(name: &'static str) -> impl Fn() -> Controller {
    move || {
        let mut all = steersman_controllers::all().into_iter();
        all.find(|controller| controller.name() == name).expect("it is built in")
    }
}

fn workload(kind: &str, spec: &Value) -> Value {
    let mut workload = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        workload["spec"][key] = value.clone();
    }
    workload
}

fn new_image() -> Patch<Value> {
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}))
}

/// Waits until there are so many Pods, ready, and of this image.
async fn run_well(cluster: &Cluster, count: usize, wanted: &str) -> Result<()> {
    let well = |pods: &[Pod]| {
        pods.len() == count && pods.iter().all(|pod| is_ready(pod) && image(pod) == wanted)
    };
    all_become(cluster, well).await.map(drop)
}

#[test]
fn a_deployment_rolls_out_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("deployment-controller")).events(10).check(async |cluster| {
        cluster.client().create(&deployment("web", 2, "nginx:1")).await?;
        run_well(cluster, 2, "nginx:1").await?;
        cluster.client().patch::<Deployment, _>("web", &new_image()).await?;
        run_well(cluster, 2, "nginx:2").await
    });
}

#[test]
fn a_replica_set_creates_no_pod_too_many_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("replicaset-controller")).events(10).check(async |cluster| {
        let set: ReplicaSet = object(workload("ReplicaSet", &json!({"replicas": 5})));
        cluster.client().create(&set).await?;
        run_well(cluster, 5, "nginx:1").await?;
        let victim = all::<Pod>(cluster).await?.remove(0).metadata.name.unwrap_or_default();
        cluster.client().delete::<Pod>(victim.as_str(), &DeleteParams::default()).await?;
        cluster.gone::<Pod>(victim.as_str()).await?;
        run_well(cluster, 5, "nginx:1").await?;
        let fewer = Patch::Merge(json!({"spec": {"replicas": 2}}));
        cluster.client().patch::<ReplicaSet, _>("web", &fewer).await?;
        run_well(cluster, 2, "nginx:1").await
    });
}

#[test]
fn a_stateful_set_updates_its_pods_once_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("statefulset-controller")).events(10).check(async |cluster| {
        let claims = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let policy = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
        let spec = json!({"replicas": 2, "serviceName": "web", "volumeClaimTemplates": claims,
                          "persistentVolumeClaimRetentionPolicy": policy});
        let set: StatefulSet = object(workload("StatefulSet", &spec));
        cluster.client().create(&set).await?;
        run_well(cluster, 2, "nginx:1").await?;
        cluster.client().patch::<StatefulSet, _>("web", &new_image()).await?;
        run_well(cluster, 2, "nginx:2").await?;
        let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
        cluster.client().patch::<StatefulSet, _>("web", &fewer).await?;
        run_well(cluster, 1, "nginx:2").await
    });
}

#[test]
fn a_daemon_set_updates_its_pods_once_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("daemonset-controller")).events(10).check(async |cluster| {
        let set: DaemonSet = object(workload("DaemonSet", &json!({})));
        cluster.client().create(&set).await?;
        run_well(cluster, 3, "nginx:1").await?;
        cluster.client().patch::<DaemonSet, _>("web", &new_image()).await?;
        run_well(cluster, 3, "nginx:2").await
    });
}

/// A Service whose Pods come and go.
async fn endpoints_follow(cluster: &Cluster) -> Result<()> {
    cluster.client().create(&selecting("web")).await?;
    cluster.client().create(&deployment("web", 3, "nginx:1")).await?;
    has_endpoints(cluster, "web", 3).await?;
    // What comes last tells when it happened, which a restart would make it forget otherwise.
    for replicas in [1, 2] {
        let scaled = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        cluster.client().patch::<Deployment, _>("web", &scaled).await?;
        has_endpoints(cluster, "web", replicas).await?;
    }
    Ok(())
}

#[test]
fn slices_follow_their_pods_whenever_their_controller_is_restarted() {
    Restarts::of(built_in("endpointslice-controller")).events(5).check(endpoints_follow);
}

#[test]
fn endpoints_go_with_their_service_whenever_their_controller_is_restarted() {
    Restarts::of(built_in("endpoints-controller")).events(5).check(async |cluster| {
        // The other half of it, which finds what one that is being restarted misses.
        cluster.run(built_in("leftover-endpoints-controller")());
        endpoints_follow(cluster).await?;
        let counts = |it: &Endpoints| {
            let subsets = it.subsets.iter().flatten();
            subsets.flat_map(|subset| subset.addresses.iter().flatten()).count() == 2
        };
        cluster.eventually("web", counts).await?;
        cluster.client().delete::<Service>("web", &DeleteParams::default()).await?;
        cluster.gone::<Endpoints>("web").await
    });
}

#[test]
fn endpoints_are_mirrored_once_whenever_their_controller_is_restarted() {
    Restarts::of(built_in("endpointslice-mirroring-controller")).events(5).check(async |cluster| {
        cluster.client().create(&service("db", &json!({}))).await?;
        let mut endpoints: Endpoints = object(json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": "db", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 5432}]}],
        }));
        cluster.client().create(&endpoints).await?;
        has_endpoints(cluster, "db", 1).await?;
        endpoints.subsets =
            object(json!([{"addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}],
                                               "ports": [{"port": 5433}]}]));
        cluster.client().update(&endpoints).await?;
        has_endpoints(cluster, "db", 2).await
    });
}

#[test]
fn a_load_balancer_has_one_address_whenever_its_controller_is_restarted() {
    let balancer = || steersman_controllers::load_balancer("10.200.0.0/24".parse().unwrap());
    Restarts::of(balancer).events(3).check(async |cluster| {
        let address = |service: &Service| {
            let balancer = service.status.as_ref().and_then(|status| status.load_balancer.clone());
            balancer.and_then(|balancer| balancer.ingress).is_some()
        };
        for (name, ip) in [("a", "10.96.0.41"), ("b", "10.96.0.42")] {
            let spec = json!({"type": "LoadBalancer", "clusterIP": ip,
                              "allocateLoadBalancerNodePorts": false});
            let balancer = service(name, &spec);
            cluster.client().create(&balancer).await?;
            cluster.eventually(name, address).await?;
        }
        cluster.client().delete::<Service>("a", &DeleteParams::default()).await?;
        cluster.gone::<Service>("a").await
    });
}

#[test]
fn a_range_goes_whenever_its_controller_is_restarted() {
    Restarts::of(built_in("service-cidr-controller")).events(3).check(async |cluster| {
        let spare: ServiceCIDR = object(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": "spare"}, "spec": {"cidrs": ["10.8.0.0/24"]},
        }));
        cluster.client().create(&spare).await?;
        let is_ready =
            |range: &ServiceCIDR| range.status.as_ref().is_some_and(|it| it.conditions.is_some());
        cluster.eventually("spare", is_ready).await?;
        cluster.client().delete::<ServiceCIDR>("spare", &DeleteParams::default()).await?;
        cluster.gone::<ServiceCIDR>("spare").await
    });
}
