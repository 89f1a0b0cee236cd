//! Pods find nodes, and nodes run Pods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{ListOptions, Manager, Result};
use steersman_scheduler::framework::{Cycle, Plugin, Points, PreFilter, Refusal};
use steersman_scheduler::{Configuration, Scheduler};
use steersman_testkit::Cluster;

use crate::objects::{all_become, counted, is_ready, object, pod};

fn asking(name: &str, cpu: &str) -> Pod {
    let resources = json!({"requests": {"cpu": cpu}});
    pod(name, &json!({"containers": [{"name": "main", "image": "nginx", "resources": resources}]}))
}

fn unschedulable(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    condition.message.clone()
}

#[steersman::test]
async fn a_pod_that_fits_nowhere_is_scheduled_when_a_node_appears(cluster: Cluster) -> Result<()> {
    cluster.client().create(&asking("big", "64")).await?;
    let told = |pod: &Pod| {
        let message = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, \
                       preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
        unschedulable(pod).as_deref() == Some(message)
    };
    cluster.eventually("node-2", |_: &Node| true).await?;
    cluster.eventually("big", told).await?;
    let large: Node = object(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "large"},
        "status": {"allocatable": {"cpu": "128", "memory": "64Gi", "pods": "10"}},
    }));
    let created: Node = cluster.client().create(&large).await?;
    if created.status.is_none_or(|status| status.allocatable.is_none()) {
        let patch = Patch::Merge(json!({"status": large.status}));
        cluster.client().patch_status::<Node, _>("large", &patch).await?;
    }
    let bound = |pod: &Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some("large");
    cluster.eventually("big", bound).await?;
    for n in 0..10 {
        cluster.client().create(&asking(&format!("small-{n}"), "100m")).await?;
        cluster.eventually(format!("small-{n}").as_str(), is_ready).await?;
    }
    let of = |plugin: &str, point: &str| format!("{{plugin={plugin:?},extension_point={point:?},");
    let fit = of("NodeResourcesFit", "Filter");
    let scoring = of("NodeResourcesFit", "PreScore");
    let point = "extension_point=\"PreEnqueue\",status=\"Success\"";
    for (name, least) in [
        // Three nodes did not fit, then one did.
        (format!("plugin_evaluation_total{fit}profile=\"default-scheduler\"}}"), 4.0),
        // That is measured of every tenth Pod.
        (format!("plugin_execution_duration_seconds_count{scoring}status=\"Success\"}}"), 1.0),
        (
            format!(
                "framework_extension_point_duration_seconds_count{{{point},\
                 profile=\"default-scheduler\"}}"
            ),
            1.0,
        ),
        ("event_handling_duration_seconds_count{event=\"NodeAdd\"}".to_owned(), 4.0),
        ("goroutines{operation=\"binding\"}".to_owned(), 0.0),
        ("inflight_events{event=\"PodPopped\"}".to_owned(), 0.0),
    ] {
        let found = counted(&cluster, &format!("scheduler_{name}")).await?;
        assert!(found >= Some(least), "{name}: {found:?}");
    }
    Ok(())
}

#[steersman::test]
async fn of_pods_bound_beyond_what_a_node_can_run_the_last_fail(cluster: Cluster) -> Result<()> {
    cluster.eventually("node-0", |_: &Node| true).await?;
    for n in 0..112 {
        let here = json!({"nodeName": "node-0", "hostNetwork": n % 10 == 0});
        cluster.client().create(&pod(&format!("p{n}"), &here)).await?;
    }
    let rejected = |pod: &&Pod| {
        let status = pod.status.clone().unwrap_or_default();
        status.phase.as_deref() == Some("Failed") && status.reason.as_deref() == Some("OutOfpods")
    };
    all_become(&cluster, |pods: &[Pod]| {
        let running = pods.iter().filter(|pod| is_ready(pod)).count();
        running == 110 && pods.iter().filter(rejected).count() == 2
    })
    .await
    .map(drop)
}

