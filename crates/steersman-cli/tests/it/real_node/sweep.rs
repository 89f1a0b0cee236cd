//! Agent and containerd are killed at random moments while Pods come and go. Whatever happens, every
//! Pod ends as it should, and nothing is left on the machine.
//!
//! `STEERSMAN_SEED` repeats a run, `STEERSMAN_PODS` makes it longer; agent and containerd are killed
//! more often then.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ContainerStateTerminated, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use super::{Agent, until_node_is_ready};
use crate::containerd::{self, Room};
use crate::program::{PATIENCE, Program};

/// How long a step is.
const STEP: Duration = Duration::from_millis(50);
/// So many Pods unless more are asked for.
const PODS: usize = 12;
/// For so many Pods the agent is killed once, and containerd.
const PODS_PER_KILL: usize = 4;
const PODS_PER_RESTART: usize = 12;
/// In how many steps a Pod is created, on average; how many later it may be deleted.
const STEPS_PER_POD: u64 = 4;
const LIFE: u64 = 120;
/// For how many steps the agent may be away.
const AWAY: u64 = 30;

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// So many different steps before the end.
    fn steps(&mut self, count: usize, end: u64) -> BTreeSet<u64> {
        let mut steps = BTreeSet::new();
        while steps.len() < count {
            steps.insert(self.below(end));
        }
        steps
    }
}

/// How a Pod is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Serves,
    Succeeds,
    Fails,
    HasVolumes,
    SucceedsAtLast,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Serves, Self::Succeeds, Self::Fails, Self::HasVolumes, Self::SucceedsAtLast];

    fn pod(self, name: &str, node: &str) -> Pod {
        let (policy, script) = match self {
            Self::Serves => ("Always", SERVE),
            Self::Succeeds => ("Never", "sleep 0.3; exit 0"),
            Self::Fails => ("Never", "sleep 0.3; exit 3"),
            Self::HasVolumes => ("Always", "cat /data/first /config/key && exec sh -c \"$SERVE\""),
            Self::SucceedsAtLast => {
                ("OnFailure", "[ -e /data/second ] && exit 0; touch /data/second; exit 1")
            }
        };
        let mounts = json!([
            {"name": "data", "mountPath": "/data"},
            {"name": "config", "mountPath": "/config"},
        ]);
        let container = |name: &str, script: &str| {
            json!({
                "name": name,
                "image": "localhost/busybox:1",
                "command": ["sh", "-c", script],
                "env": [{"name": "SERVE", "value": SERVE}],
                "volumeMounts": mounts,
            })
        };
        let init = match self {
            Self::HasVolumes => json!([container("setup", "echo first > /data/first")]),
            _ => Value::Null,
        };
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "restartPolicy": policy,
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 2,
                "tolerations": [{"operator": "Exists"}],
                "initContainers": init,
                "containers": [container("main", script)],
                "volumes": [
                    {"name": "data", "emptyDir": {"medium": "Memory"}},
                    {"name": "config", "configMap": {"name": "config"}},
                ],
            },
        });
        serde_json::from_value(pod).unwrap()
    }

    /// Whether a Pod is as it should be in the end. How a container ended while containerd was away,
    /// containerd may not know: then it has failed, and was started again where that is the policy.
    fn is_right(self, pod: &Pod) -> bool {
        let Some(status) = &pod.status else { return false };
        let main = status.container_statuses.iter().flatten().next();
        let Some(main) = main else { return false };
        let phase = status.phase.as_deref().unwrap_or_default();
        let ended = main.state.as_ref().and_then(|state| state.terminated.as_ref());
        let before = main.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let code = ended.map(|ended| ended.exit_code);
        let first = main.restart_count == 0;
        match self {
            Self::Serves | Self::HasVolumes => {
                phase == "Running" && main.ready && (first || before.is_some_and(is_lost))
            }
            Self::Succeeds | Self::Fails if ended.is_some_and(is_lost) => {
                phase == "Failed" && first
            }
            Self::Succeeds => phase == "Succeeded" && code == Some(0) && first,
            Self::Fails => phase == "Failed" && code == Some(3) && first,
            Self::SucceedsAtLast => {
                // A start that was cut off is not counted, although its process may have run.
                let right = main.restart_count <= 1 || before.is_some_and(is_lost);
                phase == "Succeeded" && code == Some(0) && right
            }
        }
    }
}

/// Whether nobody knows how a container ended.
fn is_lost(ended: &ContainerStateTerminated) -> bool {
    matches!(ended.reason.as_deref(), Some("Unknown" | "ContainerStatusUnknown"))
}

/// A Pod of the sweep.
struct Planned {
    name: String,
    kind: Kind,
    created: u64,
    /// When it is deleted, if it is.
    deleted: Option<u64>,
}

