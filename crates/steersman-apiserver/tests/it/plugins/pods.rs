//! What plug-ins make of pods, and which pods they refuse: `DefaultTolerationSeconds`,
//! `RuntimeClass`, `AlwaysPullImages`, `ExtendedResourceToleration`, `PodResizeValidator` and
//! `NodeDeclaredFeatureValidator`.

use serde_json::{Value, json};

use super::{NODES, PODS, pod_with, why, with};
use crate::api::{Api, pod};

const RUNTIME_CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

/// The tolerations of a pod, briefly.
fn tolerations(pod: &Value) -> Vec<String> {
    let all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let text =
        |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or("").to_owned();
    all.map(|one| format!("{}:{}", text(one, "key"), text(one, "effect"))).collect()
}

const NOT_READY: &str = "node.kubernetes.io/not-ready:NoExecute";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable:NoExecute";

#[tokio::test(start_paused = true)]
async fn a_pod_stays_on_a_lost_node_for_five_minutes_unless_it_says_otherwise() {
    let api = Api::start().await;
    let created = api.post(PODS, &pod("a")).await.ok();
    assert_eq!(tolerations(&created), [NOT_READY, UNREACHABLE]);
    assert_eq!(created["spec"]["tolerations"][0]["tolerationSeconds"], 300);
    assert_eq!(created["spec"]["tolerations"][0]["operator"], "Exists");
    for (n, (own, kept)) in [
        (
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}),
            vec![NOT_READY, UNREACHABLE],
        ),
        (
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}),
            vec!["node.kubernetes.io/not-ready:", UNREACHABLE],
        ),
        (json!({"operator": "Exists"}), vec![":"]),
        (json!({"operator": "Exists", "effect": "NoExecute"}), vec![":NoExecute"]),
        (
            json!({"operator": "Exists", "effect": "NoSchedule"}),
            vec![":NoSchedule", NOT_READY, UNREACHABLE],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let spec = json!({"tolerations": [own]});
        let created = api.post(PODS, &pod_with(&format!("p{n}"), &spec)).await.ok();
        assert_eq!(tolerations(&created), kept, "{own}");
    }
}