/// How a Pod failed: reason and message.
async fn failed(cluster: &Cluster, name: &str) -> Result<(String, String)> {
    let failed = |pod: &Pod| {
        pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
    };
    cluster.eventually(name, failed).await?;
    let status = cluster.client().get::<Pod>(name).await?.and_then(|pod| pod.status);
    let status = status.unwrap_or_default();
    Ok((status.reason.unwrap_or_default(), status.message.unwrap_or_default()))
}

// Otherwise who does not tolerate a taint would be gone before anybody could read why.
#[steersman::test(nodes = 1, which = "*,-taint-eviction-controller".parse().unwrap())]
async fn what_was_bound_past_the_scheduler_is_refused_as_a_kubelet_does(
    cluster: Cluster,
) -> Result<()> {
    cluster.eventually("node-0", |_: &Node| true).await?;
    let here = |mut pod: Pod| {
        pod.spec.as_mut().unwrap().node_name = Some("node-0".into());
        pod
    };
    cluster.client().create(&here(asking("fits", "7"))).await?;
    cluster.eventually("fits", is_ready).await?;
    let sysctls = json!({"sysctls": [{"name": "kernel.msgmax", "value": "1000"}]});
    for (pod, reason, message) in [
        (
            asking("large", "2"),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 2000, used: 7000, capacity: 8000",
        ),
        (
            pod("picky", &json!({"nodeSelector": {"x": "y"}})),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            pod("unsafe", &json!({"securityContext": sysctls})),
            "SysctlForbidden",
            "forbidden sysctl: \"kernel.msgmax\" not allowlisted",
        ),
    ] {
        cluster.client().create(&here(pod.clone())).await?;
        let (said, why) = failed(&cluster, pod.metadata.name.as_deref().unwrap()).await?;
        assert_eq!((said.as_str(), why), (reason, format!("Pod was rejected: {message}")));
    }
    // What is taken stays, whatever its Node says later; what comes then does not.
    let taints = json!([{"key": "broken", "effect": "NoExecute"}]);
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    cluster.client().patch::<Node, _>("node-0", &patch).await?;
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().create(&here(pod("late", &json!({})))).await?;
    let (reason, message) = failed(&cluster, "late").await?;
    assert_eq!(reason, "TaintToleration");
    let said = "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod \
                didn't tolerate";
    assert_eq!(message, said);
    cluster.eventually("fits", is_ready).await
}

#[steersman::test]
async fn a_pod_that_waits_for_room_gets_it_when_another_goes(cluster: Cluster) -> Result<()> {
    for name in ["a", "b", "c"] {
        cluster.client().create(&asking(name, "8")).await?;
        cluster.eventually(name, is_ready).await?;
    }
    cluster.client().create(&asking("waiting", "8")).await?;
    cluster.eventually("waiting", |pod: &Pod| unschedulable(pod).is_some()).await?;
    cluster.client().delete::<Pod>("b", &DeleteParams::default()).await?;
    cluster.eventually("waiting", is_ready).await
}

#[steersman::test]
async fn pods_spread_over_nodes_and_never_exceed_them(cluster: Cluster) -> Result<()> {
    for n in 0..30 {
        cluster.client().create(&asking(&format!("p{n}"), "1")).await?;
    }
    let pods: Vec<Pod> =
        all_become(&cluster, |pods: &[Pod]| pods.iter().filter(|pod| is_ready(pod)).count() == 24)
            .await?;
    for node in ["node-0", "node-1", "node-2"] {
        let on = |pod: &&Pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node);
        assert_eq!(pods.iter().filter(on).count(), 8, "{node}");
    }
    Ok(())
}

#[steersman::test]
async fn a_node_selector_is_followed(cluster: Cluster) -> Result<()> {
    let selector = json!({"nodeSelector": {"kubernetes.io/hostname": "node-1"}});
    cluster.client().create(&pod("picky", &selector)).await?;
    cluster.eventually("picky", is_ready).await?;
    let picky: Pod = cluster.client().get("picky").await?.unwrap();
    assert_eq!(picky.spec.unwrap().node_name.as_deref(), Some("node-1"));
    Ok(())
}

