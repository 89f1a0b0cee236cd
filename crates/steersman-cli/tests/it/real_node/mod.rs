//! This machine as a node: `steersman up --runtime` and `steersman node`, on a containerd of the
//! tests' own.

mod sweep;
mod two_machines;

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::containerd::{self, Room};
use crate::program::{PATIENCE, Program, steersman, steersman_node};

/// How often to look.
const LOOK: Duration = Duration::from_millis(50);

/// `steersman node` as the node of a room, killed when dropped.
struct Agent {
    child: Child,
}

impl Agent {
    fn start(room: &Room, arguments: &[&str]) -> Self {
        Self::spawn(steersman(&["node"]), room, arguments)
    }

    /// The same by the program that is nothing but a node.
    fn start_alone(room: &Room, arguments: &[&str]) -> Self {
        Self::spawn(steersman_node(), room, arguments)
    }

    /// The same by a command that has no arguments of its own any more.
    fn spawn(mut command: Command, room: &Room, arguments: &[&str]) -> Self {
        command.args(flags(room)).args(["--node-name", &room.node]).args(arguments);
        command.env_remove("KUBECONFIG").env("HOME", &room.root);
        std::fs::create_dir_all(&room.root).unwrap();
        // For people who look why it failed.
        let log = File::options().create(true).append(true).open(room.root.join("log")).unwrap();
        Self { child: command.stdout(Stdio::null()).stderr(log).spawn().unwrap() }
    }

    /// Ends it as a crash would.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as its user would.
    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of the command by which a machine joins.
fn invite(program: &Program) -> Vec<String> {
    let kubeconfig = program.directory.join("kubeconfig").display().to_string();
    let token = ["token", "create", "--kubeconfig", &kubeconfig, "--print-join-command"];
    let output = steersman(&token).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let command = String::from_utf8(output.stdout).unwrap();
    let words: Vec<String> = command.trim().split(' ').map(str::to_owned).collect();
    assert_eq!(&words[..3], &["steersman", "node", "--server"], "{command}");
    words
}

/// What says where the node of a room has its things.
fn flags(room: &Room) -> Vec<String> {
    let socket = room.containerd().socket();
    let paths = [
        format!("--runtime=containerd={}", socket.display()),
        format!("--node-dir={}", room.root.display()),
        format!("--pod-logs-dir={}", room.logs.display()),
        // How full the disk of whoever runs the tests is must not matter.
        "--eviction-hard=".to_owned(),
    ];
    paths.into_iter().chain([format!("--cgroup-root={}", room.cgroup)]).collect()
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let (start, mut ticks) = (Instant::now(), interval(LOOK));
    while !holds().await {
        ticks.tick().await;
        assert!(start.elapsed() < PATIENCE, "{what}: not so after a long time");
    }
}

async fn until_node_is_ready(program: &Program, name: &str) -> Node {
    let nodes: Api<Node> = Api::all(program.kube().await);
    let ready = async || {
        let node = nodes.get_opt(name).await.unwrap();
        let conditions = node.and_then(|node| node.status).and_then(|status| status.conditions);
        conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    };
    until(&format!("the node {name} is ready"), ready).await;
    nodes.get(name).await.unwrap()
}

/// Runs a Pod on a node until its container serves, and gives the id of the container.
async fn run_pod(program: &Program, node: &str) -> String {
    let pods: Api<Pod> = Api::default_namespaced(program.kube().await);
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 2,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "main",
                "image": "localhost/busybox:1",
                "command": ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"],
            }],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    until("the Pod runs", async || container(&pods).await.is_some()).await;
    container(&pods).await.unwrap()
}

/// The id of the container of the Pod, if it runs.
async fn container(pods: &Api<Pod>) -> Option<String> {
    let status = pods.get_opt("web").await.unwrap()?.status?;
    let container = status.container_statuses?.into_iter().next()?;
    container.state?.running?;
    container.container_id
}

async fn delete_pod(program: &Program, room: &Room) {
    let pods: Api<Pod> = Api::default_namespaced(program.kube().await);
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    until("the Pod is gone", async || pods.get_opt("web").await.unwrap().is_none()).await;
    until("nothing is left", async || room.left().is_empty()).await;
}

/// Whether containerd runs a container, which another test may have killed.
async fn runs(id: &str) -> bool {
    let id = id.trim_start_matches("containerd://");
    let listed = || containerd::shared().try_ctr(&["tasks", "ls"]);
    until("containerd answers", async || listed().is_ok()).await;
    listed().unwrap_or_default().lines().any(|line| line.contains(id))
}

