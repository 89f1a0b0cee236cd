//! A container runtime that lies, is slow, or does not answer: the agent bears it, says so in its
//! Node as a kubelet does, and goes on when the runtime has come to its senses.
//!
//! On virtual time, for what takes a runtime minutes.

mod clocks;
mod cut_off;
mod disks;
mod grpc;
mod hooks;
mod liar;
mod network;
mod registry;
#[allow(dead_code, reason = "what the agent reads of it is more than this says")]
#[path = "../../../../steersman-node/src/cri/wire/mod.rs"]
mod wire;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use steersman::Manager;
use steersman::manager::Running;
use steersman_cluster::{Cluster, ContainerdNode, Housekeeping, User};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

use liar::{Liar, Manner};

use crate::machine::{is_ready, phase};

/// How long a runtime lies.
const WHILE: Duration = Duration::from_secs(240);
/// For how long it lies if its node is to stay ready all the time.
const BRIEFLY: Duration = Duration::from_secs(40);
/// How long anything may take once it does not.
const PATIENCE: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_secs(1);

/// An agent with such a runtime, in a cluster.
struct Scene {
    cluster: Cluster,
    client: Client,
    liar: Arc<Liar>,
    settings: ContainerdNode,
    agent: Option<Running>,
    server: JoinHandle<()>,
    directory: PathBuf,
    cgroup: String,
}

impl Scene {
    async fn start(name: &str) -> Self {
        Self::start_kept(name, |_| {}).await
    }

    /// The same, with a machine that is kept as the test says.
    async fn start_kept(name: &str, keep: impl FnOnce(&mut Housekeeping)) -> Self {
        let directory = format!("steersman-lying-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory of our own");
        let (liar, socket) = (Arc::new(Liar::new()), directory.join("cri.sock"));
        let (serving, listening) = (Arc::clone(&liar), socket.clone());
        let server = tokio::spawn(async move { grpc::serve(&listening, serving).await });
        tokio::task::yield_now().await;
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let cgroup = format!("/steersman-lying-{name}-{}", std::process::id());
        let mut settings = ContainerdNode {
            socket,
            name: Some("lied-to".to_owned()),
            root: directory.join("root"),
            logs: directory.join("logs"),
            cgroup: cgroup.clone(),
            ..ContainerdNode::default()
        };
        // How full the disk of whoever runs the tests is must not matter.
        settings.housekeeping.eviction_hard.clear();
        keep(&mut settings.housekeeping);
        let client = cluster.client();
        let agent = None;
        let mut scene = Self { cluster, client, liar, settings, agent, server, directory, cgroup };
        scene.start_agent().await;
        scene.until("the node is ready", async || scene.not_ready().await.is_none()).await;
        scene
    }

    async fn start_agent(&mut self) {
        let user = User::known("system:node:lied-to", &["system:nodes"]);
        let node = self.settings.clone().connect().await.expect("it is honest at first");
        self.agent = Some(node.install(Manager::new(self.cluster.client_as(user))).start());
    }

    /// Ends the agent at once, in the midst of whatever it does.
    fn kill_agent(&mut self) {
        self.agent = None;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn run(&self, name: &str) {
        self.run_with(name, json!({})).await;
    }

    /// Runs a Pod of one container, of which this is said besides.
    async fn run_with(&self, name: &str, container: Value) {
        self.run_so(name, "Always", container).await;
    }

    async fn run_so(&self, name: &str, policy: &str, container: Value) {
        self.run_whole(name, json!({"restartPolicy": policy}), container).await;
    }

    /// The same, of whose spec this is said besides.
    async fn run_whole(&self, name: &str, own: Value, container: Value) {
        let mut main = json!({"name": "main", "image": "web:1"});
        for (field, value) in container.as_object().into_iter().flatten() {
            main[field] = value.clone();
        }
        let mut spec = json!({
            "nodeName": "lied-to",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 2,
            "tolerations": [{"operator": "Exists"}],
            "containers": [main],
        });
        for (field, value) in own.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).expect("a Pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("it is created");
    }

    /// What people were told of a Pod.
    async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = events.list(&about).await.expect("the server answers");
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let told = events.iter();
        told.map(|event| format!("{}: {}", text(&event.reason), text(&event.message))).collect()
    }

    async fn pod(&self, name: &str) -> Option<Pod> {
        self.pods().get_opt(name).await.expect("the server answers")
    }

    async fn runs(&self, name: &str) -> bool {
        self.pod(name).await.is_some_and(|pod| is_ready(&pod) && phase(&pod) == "Running")
    }

    /// How often the container of a Pod was started again, if it runs.
    async fn restarts(&self, name: &str) -> Option<i32> {
        let pod = self.pod(name).await.filter(is_ready)?;
        let status = pod.status?.container_statuses?.into_iter().next()?;
        Some(status.restart_count)
    }