#[steersman::test]
async fn nodes_are_ready_and_renew_their_leases(cluster: Cluster) -> Result<()> {
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    cluster.eventually("node-0", ready).await?;
    cluster.eventually("kube-node-lease/node-0", |_: &Lease| true).await?;
    let renewed = |lease: &Lease| lease.spec.as_ref().unwrap().renew_time.clone().unwrap();
    let first: Lease = cluster.client().get("kube-node-lease/node-0").await?.unwrap();
    cluster.advance(Duration::from_secs(25)).await;
    let second: Lease = cluster.client().get("kube-node-lease/node-0").await?.unwrap();
    assert_eq!(renewed(&second).0.duration_since(renewed(&first).0).as_secs(), 20);
    Ok(())
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

#[steersman::test(nodes = 1)]
async fn who_matters_less_and_is_not_protected_goes_for_who_matters_more(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    for (name, value) in [("low", 1), ("middle", 5), ("high", 100)] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value,
        });
        client.create(&object::<PriorityClass>(class)).await?;
    }
    let of_class = |name: &str, class: &str| {
        let mut pod = asking(name, "4");
        pod.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
        pod.spec.as_mut().unwrap().priority_class_name = Some(class.to_owned());
        pod
    };
    for (name, class) in [("protected", "low"), ("victim", "middle")] {
        client.create(&of_class(name, class)).await?;
        cluster.eventually(name, is_ready).await?;
    }
    let budget: PodDisruptionBudget = object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "protected", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "protected"}}},
    }));
    client.create(&budget).await?;
    let counted = |budget: &PodDisruptionBudget| {
        budget.status.as_ref().is_some_and(|status| status.current_healthy == Some(1))
    };
    cluster.eventually("protected", counted).await?;
    let preemptor: Pod = client.create(&of_class("first", "high")).await?;
    let told = |pod: &Pod| {
        let nominated = pod.status.as_ref().and_then(|it| it.nominated_node_name.as_deref());
        let message = "0/1 nodes are available: 1 Insufficient cpu.";
        nominated == Some("node-0") && unschedulable(pod).as_deref() == Some(message)
    };
    cluster.eventually("first", told).await?;
    cluster.eventually("first", is_ready).await?;
    assert!(client.get::<Pod>("victim").await?.is_none());
    assert!(is_ready(&client.get("protected").await?.unwrap()));
    let events: Vec<Event> = client.list(&ListOptions::namespace("default")).await?;
    let preempted = events.iter().find(|event| event.reason.as_deref() == Some("Preempted"));
    let preempted = preempted.expect("people are told");
    let note = format!("Preempted by pod {} on node node-0", preemptor.metadata.uid.unwrap());
    assert_eq!(preempted.note.as_deref(), Some(note.as_str()));
    assert_eq!(preempted.regarding.as_ref().unwrap().name.as_deref(), Some("victim"));
    assert_eq!(preempted.action.as_deref(), Some("Preempting"));
    Ok(())
}

#[steersman::test]
async fn pods_spread_over_zones_and_follow_each_other(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    for (node, zone) in [("node-0", "a"), ("node-1", "a"), ("node-2", "b")] {
        cluster.eventually(node, |_: &Node| true).await?;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"zone": zone}}}));
        client.patch::<Node, _>(node, &patch).await?;
    }
    let labelled = |name: &str, spec: serde_json::Value| {
        let mut pod = pod(name, &spec);
        pod.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        pod
    };
    let selector = json!({"matchLabels": {"app": "web"}});
    let spread = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                         "labelSelector": selector}]);
    for n in 0..6 {
        let spec = json!({"topologySpreadConstraints": spread});
        client.create(&labelled(&format!("p{n}"), spec)).await?;
    }
    let pods: Vec<Pod> =
        all_become(&cluster, |pods: &[Pod]| pods.len() == 6 && pods.iter().all(is_ready)).await?;
    let in_b = pods.iter().filter(|pod| node_of(pod).as_deref() == Some("node-2")).count();
    assert_eq!(in_b, 3);
    let near = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]}});
    client.create(&pod("follower", &json!({"affinity": near}))).await?;
    let waits = |pod: &Pod| {
        unschedulable(pod)
            .is_some_and(|why| why.contains("3 node(s) didn't match pod affinity rules"))
    };
    cluster.eventually("follower", waits).await?;
    let mut db = pod("db", &json!({"nodeSelector": {"zone": "b"}}));
    db.metadata.labels = Some([("app".to_owned(), "db".to_owned())].into());
    client.create(&db).await?;
    cluster.eventually("follower", is_ready).await?;
    let follower: Pod = client.get("follower").await?.unwrap();
    assert_eq!(node_of(&follower).as_deref(), Some("node-2"));
    Ok(())
}

