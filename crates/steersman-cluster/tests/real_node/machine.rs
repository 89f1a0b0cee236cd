//! A cluster with one real node, for one test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Node, Pod};
use k8s_openapi::{NamespaceResourceScope, Resource};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steersman::Manager;
use steersman::manager::Running;
use steersman_cluster::{Cluster, ContainerdNode, Housekeeping, User};
use tokio::time::{Instant, interval};

use crate::containerd::{self, Containerd, Room};

/// How long something may take on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often to look.
const LOOK: Duration = Duration::from_millis(40);

/// A cluster whose one node is this machine.
pub(crate) struct Machine {
    pub cluster: Cluster,
    pub client: Client,
    pub containerd: &'static Containerd,
    room: Room,
    settings: ContainerdNode,
    name: &'static str,
    agent: Option<Running>,
}

impl Machine {
    /// A node of this name, in a cluster of its own.
    pub(crate) async fn start(name: &'static str) -> Self {
        Self::start_on(containerd::shared(), name, |_| {}).await
    }

    /// The same, kept as the test says.
    pub(crate) async fn start_kept(
        name: &'static str,
        keep: impl FnOnce(&mut Housekeeping),
    ) -> Self {
        Self::start_on(containerd::shared(), name, keep).await
    }

    /// The same, on a containerd that the others do not have.
    pub(crate) async fn start_on(
        containerd: &'static Containerd,
        name: &'static str,
        keep: impl FnOnce(&mut Housekeeping),
    ) -> Self {
        let change = |settings: &mut ContainerdNode, _: &Room| keep(&mut settings.housekeeping);
        Self::start_so(containerd, name, change).await
    }

    /// The same, with other settings.
    pub(crate) async fn start_with(
        name: &'static str,
        change: impl FnOnce(&mut ContainerdNode, &Room),
    ) -> Self {
        Self::start_so(containerd::shared(), name, change).await
    }

    async fn start_so(
        containerd: &'static Containerd,
        name: &'static str,
        change: impl FnOnce(&mut ContainerdNode, &Room),
    ) -> Self {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let room = Room::of(containerd, name);
        let mut settings = ContainerdNode {
            socket: containerd.socket(),
            name: Some(name.to_owned()),
            root: room.root.clone(),
            logs: room.logs.clone(),
            log_links: room.links.clone(),
            cgroup: room.cgroup.clone(),
            sync_period: Duration::from_secs(1),
            ..ContainerdNode::default()
        };
        // How full the disk of whoever runs the tests is must not matter.
        settings.housekeeping.eviction_hard.clear();
        change(&mut settings, &room);
        let client = cluster.client();
        let mut machine = Self { cluster, client, containerd, room, settings, name, agent: None };
        machine.start_agent().await;
        machine
    }

    /// The Node.
    pub(crate) async fn node(&self) -> Node {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.get(self.name).await.expect("the server answers")
    }

    pub(crate) async fn start_agent(&mut self) {
        let user = User::known(&format!("system:node:{}", self.name), &["system:nodes"]);
        let manager = Manager::new(self.cluster.client_as(user));
        let node = self.settings.clone().connect().await.expect("containerd answers");
        self.agent = Some(node.install(manager).start());
    }

    /// Ends the agent at once; its containers go on.
    pub(crate) fn kill_agent(&mut self) {
        self.agent = None;
    }

    /// Starts the agent anew, which keeps the machine as the test says from then on.
    pub(crate) async fn restart_kept(&mut self, keep: impl FnOnce(&mut Housekeeping)) {
        self.kill_agent();
        keep(&mut self.settings.housekeeping);
        self.start_agent().await;
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.api()
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Resource,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates an object as it is written.
    pub(crate) async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Resource
            + Clone
            + Debug
            + DeserializeOwned
            + serde::Serialize,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        self.api::<K>().create(&PostParams::default(), &object).await.expect("it is created");
    }

    /// Creates a Pod with this name and spec.
    pub(crate) async fn run(&self, name: &str, spec: Value) {
        let metadata = json!({"name": name, "labels": {"app": name}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.create::<Pod>(pod).await;
    }

    /// Waits until a Pod is as wanted.
    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(&Pod) -> bool) -> Pod {
        let pods = self.pods();
        let start = Instant::now();
        let mut ticks = interval(LOOK);
        loop {
            ticks.tick().await;
            let pod = pods.get_opt(name).await.expect("the server answers");
            if let Some(pod) = pod.as_ref().filter(|pod| wanted(pod)) {
                return pod.clone();
            }
            if start.elapsed() > PATIENCE {
                let events = self.events(name).await;
                panic!("{name} is not as wanted: {:#?}\n{events:#?}", pod.map(|pod| pod.status));
            }
        }
    }

    /// Waits until something holds.
    pub(crate) async fn until_true(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let start = Instant::now();
        let mut ticks = interval(LOOK);
        while !holds().await {
            ticks.tick().await;
            assert!(start.elapsed() < PATIENCE, "{what}: not so after a long time");
        }
    }

    /// Waits until a Pod is in a phase.
    pub(crate) async fn until_phase(&self, name: &str, wanted: &str) -> Pod {
        self.until(name, |pod| phase(pod) == wanted).await
    }

    /// What people were told of a Pod.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = self.api::<Event>().list(&about).await.expect("the server answers");
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        events
            .iter()
            .map(|event| format!("{}: {}", text(&event.reason), text(&event.message)))
            .collect()
    }

