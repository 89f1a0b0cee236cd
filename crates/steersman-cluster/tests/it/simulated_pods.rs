//! What simulated nodes make of Pods, and tell of them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Secret};
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use steersman_cluster::{Cluster, Storage};
use tokio::time::{Instant, interval, timeout};

use crate::node_groups::{is_ready, nodes, phase, pod};
use crate::{PATIENCE, Scratch};

/// How soon a start that failed is tried again.
const RETRY: Duration = Duration::from_secs(11);

async fn start() -> Cluster {
    Cluster::builder().nodes(1).start().await.unwrap()
}

/// Creates a Pod of one container.
async fn create(cluster: &Cluster, container: &Value, rest: &Value) -> Pod {
    let mut web = json!({
        "metadata": {"name": "web", "finalizers": ["example.com/hold"]},
        "spec": rest,
    });
    web["spec"]["containers"] = json!([container]);
    web["spec"]["containers"][0]["name"] = "main".into();
    web["spec"]["containers"][0]["image"] = "nginx".into();
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap()
}

/// The state of the container of a Pod.
fn state(pod: &Pod) -> Value {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.map_or(Value::Null, |all| serde_json::to_value(&all[0].state).unwrap())
}

/// Whether a Pod has a sandbox and an address in it, which go together.
fn is_connected(pod: &Pod) -> bool {
    let status = pod.status.as_ref().unwrap();
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|it| it.type_ == "PodReadyToStartContainers").unwrap();
    let addresses = status.pod_ips.iter().flatten().count();
    assert_eq!(status.pod_ip.is_some(), addresses > 0, "{status:?}");
    assert_eq!(ready.status, if addresses > 0 { "True" } else { "False" }, "{status:?}");
    addresses > 0
}

/// What is told of the Pod by its kubelet, in the order in which it happened, up to this.
async fn told(cluster: &Cluster, last: &str) -> Vec<String> {
    let events: Api<Event> = Api::default_namespaced(cluster.client());
    let listed = async {
        let (mut tick, mut complete) = (interval(Duration::from_millis(100)), false);
        loop {
            tick.tick().await;
            let mut found = events.list(&ListParams::default()).await.unwrap().items;
            if complete {
                found.retain(|it| it.reporting_component.as_deref() == Some("kubelet"));
                return found;
            }
            // They are not written one after the other.
            complete = found.iter().any(|it| it.reason.as_deref() == Some(last));
        }
    };
    let found = timeout(PATIENCE, listed).await.expect("people are told");
    let line = |it: Event| [it.type_, it.reason, it.message].map(Option::unwrap_or_default);
    let of_pod = found.into_iter().filter(|it| it.involved_object.name.as_deref() == Some("web"));
    of_pod.map(|it| line(it).join(" ")).collect()
}