#[steersman::test]
async fn a_pod_waits_for_its_gates_and_for_whoever_is_its_scheduler(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    client.create(&pod("gated", &json!({"schedulingGates": [{"name": "example.com/g"}]}))).await?;
    client.create(&pod("foreign", &json!({"schedulerName": "mine"}))).await?;
    cluster.advance(Duration::from_secs(600)).await;
    for name in ["gated", "foreign"] {
        assert_eq!(node_of(&client.get(name).await?.unwrap()), None, "{name}");
    }
    let patch = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    client.patch::<Pod, _>("gated", &patch).await?;
    cluster.eventually("gated", is_ready).await
}

#[steersman::test]
async fn a_configuration_adds_profiles_that_fill_nodes(cluster: Cluster) -> Result<()> {
    let configuration = Configuration::parse(
        "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
",
    );
    let configuration = configuration.expect("it is sound");
    let manager = Manager::new(cluster.client().kube().clone());
    let manager = Scheduler::configured(configuration).install(manager);
    let _running = manager.expect("it can be run").start();
    for n in 0..4 {
        let mut pod = asking(&format!("p{n}"), "1");
        pod.spec.as_mut().unwrap().scheduler_name = Some("packing".into());
        cluster.client().create(&pod).await?;
        cluster.eventually(pod.metadata.name.as_deref().unwrap(), is_ready).await?;
    }
    let pods: Vec<Pod> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let nodes: std::collections::BTreeSet<_> = pods.iter().filter_map(node_of).collect();
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    let events: Vec<Event> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let by = events.iter().find(|event| event.reason.as_deref() == Some("Scheduled"));
    assert_eq!(by.unwrap().reporting_controller.as_deref(), Some("packing"));
    Ok(())
}

/// Counts how often each Pod is tried.
struct Attempts(Arc<Mutex<BTreeMap<String, usize>>>);

impl Plugin for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> std::result::Result<PreFilter, Refusal> {
        *self.0.lock().unwrap().entry(cycle.info.key.name.to_string()).or_default() += 1;
        Ok(PreFilter::Skip)
    }
}

#[steersman::test(nodes = 20)]
async fn many_who_make_others_go_are_tried_twice_each_and_nobody_goes_in_vain(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let attempts = Arc::new(Mutex::new(BTreeMap::new()));
    let scheduler = Scheduler::configured(Configuration::default().named("counting"));
    let manager = Manager::new(client.kube().clone());
    let manager = scheduler.with(Attempts(Arc::clone(&attempts))).install(manager);
    let _running = manager.expect("it can be run").start();
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 10,
    });
    client.create(&object::<PriorityClass>(class)).await?;
    let of = |name: String, cpu: &str| {
        let mut pod = asking(&name, cpu);
        let spec = pod.spec.as_mut().unwrap();
        spec.scheduler_name = Some("counting".into());
        spec.termination_grace_period_seconds = Some(0);
        pod
    };
    // Four of them fill a node, of which three have to go.
    for number in 0..80 {
        client.create(&of(format!("filling-{number}"), "1800m")).await?;
    }
    all_become(&cluster, |pods: &[Pod]| pods.iter().filter(|it| is_ready(it)).count() == 80)
        .await?;
    for number in 0..20 {
        let mut pod = of(format!("preempting-{number}"), "6");
        pod.spec.as_mut().unwrap().priority_class_name = Some("high".into());
        client.create(&pod).await?;
    }
    let is_preempting = |pod: &&Pod| pod.spec.as_ref().unwrap().priority == Some(10);
    let pods: Vec<Pod> = all_become(&cluster, |pods: &[Pod]| {
        pods.iter().filter(is_preempting).filter(|it| is_ready(it)).count() == 20
    })
    .await?;
    assert_eq!(pods.len(), 40, "one of four stays");
    let attempts = attempts.lock().unwrap();
    let more: Vec<_> = attempts
        .iter()
        .filter(|(name, count)| name.starts_with("preempting") && **count != 2)
        .collect();
    assert!(more.is_empty(), "{more:?}");
    Ok(())
}

