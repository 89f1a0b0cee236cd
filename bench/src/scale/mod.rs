//! A whole cluster of thousands of nodes in one process: how soon its nodes are registered, how soon
//! Deployments of tens of thousands of Pods run, are rolled over in part and are gone, what that takes
//! of memory and processors, and how long somebody else waits for the API meanwhile.

mod virtual_day;

use std::cell::RefCell;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::program::Program;
use crate::report::{Figure, Report, percentile_of};
use crate::rollout::user::{Followed, User};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CONCURRENCY: usize = 16;
/// Pods of one Deployment.
const REPLICAS: usize = 100;
/// One Deployment of so many is rolled over.
const ROLLED: usize = 10;
/// How often somebody else asks for something.
const ASKED_EVERY: Duration = Duration::from_millis(20);
/// How often it is looked whether all is gone.
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// How much the benchmark `scale` measures, besides the sizes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// scale: let a day pass on virtual time instead, and say how long it really took.
    #[arg(long = "virtual")]
    is_virtual: bool,
}

/// So many nodes and Pods.
#[derive(Clone, Copy, Debug)]
struct Size {
    nodes: usize,
    pods: usize,
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(nodes, pods)| {
            Some(Self { nodes: nodes.parse().ok()?, pods: pods.parse().ok()? })
        });
        numbers.ok_or_else(|| format!("{text:?} is not like 1000:10000"))
    }
}

/// What is measured unless somebody says otherwise.
const SIZES: [Size; 2] = [Size { nodes: 1_000, pods: 10_000 }, Size { nodes: 5_000, pods: 50_000 }];

/// Runs the benchmark with these sizes.
pub(crate) fn run(extent: &Extent, sizes: &[String], report: &mut Report) -> Result<(), String> {
    let mut sizes: Vec<Size> =
        sizes.iter().map(|size| size.parse::<Size>()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = SIZES.into();
    }
    if extent.is_virtual {
        return virtual_day::run(&sizes, report);
    }
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut per_pod = Vec::new();
    for size in &sizes {
        per_pod.push((size.pods, runtime.block_on(one(*size, report))?));
    }
    if let ([(few, first), .., (many, last)], true) = (&per_pod[..], per_pod.len() > 1) {
        let slope = (last / first).ln() / (*many as f64 / *few as f64).ln();
        report.note(&format!("time until all run grows with the power {slope:.2} of the Pods"));
    }
    Ok(())
}

/// Measures a cluster of one size; gives the seconds until all of its Pods ran.
async fn one(size: Size, report: &mut Report) -> Result<f64, String> {
    let Size { nodes, pods } = size;
    let mut tell = |metric: &str, value: f64, unit: &str, goal: &str| {
        let metric = format!("{nodes} nodes, {pods} Pods: {metric}");
        report.figure(&Figure { metric: &metric, value, unit, goal });
    };
    let begun = Instant::now();
    let program = Program::start(&["--nodes", &nodes.to_string(), "--pod-termination", "0"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    user.follow_slim(NODES, "").await?.until(|found| found.len() >= nodes).await?;
    tell("nodes registered", begun.elapsed().as_secs_f64(), "s", "goal: under 5 for 5,000");

    let deployments = pods.div_ceil(REPLICAS);
    let mut all = user.follow_selected(DEPLOYMENTS, "").await?;
    let before = program.processor_time()?;
    let begun = Instant::now();
    let (ran, waited) = meanwhile(&user, run_all(&user, deployments, &mut all)).await?;
    let running = begun.elapsed().as_secs_f64();
    ran?;
    let processors = (program.processor_time()? - before).as_secs_f64();
    tell("all Running", running, "s", "goal: under 180 for 150,000");
    tell("  of processors, for each Pod", processors * 1000.0 / pods as f64, "ms", "");
    tell("  the API meanwhile, p99", waited, "ms", "");
    tell("  resident", program.resident()?, "MB", "goal: under 4,000 for 150,000");

    let begun = Instant::now();
    roll(&user, deployments, &mut all).await?;
    tell("a tenth rolled over", begun.elapsed().as_secs_f64(), "s", "");

    let begun = Instant::now();
    user.remove(DEPLOYMENTS).await?;
    while !gone(&user).await? {
        tokio::time::sleep(LOOKED_EVERY).await;
    }
    tell("all deleted", begun.elapsed().as_secs_f64(), "s", "");
    tell("  resident, peak", program.peak()?, "MB", "");
    Ok(running)
}

fn deployment(number: usize) -> Value {
    let name = format!("web-{number}");
    let requests = json!({"cpu": "10m", "memory": "16Mi"});
    let container = json!({"name": "web", "image": "web", "resources": {"requests": requests}});
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    })
}

/// Whether a Deployment has all its Pods, of the newest template.
fn is_complete(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let all = Value::from(REPLICAS);
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["updatedReplicas", "availableReplicas", "replicas"].iter().all(|n| status[n] == all)
}

/// Creates the Deployments and waits until all their Pods are available.
async fn run_all(user: &User, count: usize, all: &mut Followed) -> Result<(), String> {
    let created = stream::iter((0..count).map(deployment))
        .map(|object| async move { user.create(DEPLOYMENTS, &object).await });
    created.buffer_unordered(CONCURRENCY).try_for_each(|_| async { Ok(()) }).await?;
    complete(all, count).await
}

/// Waits until so many Deployments are complete. Each change is looked at once.
async fn complete(all: &mut Followed, count: usize) -> Result<(), String> {
    let mut done = std::collections::HashSet::new();
    all.each(|objects, changed| {
        let looked_at: Vec<&Value> = match changed {
            Some(one) => vec![one],
            None => objects.values().collect(),
        };
        for one in looked_at {
            let name = one["metadata"]["name"].as_str().unwrap_or_default();
            match is_complete(one) {
                true => done.insert(name.to_owned()),
                false => done.remove(name),
            };
        }
        done.len() < count
    })
    .await
}

/// Rolls some of the Deployments over.
async fn roll(user: &User, count: usize, all: &mut Followed) -> Result<(), String> {
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"rolled": "once"}}}}});
    for number in (0..count).step_by(ROLLED) {
        user.merge(&format!("{DEPLOYMENTS}/web-{number}"), &change).await?;
    }
    // Those that are to be rolled over are not complete from the first change on.
    let rolled =
        |object: &Value| object["spec"]["template"]["metadata"]["annotations"]["rolled"] == "once";
    let expected = count.div_ceil(ROLLED);
    all.each(|objects, _| objects.values().filter(|object| rolled(object)).count() < expected)
        .await?;
    complete(all, count).await
}

/// Whether there is no Pod any more.
async fn gone(user: &User) -> Result<bool, String> {
    let page = user.get(&format!("{PODS}?limit=1")).await?;
    Ok(page["items"].as_array().is_none_or(Vec::is_empty))
}

/// Does something while somebody else asks for a small object again and again; also gives the time
/// within which 99 of 100 were answered, in milliseconds.
async fn meanwhile<T>(user: &User, work: impl Future<Output = T>) -> Result<(T, f64), String> {
    let times = RefCell::new(Vec::new());
    let asking = async {
        loop {
            let begun = Instant::now();
            user.get("/api/v1/namespaces/default").await?;
            times.borrow_mut().push(begun.elapsed());
            tokio::time::sleep(ASKED_EVERY).await;
        }
        #[expect(unreachable_code, reason = "says what an error is")]
        Ok::<(), String>(())
    };
    let done = tokio::select! {
        done = work => done,
        failed = asking => return Err(failed.err().unwrap_or_default()),
    };
    Ok((done, percentile_of(&mut times.take(), 0.99)))
}