async fn runtime_class(api: &Api) {
    let class = json!({
        "metadata": {"name": "gvisor"}, "handler": "runsc",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
        "scheduling": {
            "nodeSelector": {"runtime": "gvisor"},
            "tolerations": [{"key": "gvisor", "operator": "Exists"}],
        },
    });
    api.post(RUNTIME_CLASSES, &class).await.ok();
    let plain = json!({"metadata": {"name": "plain"}, "handler": "runc"});
    api.post(RUNTIME_CLASSES, &plain).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_runtime_class_brings_its_overhead_and_its_nodes() {
    let api = Api::start().await;
    runtime_class(&api).await;
    let spec = json!({"runtimeClassName": "gvisor", "nodeSelector": {"disk": "fast"}});
    let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
    assert_eq!(created["spec"]["overhead"], json!({"cpu": "250m", "memory": "64Mi"}));
    let selector = json!({"disk": "fast", "runtime": "gvisor"});
    assert_eq!(created["spec"]["nodeSelector"], selector);
    assert_eq!(tolerations(&created), [NOT_READY, UNREACHABLE, "gvisor:"]);

    let same = json!({
        "runtimeClassName": "gvisor", "overhead": {"cpu": "0.25", "memory": "65536Ki"},
    });
    api.post(PODS, &pod_with("same", &same)).await.ok();
    let spec = json!({"runtimeClassName": "plain"});
    let created = api.post(PODS, &pod_with("plain", &spec)).await.ok();
    assert!(created["spec"].get("overhead").is_none(), "{created}");
}

#[tokio::test(start_paused = true)]
async fn what_contradicts_a_runtime_class_is_refused() {
    let api = Api::start().await;
    runtime_class(&api).await;
    for (spec, text) in [
        (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
        (
            json!({"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"runtimeClassName": "gvisor", "nodeSelector": {"runtime": "runc"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = gvisor; \
             pod.spec.nodeSelector[runtime] = runc",
        ),
    ] {
        let refused = api.post(PODS, &pod_with("p", &spec)).await.refused(403);
        assert_eq!(why(&refused), format!("pods \"p\" is forbidden: {text}"));
    }
}

#[tokio::test(start_paused = true)]
async fn images_are_always_pulled() {
    let api = with(&["AlwaysPullImages"]).await;
    let spec = json!({
        "containers": [{"name": "c", "image": "a:1", "imagePullPolicy": "Never"}],
        "initContainers": [{"name": "i", "image": "b:1"}],
        "volumes": [{"name": "v", "image": {"reference": "c:1", "pullPolicy": "IfNotPresent"}}],
    });
    let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
    for list in ["containers", "initContainers"] {
        assert_eq!(created["spec"][list][0]["imagePullPolicy"], "Always", "{list}");
    }
    assert_eq!(created["spec"]["volumes"][0]["image"]["pullPolicy"], "Always");

    // What a pod had before stays as it is.
    let api = Api::over(api.store).await;
    let spec = json!({"containers": [{"name": "c", "image": "a:1", "imagePullPolicy": "Never"}]});
    api.post(PODS, &pod_with("old", &spec)).await.ok();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let updated = api.merge(&format!("{PODS}/old"), &label).await.ok();
    assert_eq!(updated["spec"]["containers"][0]["imagePullPolicy"], "Never");
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_a_device_may_run_where_only_such_pods_do() {
    let api = with(&["ExtendedResourceToleration"]).await;
    let device = |name: &str| {
        let resources = json!({"requests": {name: "1", "cpu": "1"}, "limits": {name: "1"}});
        json!([{"name": "c", "image": "a", "resources": resources}])
    };
    let spec = json!({"containers": device("example.com/gpu")});
    let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
    assert_eq!(tolerations(&created), [NOT_READY, UNREACHABLE, "example.com/gpu:NoSchedule"]);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let updated = api.merge(&format!("{PODS}/p"), &label).await.ok();
    assert_eq!(updated["spec"], created["spec"]);
    let spec = json!({"containers": device("ephemeral-storage")});
    let created = api.post(PODS, &pod_with("q", &spec)).await.ok();
    assert_eq!(tolerations(&created), [NOT_READY, UNREACHABLE]);
}

fn resized(cpu: &str, memory: &str) -> Value {
    json!({"spec": {"containers": [{"name": "web", "resources": {
        "requests": {"cpu": cpu, "memory": memory},
    }}]}})
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_not_resized_beyond_its_node() {
    let api = Api::start().await;
    let node = |name: &str, os: &str| {
        json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/os": os}},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}},
        })
    };
    api.post(NODES, &node("linux", "linux")).await.ok();
    api.post(NODES, &node("other", "windows")).await.ok();
    let resize = async |name: &str, node: &str, cpu: &str, memory: &str| {
        let container = resized("1", "512Mi")["spec"]["containers"][0].clone();
        let mut spec = json!({"containers": [container]});
        spec["containers"][0]["image"] = "nginx".into();
        if !node.is_empty() {
            spec["nodeName"] = node.into();
        }
        api.post(PODS, &pod_with(name, &spec)).await.ok();
        let path = format!("{PODS}/{name}/resize");
        let patch = resized(cpu, memory);
        api.patch(&path, "application/strategic-merge-patch+json", &patch).await
    };
    resize("a", "linux", "2", "1Gi").await.ok();
    resize("b", "", "9", "9Gi").await.ok();
    resize("c", "other", "1", "512Mi").await.ok();
    for (name, node, cpu, memory, text, reason) in [
        (
            "d",
            "linux",
            "2500m",
            "512Mi",
            "node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: \
             2000",
            "NodeCapacity",
        ),
        (
            "e",
            "linux",
            "3",
            "2Gi",
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: \
             2000; memory, requested: 2147483648, allocatable: 1073741824",
            "NodeCapacity",
        ),
        (
            "f",
            "other",
            "2",
            "1Gi",
            "pod resize is only supported on linux nodes, node \"other\" is \"windows\"",
            "UnsupportedPlatform",
        ),
    ] {
        let refused = resize(name, node, cpu, memory).await.refused(403);
        assert_eq!(why(&refused), format!("pods {name:?} is forbidden: {text}"));
        assert_eq!(refused["details"]["causes"], json!([{"reason": reason}]));
    }
    let refused = resize("g", "gone", "2", "1Gi").await.refused(403);
    assert_eq!(why(&refused), "pods \"g\" is forbidden: node \"gone\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_resized_only_in_ways_that_its_node_declares() {
    let api = Api::start().await;
    let all =
        ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"];
    for (name, features) in [("able", &all[..]), ("half", &all[1..]), ("old", &[])] {
        let allocatable = json!({"cpu": "8", "memory": "8Gi"});
        let status = json!({"allocatable": allocatable, "declaredFeatures": features});
        api.post(NODES, &json!({"metadata": {"name": name}, "status": status})).await.ok();
    }
    let resources = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    let spec = |cpu: &str| {
        json!({
            "resources": resources(cpu),
            "initContainers": [{"name": "i", "image": "b", "resources": resources(cpu)}],
            "containers": [{"name": "web", "image": "nginx"}],
        })
    };
    let resize = async |node: &str| {
        let mut wanted = spec("1");
        wanted["nodeName"] = node.into();
        api.post(PODS, &pod_with(node, &wanted)).await.ok();
        let patch = json!({"spec": spec("2")});
        let path = format!("{PODS}/{node}/resize");
        api.patch(&path, "application/strategic-merge-patch+json", &patch).await
    };
    resize("able").await.ok();
    for (node, missing) in [("half", all[0].to_owned()), ("old", all.join(", "))] {
        let refused = resize(node).await.refused(403);
        assert_eq!(
            why(&refused),
            format!(
                "pods {node:?} is forbidden: pod update requires features {missing} which are not \
                 available on node {node:?}"
            )
        );
    }
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    api.merge(&format!("{PODS}/old"), &label).await.ok();
}