#[steersman::test]
async fn a_namespace_that_gets_labels_wakes_pods_that_look_for_its_pods(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let namespace: Namespace = object(json!({"metadata": {"name": "team"}}));
    client.create(&namespace).await?;
    let mut db = pod("db", &json!({}));
    db.metadata.namespace = Some("team".into());
    client.create(&db).await?;
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {},
                      "namespaceSelector": {"matchLabels": {"team": "yes"}}});
    let near = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    client.create(&pod("web", &json!({"affinity": near}))).await?;
    cluster.eventually("web", |pod: &Pod| unschedulable(pod).is_some()).await?;
    let before = steersman::clock::now();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "yes"}}}));
    client.patch::<Namespace, _>("team", &patch).await?;
    cluster.eventually("web", is_ready).await?;
    let waited = steersman::clock::now().duration_since(before).as_secs();
    assert!(waited < 60, "it was woken by that, not after five minutes: {waited} s");
    Ok(())
}

#[steersman::test]
async fn a_pod_that_has_to_wait_for_its_volumes_says_where_it_will_go(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client();
    let class: StorageClass = object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "slow"},
        "provisioner": "nobody.example.com", "volumeBindingMode": "WaitForFirstConsumer",
    }));
    client.create(&class).await?;
    let claim: PersistentVolumeClaim = object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}},
    }));
    client.create(&claim).await?;
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    client.create(&pod("web", &json!({"volumes": [volume]}))).await?;
    client.create(&pod("plain", &json!({}))).await?;
    let nominated = |pod: &Pod| pod.status.as_ref().and_then(|it| it.nominated_node_name.clone());
    cluster.eventually("web", |pod: &Pod| nominated(pod).is_some()).await?;
    let web: Pod = client.get("web").await?.unwrap();
    assert_eq!(node_of(&web), None, "nobody makes its volume");
    let data: PersistentVolumeClaim = client.get("data").await?.unwrap();
    let selected = &data.metadata.annotations.unwrap()["volume.kubernetes.io/selected-node"];
    assert_eq!(Some(selected), nominated(&web).as_ref());
    cluster.eventually("plain", is_ready).await?;
    assert_eq!(nominated(&client.get("plain").await?.unwrap()), None);
    let failures = async |why: &str| -> Result<usize> {
        let events: Vec<Event> = client.list(&ListOptions::namespace("default")).await?;
        let says = |event: &&Event| event.note.as_deref().is_some_and(|note| note.contains(why));
        Ok(events.iter().filter(says).count())
    };
    assert_eq!(failures("VolumeBinding").await?, 0);
    cluster.advance(Duration::from_secs(580)).await;
    assert_eq!(failures("VolumeBinding").await?, 0, "it waits for ten minutes");
    cluster.advance(Duration::from_secs(30)).await;
    let late =
        "running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded";
    assert_eq!(failures(late).await?, 1);
    client.delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let gone = "binding volumes: pod does not exist any more: pod \"web\" not found";
    assert_eq!(failures(gone).await?, 1, "nobody waits for what a Pod needed that is gone");
    Ok(())
}