/// The last line that a command says before it fails.
fn failure(arguments: &[&str]) -> String {
    let output = steersman(arguments).env("RUST_LOG", "error").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn up_runs_pods_in_real_containers_on_this_machine() {
    let room = Room::of(containerd::shared(), "beside");
    let flags = flags(&room);
    let mut all: Vec<&str> = vec!["--nodes", "1", "--node-name", "beside"];
    all.extend(flags.iter().map(String::as_str));
    let mut program = Program::up_on_disk(&all);
    program.read_until("Pods that are bound to the node beside run in real containers.");
    until_node_is_ready(&program, "beside").await;
    let id = run_pod(&program, "beside").await;
    assert!(runs(&id).await, "containerd has it");
    program.stop();
    assert!(runs(&id).await, "its Pods run on");
    program.start_again();
    let pods: Api<Pod> = Api::default_namespaced(program.kube().await);
    until("the Pod is as it was", async || container(&pods).await.as_ref() == Some(&id)).await;
    delete_pod(&program, &room).await;
    program.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_a_cluster_that_is_kept_nowhere_go_with_it() {
    let room = Room::of(containerd::shared(), "forgotten");
    let flags = flags(&room);
    let mut all: Vec<&str> = vec!["--nodes", "0", "--node-name", "forgotten"];
    all.extend(flags.iter().map(String::as_str));
    let mut program = Program::up(&all);
    until_node_is_ready(&program, "forgotten").await;
    let id = run_pod(&program, "forgotten").await;
    assert!(runs(&id).await);
    program.stop();
    assert!(!runs(&id).await);
    let left = room.left();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_runs_pods_for_the_user_of_a_kubeconfig() {
    let program = Program::up(&["--nodes", "0"]);
    let room = Room::of(containerd::shared(), "by-kubeconfig");
    let kubeconfig = program.directory.join("kubeconfig").display().to_string();
    let mut agent = Agent::start(&room, &["--kubeconfig", &kubeconfig]);
    let node = until_node_is_ready(&program, "by-kubeconfig").await;
    let version = node.status.unwrap().node_info.unwrap().container_runtime_version;
    assert!(version.starts_with("containerd://"), "{version}");
    let id = run_pod(&program, "by-kubeconfig").await;
    assert!(runs(&id).await);
    delete_pod(&program, &room).await;
    assert!(!runs(&id).await);
    agent.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_with_a_token_and_needs_it_only_once() {
    let program = Program::up(&["--nodes", "0"]);
    let room = Room::of(containerd::shared(), "joins");
    let words = invite(&program);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut agent = Agent::start(&room, &words[2..]);
    until_node_is_ready(&program, "joins").await;
    let id = run_pod(&program, "joins").await;
    assert!(runs(&id).await);
    agent.kill();
    let leases: Api<Lease> = Api::namespaced(program.kube().await, "kube-node-lease");
    let renewed = async || leases.get("joins").await.unwrap().spec.unwrap().renew_time;
    let before = renewed().await;
    let mut agent = Agent::start(&room, &[]);
    until("the Lease is renewed", async || renewed().await > before).await;
    delete_pod(&program, &room).await;
    agent.stop();
    assert!(room.root.join("pki/kubelet-client-current.pem").exists());

    let room = Room::of(containerd::shared(), "stranger");
    let flags = flags(&room);
    let server = words[3];
    let wrong = format!("sha256:{}", "0".repeat(64));
    for (rest, why) in [
        (vec!["--token", words[5], "--discovery-token-ca-cert-hash", &wrong], "are pinned"),
        (vec![], "gets one with --token"),
    ] {
        let mut arguments = vec!["node", "--node-name", "stranger", "--server", server];
        arguments.extend(flags.iter().map(String::as_str));
        arguments.extend(rest);
        let said = failure(&arguments);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn without_containerd_one_line_says_what_to_install() {
    let nowhere = "--runtime=containerd=/nowhere/containerd.sock";
    for arguments in [
        vec!["up", "--memory", "--listen", "127.0.0.1:0", nowhere],
        vec!["node", nowhere, "--kubeconfig", "/nowhere/kubeconfig"],
    ] {
        let said = failure(&arguments);
        for part in [
            "no container runtime at /nowhere/containerd.sock",
            "apt-get install containerd runc containernetworking-plugins",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
