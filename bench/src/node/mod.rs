//! The node agent on a real containerd: how long a Pod takes from its creation until it runs, beside
//! what the runtime takes for the same container by itself, and what the agent needs meanwhile.
//!
//! `steersman up` serves, `steersman-node` is the agent, and containerd is one of the benchmark's own,
//! with images that it makes. Needs root and Debian's packages, which `cargo xtask bench node` brings.

mod agent;
#[allow(dead_code, unreachable_pub, reason = "it is shared with tests")]
#[path = "../../../crates/steersman-cluster/tests/real_node/containerd/mod.rs"]
mod containerd;
#[allow(dead_code, unused_imports, reason = "the agent asks more")]
#[path = "../../../crates/steersman-node/src/cri/mod.rs"]
mod cri;
mod direct;

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::program::Program;
use crate::report::{Figure, Report, percentile_of};
use crate::rollout::user::User;
use agent::{Agent, Memory};
use containerd::Room;

/// How many Pods are started one after the other.
const ONE_BY_ONE: usize = 30;
/// How many at once, and how many a node has at most.
const SEVERAL: usize = 50;
const MANY: usize = 110;
/// For how long the agent is watched when nothing happens.
const IDLE: Duration = Duration::from_secs(30);
/// How long it may take until nothing happens any more.
const SETTLE: Duration = Duration::from_secs(5);

/// How long each start took.
type Times = Vec<Duration>;

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(measure(report))
}

async fn measure(report: &mut Report) -> Result<(), String> {
    let containerd = containerd::shared();
    let direct = direct::Direct::new(containerd)?;
    let own_one = direct.one_by_one(ONE_BY_ONE).await?;
    let own_several = direct.at_once(SEVERAL).await?;

    let program = Program::start(&["--nodes", "0"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    let room = Room::of(containerd, "bench");
    let agent = Agent::start(&room, program.kubeconfig(), &user).await?;
    let empty = agent.memory()?;
    let one = agent.one_by_one(ONE_BY_ONE).await?;
    let several = agent.at_once(SEVERAL).await?;
    sleep(SETTLE).await;
    let memory = agent.memory()?;
    let before = agent.processor_time()?;
    sleep(IDLE).await;
    let idle = agent.processor_time()? - before;
    agent.at_once(MANY - SEVERAL).await?;
    sleep(SETTLE).await;
    let memory_of_many = agent.memory()?;
    agent.clear().await?;

    told(report, "Pod, one by one", one, own_one);
    told(report, "Pod, 50 at once", several, own_several);
    resident(report, "without Pods", empty, "");
    resident(report, "with 50 Pods", memory, "goal: under 25");
    resident(report, "with 110 Pods", memory_of_many, "");
    let share = idle.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    figure(report, "agent, idle with 50 Pods", share, "% of a core", "goal: under 1");
    Ok(())
}

/// Tells how much memory the agent has, and what of it is its own.
fn resident(report: &mut Report, when: &str, memory: Memory, goal: &str) {
    let Memory { resident, own } = memory;
    figure(report, &format!("agent, resident {when}"), resident, "MB", goal);
    figure(report, &format!("agent, resident {when}: its own"), own, "MB", "");
    let files = resident - own;
    figure(report, &format!("agent, resident {when}: pages of files"), files, "MB", "");
}

fn figure(report: &mut Report, metric: &str, value: f64, unit: &str, goal: &str) {
    report.figure(&Figure { metric, value, unit, goal });
}

/// Tells how long Pods took beside the runtime's own time.
fn told(report: &mut Report, what: &str, mut ours: Times, mut own: Times) {
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let [ours, own] = [&mut ours, &mut own].map(|times| percentile_of(times, share));
        let beside = format!("{what}, {name}: the runtime by CRI alone");
        let above = format!("{what}, {name}: above that");
        figure(report, &format!("{what}, {name}: API create to Running"), ours, "ms", "");
        figure(report, &beside, own, "ms", "");
        figure(report, &above, ours - own, "ms", "goal: under 50");
    }
}