async fn until_running(cluster: &Cluster) {
    let now = Instant::now();
    pod(cluster, "web", |pod| phase(pod) == "Running").await;
    assert!(now.elapsed() <= RETRY, "{:?}", now.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_what_its_variables_are_made_of() {
    let cluster = start().await;
    let from = json!({"configMapRef": {"name": "settings"}});
    create(&cluster, &json!({"envFrom": [from]}), &json!({})).await;
    let waits = |pod: &Pod| state(pod)["waiting"]["reason"] == "CreateContainerConfigError";
    let web = pod(&cluster, "web", waits).await;
    assert_eq!(phase(&web), "Pending");
    assert_eq!(state(&web)["waiting"]["message"], "configmap \"settings\" not found");
    assert!(is_connected(&web));
    let mut settings = ConfigMap::default();
    settings.metadata.name = Some("settings".into());
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    maps.create(&PostParams::default(), &settings).await.unwrap();
    until_running(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_what_its_volumes_are_made_of() {
    let cluster = start().await;
    let volume = json!({"name": "key", "secret": {"secretName": "key"}});
    create(&cluster, &json!({}), &json!({"volumes": [volume]})).await;
    let events: Api<Event> = Api::default_namespaced(cluster.client());
    let why = "MountVolume.SetUp failed for volume \"key\" : secret \"key\" not found";
    let told = async {
        let mut tick = interval(Duration::from_millis(100));
        loop {
            let found = events.list(&ListParams::default()).await.unwrap().items;
            let is_it = |event: &&Event| event.reason.as_deref() == Some("FailedMount");
            if let Some(event) = found.iter().find(is_it) {
                return (event.type_.clone(), event.message.clone());
            }
            tick.tick().await;
        }
    };
    let told = timeout(PATIENCE, told).await.expect("people are told");
    assert_eq!(told, (Some("Warning".into()), Some(why.into())));
    let web = pod(&cluster, "web", |pod| !state(pod).is_null()).await;
    assert_eq!(state(&web), json!({"waiting": {"reason": "ContainerCreating"}}));
    assert!(!is_connected(&web));
    let mut key = Secret::default();
    key.metadata.name = Some("key".into());
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    secrets.create(&PostParams::default(), &key).await.unwrap();
    until_running(&cluster).await;
    assert!(is_connected(&pod(&cluster, "web", |_| true).await));
}

#[tokio::test(start_paused = true)]
async fn a_pod_in_the_network_of_its_node_has_its_address_before_its_volumes() {
    let cluster = start().await;
    let volume = json!({"name": "key", "secret": {"secretName": "key"}});
    create(&cluster, &json!({}), &json!({"volumes": [volume], "hostNetwork": true})).await;
    let web = pod(&cluster, "web", |pod| !state(pod).is_null()).await;
    let status = web.status.unwrap();
    assert!(status.host_ip.is_some());
    assert_eq!(status.pod_ip, status.host_ip);
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|it| it.type_ == "PodReadyToStartContainers").unwrap();
    assert_eq!(ready.status, "False");
}

#[tokio::test(start_paused = true)]
async fn people_are_told_of_pull_secrets_that_are_not_there() {
    let cluster = start().await;
    let mut key = Secret::default();
    key.metadata.name = Some("there".into());
    let secrets: Api<Secret> = Api::default_namespaced(cluster.client());
    secrets.create(&PostParams::default(), &key).await.unwrap();
    let named = json!([{"name": "nope"}, {"name": "there"}, {"name": "no"}]);
    create(&cluster, &json!({}), &json!({"imagePullSecrets": named})).await;
    until_running(&cluster).await;
    let told = told(&cluster, "Started").await;
    let warning = "Warning FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets \
                   (nope, no); attempting to pull the image may not succeed.";
    assert_eq!(told[0], warning);
}

#[tokio::test(start_paused = true)]
async fn an_image_is_pulled_for_a_container_that_always_wants_it_pulled() {
    let pulled = "Normal Pulled Successfully pulled image \"nginx\" in 1.2s (1.2s including waiting). \
                  Image size: 67108864 bytes.";
    let present = "Normal Pulled Container image \"nginx\" already present on machine and can be \
                   accessed by the pod";
    let rest = ["Normal Created Container created", "Normal Started Container started"];
    for (policy, before) in [
        ("Always", &["Normal Pulling Pulling image \"nginx\"", pulled][..]),
        ("IfNotPresent", &[present]),
        ("Never", &[present]),
    ] {
        let cluster = start().await;
        create(&cluster, &json!({"imagePullPolicy": policy}), &json!({})).await;
        assert_eq!(told(&cluster, "Started").await, [before, &rest].concat(), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_is_pulled_before_what_a_container_is_told_is_looked_at() {
    let cluster = start().await;
    let from = json!({"configMapRef": {"name": "settings"}});
    create(&cluster, &json!({"envFrom": [from], "imagePullPolicy": "Always"}), &json!({})).await;
    let told = told(&cluster, "Failed").await;
    let reasons: Vec<&str> = told.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(reasons, ["Pulling", "Pulled", "Failed"], "{told:?}");
}

/// The CSINodes, once there are so many.
async fn csi_nodes(cluster: &Cluster, count: usize) -> Vec<CSINode> {
    let csi_nodes: Api<CSINode> = Api::all(cluster.client());
    let listed = async {
        let mut tick = interval(Duration::from_millis(100));
        loop {
            let found = csi_nodes.list(&ListParams::default()).await.unwrap().items;
            if found.len() == count {
                return found;
            }
            tick.tick().await;
        }
    };
    timeout(PATIENCE, listed).await.expect("there are so many")
}

#[tokio::test(start_paused = true)]
async fn beside_each_node_there_is_a_csi_node_without_drivers_that_goes_with_it() {
    let cluster = start().await;
    let found = nodes(&cluster, |nodes| is_ready(nodes, "node-0") == Some(true)).await;
    let made = csi_nodes(&cluster, 1).await.remove(0);
    let owner = json!([{
        "apiVersion": "v1", "kind": "Node", "name": "node-0", "uid": found[0].metadata.uid,
    }]);
    let meta = &made.metadata;
    assert_eq!(meta.name.as_deref(), Some("node-0"));
    assert_eq!(serde_json::to_value(&meta.owner_references).unwrap(), owner);
    let migrated =
        &meta.annotations.as_ref().unwrap()["storage.alpha.kubernetes.io/migrated-plugins"];
    let plugins = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume"];
    let plugins = plugins.into_iter().chain(["vsphere-volume"]);
    let plugins: Vec<String> = plugins.map(|it| format!("kubernetes.io/{it}")).collect();
    assert_eq!(*migrated, plugins.join(","));
    assert_eq!(made.spec.drivers, []);
    let api: Api<Node> = Api::all(cluster.client());
    api.delete("node-0", &DeleteParams::default()).await.unwrap();
    csi_nodes(&cluster, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_csi_node_that_is_gone_or_of_another_node_is_made_anew_when_its_node_starts() {
    let scratch = Scratch::new();
    let start = async || {
        let storage = Storage::Disk { directory: scratch.0.clone(), sync: true };
        Cluster::builder().storage(storage).seed(1).nodes(1).start().await.unwrap()
    };
    let cluster = start().await;
    let first = csi_nodes(&cluster, 1).await.remove(0);
    let api: Api<CSINode> = Api::all(cluster.client());
    api.delete("node-0", &DeleteParams::default()).await.unwrap();
    cluster.stop().await;
    let cluster = start().await;
    let second = csi_nodes(&cluster, 1).await.remove(0);
    assert_ne!(second.metadata.uid, first.metadata.uid);
    assert_eq!(second.metadata.owner_references, first.metadata.owner_references);
    let disown = json!({"metadata": {"ownerReferences": null}});
    let api: Api<CSINode> = Api::all(cluster.client());
    api.patch("node-0", &PatchParams::default(), &Patch::Merge(disown)).await.unwrap();
    cluster.stop().await;
    let cluster = start().await;
    let owned = async {
        let mut tick = interval(Duration::from_millis(100));
        while csi_nodes(&cluster, 1).await[0].metadata.owner_references.is_none() {
            tick.tick().await;
        }
    };
    timeout(PATIENCE, owned).await.expect("it is replaced");
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_before_its_node_has_seen_it_has_failed() {
    let cluster = start().await;
    nodes(&cluster, |nodes| is_ready(nodes, "node-0") == Some(true)).await;
    cluster.nodes().named("node-0").lost();
    create(&cluster, &json!({}), &json!({"nodeName": "node-0"})).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    assert_eq!(phase(&pods.get("web").await.unwrap()), "Pending");
    cluster.nodes().named("node-0").back();
    let web = pod(&cluster, "web", |pod| phase(pod) == "Failed").await;
    let lost = json!({
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    });
    assert_eq!(state(&web), json!({"terminated": lost}));
}

#[tokio::test(start_paused = true)]
async fn a_pod_says_what_all_its_containers_have() {
    let cluster = start().await;
    let requests = json!({"cpu": "250m", "memory": "64Mi"});
    create(&cluster, &json!({"resources": {"requests": requests}}), &json!({})).await;
    let web = pod(&cluster, "web", |pod| phase(pod) == "Running").await;
    let status = web.status.unwrap();
    assert_eq!(serde_json::to_value(&status.allocated_resources).unwrap(), requests);
    let resources = serde_json::to_value(&status.resources).unwrap();
    assert_eq!(resources, json!({"requests": requests}));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_must_not_be_root_and_is_waits_and_says_why() {
    let cluster = start().await;
    let context = json!({"runAsNonRoot": true, "runAsUser": 0});
    create(&cluster, &json!({"securityContext": context}), &json!({})).await;
    let waits = |pod: &Pod| state(pod)["waiting"]["reason"] == "CreateContainerConfigError";
    let web = pod(&cluster, "web", waits).await;
    let message = state(&web)["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("container's runAsUser breaks non-root policy"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_others_say_a_node_has_can_be_had_until_they_say_so_no_more() {
    let cluster = start().await;
    nodes(&cluster, |nodes| is_ready(nodes, "node-0") == Some(true)).await;
    let api: Api<Node> = Api::all(cluster.client());
    let say = async |amount: Value| {
        let patch = json!({"status": {"capacity": {"example.com/dongle": amount}}});
        let params = PatchParams::default();
        api.patch_status("node-0", &params, &Patch::Merge(patch)).await.unwrap();
    };
    let has = |nodes: &[Node], amount: Option<&str>| {
        let allocatable = nodes[0].status.as_ref().unwrap().allocatable.as_ref().unwrap();
        allocatable.get("example.com/dongle").map(|it| it.0.as_str()) == amount
    };
    say("4".into()).await;
    nodes(&cluster, |nodes| has(nodes, Some("4"))).await;
    say(Value::Null).await;
    nodes(&cluster, |nodes| has(nodes, None)).await;
}

#[tokio::test(start_paused = true)]
async fn others_go_for_a_pod_that_the_system_needs_before_it_begins() {
    let cluster = start().await;
    let asks = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    let bound = json!({"nodeName": "node-0", "terminationGracePeriodSeconds": 5});
    create(&cluster, &asks("6"), &bound).await;
    pod(&cluster, "web", |pod| phase(pod) == "Running").await;
    let critical = |name: &str, cpu: &str| -> Pod {
        let mut main = asks(cpu);
        main["name"] = "main".into();
        main["image"] = "nginx".into();
        let spec = json!({
            "nodeName": "node-0", "priorityClassName": "system-node-critical", "containers": [main],
        });
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &critical("dns", "4")).await.unwrap();
    let dns = pod(&cluster, "dns", |pod| phase(pod) == "Running").await;
    let web = pods.get("web").await.unwrap().status.unwrap();
    let said = (web.phase.as_deref(), web.reason.as_deref(), web.message.as_deref());
    let message = "Preempted in order to admit critical pod";
    assert_eq!(said, (Some("Failed"), Some("Preempting"), Some(message)));
    let conditions = web.conditions.unwrap();
    let disrupted = conditions.iter().find(|it| it.type_ == "DisruptionTarget").unwrap();
    assert_eq!(disrupted.reason.as_deref(), Some("TerminationByKubelet"));
    assert!(dns.status.unwrap().start_time.is_some());
    pods.create(&PostParams::default(), &critical("more", "6")).await.unwrap();
    let more = pod(&cluster, "more", |pod| phase(pod) == "Failed").await.status.unwrap();
    assert_eq!(more.reason.as_deref(), Some("UnexpectedAdmissionError"));
    let why = more.message.unwrap();
    assert!(why.ends_with("to reclaim resources: [(res: cpu, q: 2000), ]"), "{why}");
}
