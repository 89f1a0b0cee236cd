//! Pods by the agent: created through the API, and heard of by a watch.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Times;
use super::containerd::Room;
use crate::program::{own, processor_time, resident};
use crate::rollout::user::{Followed, User};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// How much memory it has, in megabytes.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) resident: f64,
    /// Without the pages of files, which it shares.
    pub(super) own: f64,
}

/// `steersman-node`, killed when dropped.
pub(super) struct Agent {
    child: Child,
    user: User,
}

impl Agent {
    /// Starts it, and waits until its node is ready.
    pub(super) async fn start(room: &Room, kubeconfig: &Path, user: &User) -> Result<Self, String> {
        let mut nodes = user.follow(NODES, &room.node).await?;
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = here.ancestors().nth(2).ok_or("no directory above the benchmarks")?;
        let program = target.join("small/steersman-node");
        let child = Command::new(&program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--runtime=containerd={}", room.containerd().socket().display()))
            .args(["--node-name", &room.node, "--cgroup-root", &room.cgroup])
            .arg("--node-dir")
            .arg(&room.root)
            .arg("--pod-logs-dir")
            .arg(&room.logs)
            .args(["--max-pods", "200"])
            // How full the disk of whoever measures is must not matter.
            .args(["--eviction-hard", ""])
            .env("RUST_LOG", "error")
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let agent = Self { child, user: user.clone() };
        nodes.until_one(is_ready).await?;
        Ok(agent)
    }

    /// How long each of so many Pods took, one after the other, each taken away before the next.
    pub(super) async fn one_by_one(&self, count: usize) -> Result<Times, String> {
        let mut times = Times::new();
        for number in 0..count {
            let name = format!("one-{number}");
            let mut pods = self.user.follow(PODS, &name).await?;
            let begun = Instant::now();
            self.user.create(PODS, &pod(&name, "one")).await?;
            pods.until_one(runs).await?;
            times.push(begun.elapsed());
            self.user.remove(&format!("{PODS}/{name}")).await?;
            pods.until_none().await?;
        }
        Ok(times)
    }

    /// How long each of so many Pods took that are created at once, and stay.
    pub(super) async fn at_once(&self, count: usize) -> Result<Times, String> {
        let app = format!("many-{count}");
        let selector = format!("labelSelector=app%3D{app}");
        let mut pods = self.user.follow_selected(PODS, &selector).await?;
        let names: Vec<String> = (0..count).map(|number| format!("{app}-{number}")).collect();
        let begun: HashMap<&str, Instant> =
            names.iter().map(|name| (name.as_str(), Instant::now())).collect();
        let written: Vec<Value> = names.iter().map(|name| pod(name, &app)).collect();
        let creating = written.iter().map(|pod| self.user.create(PODS, pod));
        let (created, times) =
            futures::join!(futures::future::try_join_all(creating), follow(&mut pods, &begun));
        created?;
        times
    }

    pub(super) fn memory(&self) -> Result<Memory, String> {
        Ok(Memory { resident: resident(self.child.id())?, own: own(self.child.id())? })
    }

    /// How much time processors have spent on it.
    pub(super) fn processor_time(&self) -> Result<Duration, String> {
        processor_time(self.child.id())
    }

    /// Takes all Pods away.
    pub(super) async fn clear(&self) -> Result<(), String> {
        let mut pods = self.user.follow_slim(PODS, "").await?;
        self.user.remove(PODS).await?;
        pods.until_none().await
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Notes when each Pod runs, until all do.
async fn follow(pods: &mut Followed, begun: &HashMap<&str, Instant>) -> Result<Times, String> {
    let mut times: HashMap<String, Duration> = HashMap::new();
    pods.each(|_, changed| {
        if let Some(pod) = changed.filter(|pod| runs(pod)) {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(begun) = begun.get(name) {
                times.entry(name.to_owned()).or_insert_with(|| begun.elapsed());
            }
        }
        times.len() < begun.len()
    })
    .await?;
    Ok(times.into_values().collect())
}

fn runs(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// A Pod like those that the runtime is asked for directly.
fn pod(name: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "localhost/busybox:1",
                "command": super::direct::COMMAND,
            }],
        },
    })
}
