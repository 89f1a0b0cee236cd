//! What every kind of workload stands: others who write all the time, a template that is refused,
//! and a namespace that goes while the work is under way.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use steersman::{ListOptions, Manager, Result};
use steersman_testkit::{Cluster, Condition, Link};

use crate::events::told;
use crate::objects::{all, image, is_ready, object};
use crate::restarts::built_in;

/// A kind of workload.
struct Workload {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Whether an object is where it should be, with so many Pods.
    well: fn(&Value, i64) -> bool,
}

static WORKLOADS: [Workload; 8] = [
    Workload { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", well: new },
    Workload { group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets", well: up },
    Workload {
        group: "apps",
        version: "v1",
        kind: "StatefulSet",
        plural: "statefulsets",
        well: new,
    },
    Workload {
        group: "apps",
        version: "v1",
        kind: "DaemonSet",
        plural: "daemonsets",
        well: |set, _| set["status"]["numberAvailable"] == 1,
    },
    Workload {
        group: "",
        version: "v1",
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        well: up,
    },
    Workload {
        group: "batch",
        version: "v1",
        kind: "Job",
        plural: "jobs",
        well: |job, _| job["status"]["succeeded"] == 2 && job["status"]["failed"].is_null(),
    },
    Workload {
        group: "batch",
        version: "v1",
        kind: "CronJob",
        plural: "cronjobs",
        well: |cron, _| cron["status"]["lastSuccessfulTime"].is_string(),
    },
    Workload {
        group: "policy",
        version: "v1",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        well: |budget, pods| budget["status"]["currentHealthy"] == pods,
    },
];

/// As many Pods as there should be are available.
fn up(object: &Value, pods: i64) -> bool {
    let status = &object["status"];
    status["availableReplicas"] == pods
        && status["replicas"] == pods
        && status["observedGeneration"] == object["metadata"]["generation"]
}

/// And they are of the present template.
fn new(object: &Value, pods: i64) -> bool {
    up(object, pods) && object["status"]["updatedReplicas"] == pods
}

impl Workload {
    fn api(&self, namespace: &str, cluster: &Cluster) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, self.version, self.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, self.plural);
        Api::namespaced_with(cluster.client().kube().clone(), namespace, &resource)
    }

    /// The name that one of this kind has, and the label of its Pods.
    fn name(&self) -> String {
        self.kind.to_lowercase()
    }

    /// One with two Pods, or with one on each node, that act as this account.
    fn spec(&self, account: &str) -> Value {
        let labels = json!({"app": self.name()});
        let template = |image: &str, policy: &str| {
            json!({"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": account, "restartPolicy": policy,
                "containers": [{"name": "main", "image": image}],
            }})
        };
        let selector = json!({"matchLabels": labels});
        let runs = template("nginx:1", "Always");
        let ends = template("steersman.dev/exit:0-after-1s", "Never");
        match self.kind {
            "ReplicationController" => json!({"replicas": 2, "selector": labels, "template": runs}),
            "DaemonSet" => json!({"selector": selector, "template": runs}),
            "Job" => json!({"completions": 2, "parallelism": 2, "template": ends}),
            "CronJob" => {
                json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ends}}})
            }
            "PodDisruptionBudget" => {
                let deployment = json!({"matchLabels": {"app": "deployment"}});
                json!({"maxUnavailable": 1, "selector": deployment})
            }
            _ => json!({"replicas": 2, "selector": selector, "template": runs}),
        }
    }

    async fn create(&self, namespace: &str, account: &str, cluster: &Cluster) -> Result<()> {
        let group = if self.group.is_empty() { String::new() } else { format!("{}/", self.group) };
        let workload: DynamicObject = object(json!({
            "apiVersion": format!("{group}{}", self.version), "kind": self.kind,
            "metadata": {"name": self.name()}, "spec": self.spec(account),
        }));
        self.api(namespace, cluster).create(&PostParams::default(), &workload).await?;
        Ok(())
    }

    async fn patch(&self, patch: &Value, cluster: &Cluster) -> Result<()> {
        let api = self.api("default", cluster);
        api.patch(&self.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Waits until it is where it should be.
    async fn settles(&self, pods: i64, cluster: &Cluster) -> Result<()> {
        let api = self.api("default", cluster);
        let mut seen = Value::Null;
        for _ in 0..300 {
            seen = json!(api.get(&self.name()).await?);
            if (self.well)(&seen, pods) {
                return Ok(());
            }
            cluster.advance(Duration::from_secs(1)).await;
        }
        panic!("not as wanted: {seen:#}")
    }
}

/// Writes into every workload and every Pod, as somebody with a label to give does.
async fn disturb(round: usize, cluster: &Cluster) -> Result<()> {
    let note = json!({"metadata": {"annotations": {"example.com/round": round.to_string()}}});
    for workload in &WORKLOADS {
        workload.patch(&note, cluster).await?;
    }
    for pod in all::<Pod>(cluster).await? {
        let name = pod.metadata.name.unwrap_or_default();
        match cluster.client().patch::<Pod, _>(name.as_str(), &Patch::Merge(&note)).await {
            Err(error) if error.is_not_found() => {}
            patched => drop(patched?),
        }
    }
    Ok(())
}

/// How often somebody was told that he was too late.
async fn conflicts(cluster: &Cluster) -> Result<u64> {
    let metrics = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = cluster.client().kube().request_text(metrics).await?;
    let lines = metrics.lines().filter(|line| {
        line.starts_with("apiserver_request_total") && line.contains("code=\"409\"")
    });
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum())
}