    /// Why the Node says that it is not ready, if it does.
    async fn not_ready(&self) -> Option<String> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = nodes.get_opt("lied-to").await.expect("the server answers");
        let conditions = node.and_then(|node| node.status).and_then(|status| status.conditions);
        let ready = conditions.into_iter().flatten().find(|it| it.type_ == "Ready");
        match ready {
            Some(ready) if ready.status == "True" => None,
            Some(ready) => Some(ready.message.unwrap_or_default()),
            None => Some("nothing is said".to_owned()),
        }
    }

    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let (start, mut ticks) = (Instant::now(), interval(LOOK));
        while !holds().await {
            ticks.tick().await;
            if start.elapsed() > PATIENCE {
                let pods = self.pods().list(&ListParams::default()).await.expect("a list");
                let left = self.liar.left();
                panic!("{what}: not so after a long time; {left:?}\n{:#?}", pods.items);
            }
        }
    }

    /// Deletes all Pods, and makes sure that nothing is left of them.
    async fn end(self) {
        let at_once = DeleteParams { grace_period_seconds: Some(1), ..DeleteParams::default() };
        let all = ListParams::default();
        self.pods().delete_collection(&at_once, &all).await.expect("deleted");
        self.until("all Pods are gone", async || {
            self.pods().list(&all).await.expect("a list").items.is_empty()
        })
        .await;
        self.until("nothing is left", async || self.liar.left().is_empty()).await;
        let pods = std::fs::read_dir(self.directory.join("root/pods")).expect("a directory");
        assert_eq!(pods.count(), 0, "files are left");
        if let Some(agent) = self.agent {
            agent.stop().await;
        }
        self.cluster.stop().await;
        self.server.abort();
        let _ = std::fs::remove_dir_all(&self.directory);
        remove_cgroups(self.cgroup.trim_start_matches('/'));
    }
}

/// Removes a cgroup without anything in it from every hierarchy.
fn remove_cgroups(name: &str) {
    let root = std::path::Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten();
    for hierarchy in hierarchies.map(|entry| entry.path()).chain([root.to_owned()]) {
        for class in ["besteffort", "burstable", ""] {
            let _ = std::fs::remove_dir(hierarchy.join(name).join(class));
        }
    }
}

thread_local! {
    /// How often something panicked on this thread.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Counts panics of this thread from now on: tasks swallow them.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |what| {
            PANICS.set(PANICS.get() + 1);
            usual(what);
        }));
    });
    PANICS.set(0);
}

/// Lets a runtime lie in a manner for a while, with Pods that were there before, come and go.
async fn bears(name: &str, manner: Manner, said: &[&str]) {
    count_panics();
    let scene = Scene::start(name).await;
    for pod in ["stays", "goes"] {
        scene.run(pod).await;
    }
    scene.until("both run", async || scene.runs("stays").await && scene.runs("goes").await).await;
    scene.liar.behave(manner);
    scene.run("comes").await;
    scene.pods().delete("goes", &DeleteParams::default()).await.expect("deleted");
    let (start, mut ticks) = (Instant::now(), interval(LOOK));
    let lies = if said.is_empty() { BRIEFLY } else { WHILE };
    while start.elapsed() < lies {
        ticks.tick().await;
    }
    match (scene.not_ready().await, said) {
        (found, []) => assert_eq!(found, None, "{manner:?}"),
        (found, parts) => {
            let found = found.unwrap_or_else(|| panic!("{manner:?}: the node says it is ready"));
            assert!(parts.iter().all(|part| found.contains(part)), "{manner:?}: {found}");
        }
    }
    scene.liar.behave(Manner::Honest);
    scene.until("the node is ready again", async || scene.not_ready().await.is_none()).await;
    for pod in ["stays", "comes"] {
        scene.until(&format!("{pod} runs"), async || scene.runs(pod).await).await;
    }
    let gone = async || scene.pods().get_opt("goes").await.expect("an answer").is_none();
    scene.until("the one that was deleted is gone", gone).await;
    let one_each = async || scene.liar.ready_sandboxes() == 2;
    scene.until("each Pod has one sandbox", one_each).await;
    scene.end().await;
    assert_eq!(PANICS.get(), 0, "{manner:?}");
}

const DOWN: &str = "container runtime is down";
const STALE: &str = "PLEG is not healthy: pleg was last seen active";

#[tokio::test(start_paused = true)]
async fn a_runtime_that_does_not_answer_makes_its_node_not_ready() {
    bears("silent", Manner::Silent, &[DOWN, STALE, "threshold is 3m0s"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_slow_is_waited_for() {
    bears("slow", Manner::Slow(Duration::from_secs(2)), &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_too_slow_counts_as_down() {
    bears("too-slow", Manner::Slow(Duration::from_secs(11)), &[DOWN, STALE]).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_refuses_everything_counts_as_down_whatever_it_says() {
    for code in 1..=16 {
        bears(&format!("refuses-{code}"), Manner::Refuses(code), &[DOWN, STALE]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_makes_no_sense_counts_as_down() {
    bears("babbles", Manner::Babbles, &[DOWN, STALE]).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_runtime_forgets_for_a_while_is_there_once_in_the_end() {
    bears("forgets", Manner::Forgets, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_runtime_lists_twice_or_does_not_know_is_there_once_in_the_end() {
    bears("doubles", Manner::Doubles, &[]).await;
    bears("vanishes", Manner::Vanishes, &[]).await;
    bears("confuses", Manner::Confuses, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn absurd_states_and_times_are_borne() {
    bears("absurd", Manner::Absurd, &[]).await;
}