/// What happens when.
struct Plan {
    pods: Vec<Planned>,
    /// When the agent is killed, and for how long it is away.
    kills: Vec<(u64, u64)>,
    /// When containerd is killed.
    restarts: BTreeSet<u64>,
    steps: u64,
}

impl Plan {
    fn of(seed: u64, count: usize) -> Self {
        let mut random = Random(seed);
        let end = STEPS_PER_POD * u64::try_from(count).unwrap();
        let pods = (0..count).map(|number| {
            let created = random.below(end);
            let deleted = (random.below(2) == 0).then(|| created + random.below(LIFE));
            let kind = Kind::ALL[number % Kind::ALL.len()];
            Planned { name: format!("pod-{number}"), kind, created, deleted }
        });
        let pods: Vec<Planned> = pods.collect();
        let steps = end + LIFE;
        let kills = random.steps(count.div_ceil(PODS_PER_KILL), steps);
        let kills = kills.into_iter().map(|at| (at, random.below(AWAY))).collect();
        let restarts = random.steps(count.div_ceil(PODS_PER_RESTART), steps);
        Self { pods, kills, restarts, steps }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_end_as_they_should_whenever_the_agent_and_containerd_are_killed() {
    let count = number("STEERSMAN_PODS").and_then(|it| usize::try_from(it).ok()).unwrap_or(PODS);
    let seed = number("STEERSMAN_SEED").unwrap_or(22);
    let run = format!("STEERSMAN_SEED={seed} STEERSMAN_PODS={count}");
    let plan = Plan::of(seed, count);
    let program = Program::up(&["--nodes", "0"]);
    let room = Room::of(containerd::shared(), "swept");
    let kubeconfig = program.directory.join("kubeconfig").display().to_string();
    let start = || Agent::start_alone(&room, &["--kubeconfig", &kubeconfig]);
    let mut agent = start();
    until_node_is_ready(&program, "swept").await;
    let client = program.kube().await;
    make_config(&client).await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut back = None;
    let mut ticks = interval(STEP);
    for step in 0..=plan.steps + AWAY {
        ticks.tick().await;
        for planned in plan.pods.iter().filter(|it| it.created == step) {
            let pod = planned.kind.pod(&planned.name, "swept");
            pods.create(&PostParams::default(), &pod).await.unwrap();
        }
        for planned in plan.pods.iter().filter(|it| it.deleted == Some(step)) {
            pods.delete(&planned.name, &DeleteParams::default()).await.unwrap();
        }
        if let Some((_, away)) = plan.kills.iter().find(|(at, _)| *at == step)
            && back.is_none()
        {
            agent.kill();
            back = Some(step + away);
        }
        if back.is_some_and(|back| back <= step) {
            (agent, back) = (start(), None);
        }
        if plan.restarts.contains(&step) {
            containerd::shared().kill();
        }
    }
    check(&plan, &pods, &room, &run).await;
    let all = ListParams::default();
    pods.delete_collection(&DeleteParams::default(), &all).await.unwrap();
    let (start, mut ticks) = (Instant::now(), interval(STEP));
    loop {
        let rest = pods.list(&all).await.unwrap().items;
        if rest.is_empty() {
            break;
        }
        ticks.tick().await;
        assert!(start.elapsed() < PATIENCE, "{run}: not gone: {rest:#?}\n{}", log_of(&room));
    }
    let left = || [room.left(), containerd::shared().left_addresses()].concat();
    let (start, mut ticks) = (Instant::now(), interval(STEP));
    while !left().is_empty() {
        ticks.tick().await;
        assert!(start.elapsed() < PATIENCE, "{run}: {:#?}", left());
    }
    agent.stop();
}

/// What the agents in a room have told.
fn log_of(room: &Room) -> String {
    std::fs::read_to_string(room.root.join("log")).unwrap_or_default()
}

/// Waits until every Pod is as it should be, or is gone.
async fn check(plan: &Plan, pods: &Api<Pod>, room: &Room, run: &str) {
    for planned in &plan.pods {
        let Planned { name, kind, deleted, .. } = planned;
        let what = format!("{run}: {name}, {kind:?}, deleted: {deleted:?}");
        let (start, mut ticks) = (Instant::now(), interval(STEP));
        loop {
            let pod = pods.get_opt(name).await.unwrap();
            let right = match (&pod, deleted) {
                (None, Some(_)) => true,
                (Some(pod), None) => kind.is_right(pod),
                _ => false,
            };
            if right {
                break;
            }
            let status = pod.and_then(|pod| pod.status);
            let phase = status.as_ref().and_then(|status| status.phase.as_deref());
            let failed = deleted.is_none() && phase == Some("Failed");
            let in_time = !failed && start.elapsed() < PATIENCE;
            assert!(in_time, "{what}: {status:#?}\n{}", log_of(room));
            ticks.tick().await;
        }
    }
}

async fn make_config(client: &Client) {
    let map = json!({"metadata": {"name": "config"}, "data": {"key": "value"}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &map).await.unwrap();
}