    /// What an Event of a Pod says to programs, once there is one for this reason.
    pub(crate) async fn annotations(&self, name: &str, reason: &str) -> BTreeMap<String, String> {
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let find = async || {
            let events = self.api::<Event>().list(&about).await.expect("the server answers");
            events.items.into_iter().find(|event| event.reason.as_deref() == Some(reason))
        };
        self.until_true(&format!("{name} has {reason}"), async || find().await.is_some()).await;
        find().await.and_then(|event| event.metadata.annotations).unwrap_or_default()
    }

    pub(crate) async fn delete(&self, name: &str, params: &DeleteParams) {
        self.pods().delete(name, params).await.expect("it is deleted");
    }

    /// Waits until there is no such Pod.
    pub(crate) async fn until_gone(&self, name: &str) {
        self.until_true(&format!("{name} is gone"), async || {
            self.pods().get_opt(name).await.expect("the server answers").is_none()
        })
        .await;
    }

    /// What a container's log says.
    pub(crate) fn log(&self, pod: &Pod, container: &str, attempt: i32) -> String {
        let file = self.logs(pod, container).join(format!("{attempt}.log"));
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Waits until a container, which runs before it has said anything, has said this; gives what else it
    /// has said.
    pub(crate) async fn until_said(&self, pod: &Pod, container: &str, text: &str) -> String {
        let what = format!("{container} says {text:?}");
        let says = async || self.log(pod, container, 0).contains(text);
        self.until_true(&what, says).await;
        self.log(pod, container, 0)
    }

    /// Where the logs of a container are.
    pub(crate) fn logs(&self, pod: &Pod, container: &str) -> PathBuf {
        let uid = pod.uid().expect("it exists");
        let name = format!("default_{}_{uid}", pod.name_any());
        self.settings.logs.join(name).join(container)
    }

    /// The names of the logs of a container, in order.
    pub(crate) fn log_names(&self, pod: &Pod, container: &str) -> Vec<String> {
        names(&self.logs(pod, container))
    }

    /// The names of the links to logs, in order.
    pub(crate) fn log_links(&self) -> Vec<String> {
        names(&self.settings.log_links)
    }

    /// The ids of this node's sandboxes, or of its containers, whether or not they run.
    pub(crate) fn ids(&self, kind: &str) -> Vec<String> {
        let own = format!("labels.\"steersman.dev/node\"=={}", self.name);
        let kind = format!("labels.\"io.cri-containerd.kind\"=={kind}");
        let ids = self.containerd.ctr(&["containers", "ls", "-q", &format!("{own},{kind}")]);
        ids.lines().map(str::to_owned).collect()
    }

    /// Runs a command in a container, and gives what it prints.
    pub(crate) fn exec(&self, pod: &Pod, container: &str, command: &[&str]) -> String {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let id = status(pod, container).and_then(|it| it.container_id.clone()).expect("it runs");
        let id = id.trim_start_matches("containerd://");
        let number = format!("exec-{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let exec = ["tasks", "exec", "--exec-id", &number, id];
        self.containerd.ctr(&[&exec, command].concat())
    }

    /// What a file of a burstable Pod's cgroup says, whichever version cgroups are.
    pub(crate) fn cgroup(&self, pod: &Pod, controller: &str, first: &str, second: &str) -> String {
        let own =
            format!("{}/burstable/pod{}", self.settings.cgroup, pod.uid().expect("it exists"));
        let paths = [
            format!("/sys/fs/cgroup/{controller}{own}/{first}"),
            format!("/sys/fs/cgroup{own}/{second}"),
        ];
        let read = paths.iter().find_map(|path| fs::read_to_string(path).ok());
        read.unwrap_or_else(|| panic!("none of {paths:?}")).trim().to_owned()
    }

    /// Deletes all Pods and makes sure that nothing is left of them on the machine.
    pub(crate) async fn end(mut self) {
        let at_once = DeleteParams { grace_period_seconds: Some(1), ..DeleteParams::default() };
        self.pods().delete_collection(&at_once, &ListParams::default()).await.expect("deleted");
        self.until_true("all Pods are gone", async || {
            self.pods().list(&ListParams::default()).await.expect("a list").items.is_empty()
        })
        .await;
        self.until_nothing_is_left().await;
        if let Some(agent) = self.agent.take() {
            agent.stop().await;
        }
        self.cluster.stop().await;
    }

    /// Waits until nothing is left of any Pod.
    pub(crate) async fn until_nothing_is_left(&self) {
        let start = Instant::now();
        let mut ticks = interval(LOOK);
        loop {
            ticks.tick().await;
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "left on the machine: {left:#?}");
        }
    }

    /// What this node's Pods have left on the machine.
    pub(crate) fn left(&self) -> Vec<String> {
        self.room.left()
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().display().to_string()).collect();
    names.sort();
    names
}

/// A container of busybox that runs a script.
pub(crate) fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "localhost/busybox:1", "command": ["sh", "-c", script]})
}

/// A Pod of these containers, which is to be run as `policy` says.
pub(crate) fn spec(policy: &str, containers: &Value) -> Value {
    json!({
        "restartPolicy": policy,
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 2,
        "containers": containers,
    })
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The status of a container.
pub(crate) fn status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let lists = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    lists.into_iter().flatten().flatten().find(|status| status.name == name)
}

/// Whether a Pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}
