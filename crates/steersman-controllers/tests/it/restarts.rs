//! Controllers that are restarted after each of their writes come to the same end.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Endpoints, Pod, ReplicationController, Service};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Controller, Result};
use steersman_testkit::{Cluster, Restarts, Settings};

use crate::cronjobs::cron;
use crate::jobs::{complete, failed, has_finalizer, job};
use crate::objects::{all, all_become, deployment, image, is_ready, object, pod};
use crate::services::{has_endpoints, selecting, service};

/// The built-in controller of this name, as a new one.
pub(crate) fn built_in(name: &'static str) -> impl Fn() -> Controller {
    move || {
        let mut all = steersman_controllers::all().into_iter();
        all.find(|controller| controller.name() == name).expect("it is built in")
    }
}

/// The same of a cluster that serves all that Kubernetes serves on request only.
pub(crate) fn built_in_serving_all(name: &'static str) -> impl Fn() -> Controller {
    move || {
        let mut all = steersman_controllers::all_serving(&|_, _| true).into_iter();
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
fn a_replication_controller_creates_no_pod_too_many_whenever_it_is_restarted() {
    let controller = built_in("replicationcontroller-controller");
    Restarts::of(controller).settings(small()).events(3).check(async |cluster| {
        let mut web = workload("ReplicationController", &json!({"replicas": 2}));
        web["apiVersion"] = "v1".into();
        web["spec"]["selector"] = json!({"app": "web"});
        cluster.client().create::<ReplicationController>(&object(web)).await?;
        run_well(cluster, 2, "nginx:1").await?;
        let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
        cluster.client().patch::<ReplicationController, _>("web", &fewer).await?;
        run_well(cluster, 1, "nginx:1").await
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

/// A cluster in which less happens.
pub(crate) fn small() -> Settings {
    Settings { nodes: 1, ..Settings::default() }
}

/// The Job controller, both parts of it.
fn jobs() -> Restarts {
    let orphans = built_in("job-orphan-pod-controller");
    Restarts::of(built_in("job-controller")).beside(orphans).settings(small()).events(4)
}

/// Whether everything is counted: how many succeeded and failed, and nothing is left to do.
async fn counted(cluster: &Cluster, succeeded: Option<i32>, failed: Option<i32>) -> Result<()> {
    let job: Job = cluster.client().get("sum").await?.expect("there is a Job");
    let status = job.status.unwrap_or_default();
    assert_eq!((status.succeeded, status.failed, status.active), (succeeded, failed, None));
    let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
    assert_eq!((uncounted.succeeded, uncounted.failed), (None, None));
    let pods: Vec<Pod> = all(cluster).await?;
    assert!(!pods.iter().any(has_finalizer));
    assert_eq!(pods.len(), usize::try_from(succeeded.unwrap_or(0) + failed.unwrap_or(0))?);
    Ok(())
}

#[test]
fn a_job_counts_each_pod_once_whenever_its_controller_is_restarted() {
    jobs().check(async |cluster| {
        // A Pod that there is already and that fails, and two that succeed.
        let second = Duration::from_secs(1);
        cluster.pods().labelled("app", "sum").times(1).exits(1).after(second);
        let labels = json!({"app": "sum"});
        let mut orphan = pod("orphan", &json!({"restartPolicy": "Never"}));
        orphan.metadata.labels = Some(object(labels.clone()));
        cluster.client().create(&orphan).await?;
        cluster.eventually("orphan", is_ready).await?;
        let spec = json!({"completions": 2, "parallelism": 2, "manualSelector": true,
                          "selector": {"matchLabels": labels}});
        let mut sum = job("sum", "steersman.dev/exit:0-after-1s", &spec);
        let template = sum.spec.as_mut().map(|spec| &mut spec.template);
        template.expect("it has one").metadata = Some(object(json!({"labels": labels})));
        cluster.client().create(&sum).await?;
        complete(cluster, "sum").await?;
        counted(cluster, Some(2), Some(1)).await
    });
}

#[test]
fn a_job_counts_each_index_once_whenever_its_controller_is_restarted() {
    jobs().check(async |cluster| {
        let index = "batch.kubernetes.io/job-completion-index";
        cluster.pods().labelled(index, "1").exits(1);
        let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2,
                          "backoffLimitPerIndex": 1});
        cluster.client().create(&job("sum", "steersman.dev/exit:0-after-1s", &spec)).await?;
        let status = failed(cluster, "sum").await?;
        assert_eq!(status.completed_indexes.as_deref(), Some("0"));
        assert_eq!(status.failed_indexes.as_deref(), Some("1"));
        counted(cluster, Some(1), Some(2)).await
    });
}

#[test]
fn a_job_that_is_suspended_and_deleted_leaves_nothing_whenever_its_controller_is_restarted() {
    jobs().check(async |cluster| {
        cluster.client().create(&job("sum", "nginx", &json!({}))).await?;
        let runs = |pods: &[Pod]| pods.len() == 1 && pods.iter().all(is_ready);
        all_become(cluster, runs).await?;
        let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
        cluster.client().patch::<Job, _>("sum", &suspend(true)).await?;
        all_become(cluster, |pods: &[Pod]| pods.is_empty()).await?;
        cluster.client().patch::<Job, _>("sum", &suspend(false)).await?;
        all_become(cluster, runs).await?;
        cluster.client().delete::<Job>("sum", &DeleteParams::background()).await?;
        cluster.gone::<Job>("sum").await?;
        all_become(cluster, |pods: &[Pod]| pods.is_empty()).await.map(drop)
    });
}

#[test]
fn a_cron_job_starts_each_job_once_whenever_its_controller_is_restarted() {
    let restarts = Restarts::of(built_in("cronjob-controller")).settings(small());
    restarts.events(4).check(async |cluster| {
        let every_five = "*/5 * * * *";
        let kept = json!({"schedule": every_five, "successfulJobsHistoryLimit": 1});
        cluster.client().create(&cron("report", "steersman.dev/exit:0-after-30s", &kept)).await?;
        let replaced = json!({"schedule": every_five, "concurrencyPolicy": "Replace"});
        cluster.client().create(&cron("watch", "nginx", &replaced)).await?;
        cluster.advance(Duration::from_secs(12 * 60)).await;
        let report: CronJob = cluster.client().get("report").await?.expect("there is one");
        let last = report.status.and_then(|status| status.last_schedule_time);
        assert_eq!(last.expect("it has run").0.to_string(), "2030-01-01T00:10:00Z");
        let jobs: Vec<Job> = all(cluster).await?;
        assert_eq!(jobs.len(), 2, "the last that completed, and the one that runs");
        Ok(())
    });
}

#[test]
fn a_finished_job_is_deleted_whenever_the_controller_that_does_so_is_restarted() {
    let restarts = Restarts::of(built_in("ttl-after-finished-controller")).settings(small());
    restarts.events(4).check(async |cluster| {
        let spec = json!({"ttlSecondsAfterFinished": 10});
        cluster.client().create(&job("short", "steersman.dev/exit:0", &spec)).await?;
        cluster.gone::<Job>("short").await?;
        all_become(cluster, |pods: &[Pod]| pods.is_empty()).await.map(drop)
    });
}

/// A Service whose Pods come and go.
async fn endpoints_follow(cluster: &Cluster) -> Result<()> {
    cluster.client().create(&selecting("web")).await?;
    let web = |name: &str| {
        let ports = json!([{"name": "http", "containerPort": 8080}]);
        let containers = json!([{"name": "main", "image": "nginx", "ports": ports}]);
        let mut web = pod(name, &json!({"containers": containers}));
        web.metadata.labels = Some(object(json!({"app": "web"})));
        web
    };
    for name in ["a", "b", "c"] {
        cluster.client().create(&web(name)).await?;
        cluster.eventually(name, is_ready).await?;
    }
    has_endpoints(cluster, "web", 3).await?;
    for name in ["a", "b"] {
        cluster.client().delete::<Pod>(name, &DeleteParams::default()).await?;
        cluster.gone::<Pod>(name).await?;
    }
    has_endpoints(cluster, "web", 1).await?;
    // What comes last tells when it happened, which a restart would make it forget otherwise.
    cluster.client().create(&web("d")).await?;
    has_endpoints(cluster, "web", 2).await
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