const OURS: [&str; 8] = [
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "replicationcontroller-controller",
    "disruption-controller",
    "job-controller",
    "cronjob-controller",
];

const OTHERS: &str = "*,-deployment-controller,-replicaset-controller,-statefulset-controller,\
                      -daemonset-controller,-replicationcontroller-controller,\
                      -disruption-controller,-job-controller,-cronjob-controller";

#[steersman::test(nodes = 1, which = OTHERS.parse().unwrap())]
async fn every_workload_settles_though_others_write_all_the_time(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    link.set(Condition::slow(Duration::from_millis(20)));
    let manager = Manager::new(cluster.client_over(&link));
    let controllers = OURS.into_iter().map(|name| built_in(name)());
    let _running = controllers.fold(manager, Manager::with).start();
    for workload in &WORKLOADS {
        workload.create("default", "default", &cluster).await?;
    }
    let replicated = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"];
    let replicated = || WORKLOADS.iter().filter(move |it| replicated.contains(&it.kind));
    for round in 0..24 {
        disturb(round, &cluster).await?;
        cluster.advance(Duration::from_millis(25)).await;
        for workload in replicated().filter(|_| round == 12) {
            let containers = json!([{"name": "main", "image": "nginx:2"}]);
            let template = json!({"spec": {"containers": containers}});
            workload
                .patch(&json!({"spec": {"replicas": 3, "template": template}}), &cluster)
                .await?;
        }
    }
    assert!(conflicts(&cluster).await? > 0, "nobody was disturbed");
    for workload in &WORKLOADS {
        workload.settles(3, &cluster).await?;
    }
    let pods: Vec<Pod> = all(&cluster).await?;
    for workload in replicated() {
        let own = pods.iter().filter(|pod| {
            pod.metadata
                .labels
                .as_ref()
                .is_some_and(|labels| labels.get("app") == Some(&workload.name()))
        });
        let own: Vec<&Pod> = own.collect();
        assert!(own.len() == 3 && own.iter().all(|pod| is_ready(pod)), "{}", workload.kind);
        let rolls = ["Deployment", "StatefulSet"].contains(&workload.kind);
        assert!(!rolls || own.iter().all(|pod| image(pod) == "nginx:2"), "{}", workload.kind);
    }
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn every_workload_tells_of_pods_that_are_refused_and_goes_on_when_they_are_not(
    cluster: Cluster,
) -> Result<()> {
    let makers =
        || WORKLOADS.iter().filter(|it| !["CronJob", "PodDisruptionBudget"].contains(&it.kind));
    for workload in makers() {
        workload.create("default", "robot", &cluster).await?;
    }
    cluster.advance(Duration::from_secs(5)).await;
    assert!(all::<Pod>(&cluster).await?.is_empty());
    let why = |pod: &str| {
        format!(
            "pods \"{pod}\" is forbidden: error looking up service account default/robot: \
             serviceaccount \"robot\" not found"
        )
    };
    for (kind, by, note) in [
        ("ReplicaSet", "replicaset-controller", format!("Error creating: {}", why("replicaset-"))),
        ("DaemonSet", "daemonset-controller", format!("Error creating: {}", why("daemonset-"))),
        ("Job", "job-controller", format!("Error creating: {}", why("job-"))),
        (
            "ReplicationController",
            "replication-controller",
            format!("Error creating: {}", why("replicationcontroller-")),
        ),
        (
            "StatefulSet",
            "statefulset-controller",
            format!(
                "Create Pod statefulset-0 in StatefulSet statefulset failed error: {}",
                why("statefulset-0")
            ),
        ),
    ] {
        let told = told(&cluster, kind).await?;
        assert!(told.contains(&format!("{by} Warning FailedCreate: {note}")), "{kind}: {told:?}");
    }
    let deployment = json!(WORKLOADS[0].api("default", &cluster).get("deployment").await?);
    let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let failure = conditions.iter().find(|it| it["type"] == "ReplicaFailure").expect("it is told");
    assert_eq!((&failure["status"], &failure["reason"]), (&json!("True"), &json!("FailedCreate")));
    let robot: ServiceAccount =
        object(json!({"metadata": {"name": "robot", "namespace": "default"}}));
    cluster.client().create(&robot).await?;
    for workload in makers() {
        workload.settles(2, &cluster).await?;
    }
    Ok(())
}

#[steersman::test(nodes = 1, termination = Duration::from_secs(5))]
async fn every_workload_goes_with_its_namespace_however_far_it_is(cluster: Cluster) -> Result<()> {
    let namespace = |name: &str| -> Namespace { object(json!({"metadata": {"name": name}})) };
    let delays = [Duration::ZERO, Duration::from_secs(61)];
    for (n, delay) in delays.into_iter().enumerate() {
        let team = format!("team-{n}");
        cluster.client().create(&namespace(&team)).await?;
        for workload in &WORKLOADS {
            workload.create(&team, "default", &cluster).await?;
        }
        if !delay.is_zero() {
            cluster.advance(delay).await;
        }
        cluster.client().delete::<Namespace>(team.as_str(), &DeleteParams::default()).await?;
        cluster.gone::<Namespace>(team.as_str()).await?;
        // And nobody works on for what is no more.
        cluster.client().create(&namespace(&team)).await?;
    }
    cluster.advance(Duration::from_secs(120)).await;
    let pods: Vec<Pod> = cluster.client().list(&ListOptions::default()).await?;
    assert!(pods.is_empty(), "{pods:?}");
    Ok(())
}
