//! Where our scheduler decides otherwise than kube-scheduler: `cargo xtask compare-scheduler`.
//!
//! Both work on one [cluster of ours](ours) in which nothing else moves, each for the Pods that name
//! it. From every seed follows a [world]: nodes, Pods on them, and Pods to schedule. Of those each is
//! given first to [kube-scheduler](upstream), taken away, given to ours and left: so both see the same
//! state. [Compared](verdict) are the nodes that can run it, the score that every plug-in gives every
//! one of them, the node that is taken (kube-scheduler takes any of the best, so ours must be one of
//! those), and where there is none, condition, Event and who has to go.

mod dice;
mod ours;
mod pods;
mod scores;
mod trial;
mod upstream;
mod verdict;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tokio::time::sleep;

use crate::api::{Api, path};
use ours::Ours;
use trial::{Decision, Trial};
use upstream::Upstream;
use verdict::{Difference, Part};
use world::World;

/// How long both get to hear of what cannot be asked for, such as volumes.
const HEARD: Duration = Duration::from_millis(150);
/// How often it is looked whether both know every node.
const LOOKS: usize = 50;

/// Lets kube-scheduler and our scheduler decide about the same Pods, and prints where they differ.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask compare-scheduler")]
struct Arguments {
    /// The directory with the program kube-scheduler.
    #[arg(long, value_name = "DIR")]
    kube: PathBuf,
    /// How many clusters.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many Pods are scheduled in each.
    #[arg(long, default_value_t = 4)]
    pods: usize,
    /// Prints the objects of whatever differs.
    #[arg(long)]
    objects: bool,
}

/// The program.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal is its interface")]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string());
    match runtime.and_then(|runtime| runtime.block_on(compare(&arguments))) {
        Ok(tally) => {
            println!("{tally}");
            if tally.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What was found.
#[derive(Default)]
struct Tally {
    clusters: usize,
    pods: usize,
    bound: usize,
    /// Of those, for which several nodes were compared.
    compared: usize,
    preempting: usize,
    /// How many Pods differ in a part.
    differences: BTreeMap<Part, usize>,
    /// How many Pods differ in anything.
    differing: usize,
    /// How many differed only when they were asked about for the first time.
    at_first: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { clusters, pods, bound, compared, preempting, differing, at_first, .. } = self;
        write!(
            out,
            "{clusters} clusters, {pods} pods: {bound} bound, {compared} of them after scores were \
             compared; {} not bound, {preempting} of them with others having to go\n\
             {differing} decided otherwise; {at_first} more only at first",
            pods - bound,
        )?;
        self.differences.iter().try_for_each(|(part, count)| write!(out, "\n{part:?}: {count}"))
    }
}

/// Both schedulers.
struct Sides {
    ours: Ours,
    upstream: Upstream,
    objects: bool,
}

async fn compare(arguments: &Arguments) -> Result<Tally, String> {
    let ours = Ours::start().await?;
    let work = std::env::temp_dir().join(format!("steersman-compare-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let upstream = Upstream::start(&arguments.kube, &work, &ours.kubeconfig)?;
    for object in world::common() {
        ours.api.create(&object).await?;
    }
    let sides = Sides { ours, upstream, objects: arguments.objects };
    let mut tally = Tally::default();
    for seed in arguments.first..arguments.first + arguments.seeds {
        sides.one(seed, arguments.pods, &mut tally).await?;
    }
    let _ = std::fs::remove_dir_all(work);
    Ok(tally)
}

impl Sides {
    fn api(&self) -> &Api {
        &self.ours.api
    }

    /// Compares in the cluster of a seed.
    async fn one(&self, seed: u64, pods: usize, tally: &mut Tally) -> Result<(), String> {
        let mut world = World::of(seed, pods);
        for object in world.objects.iter().chain(&world.nodes).chain(&world.pods) {
            self.api().create(object).await?;
        }
        self.know(&world).await?;
        tally.clusters += 1;
        for pod in std::mem::take(&mut world.trials) {
            let trial = self.trial(&pod, &world);
            let mut pair = self.pair(&trial).await?;
            if !self.differences(&pair, &world).is_empty() {
                // One of them may not have heard of something yet.
                trial.undo(&pair.ours).await?;
                sleep(HEARD).await;
                pair = self.pair(&trial).await?;
                tally.at_first += usize::from(self.differences(&pair, &world).is_empty());
            }
            let differences = self.differences(&pair, &world);
            self.tell(seed, &pod, &differences, &world);
            tally.count(&pair, &differences);
            match pair.ours.node.as_ref().filter(|_| trial.claim.is_none()) {
                Some(node) => {
                    let mut pod = pod;
                    pod["spec"]["nodeName"] = node.as_str().into();
                    world.pods.push(pod);
                }
                None => trial.undo(&pair.ours).await?,
            }
        }
        for object in world.pods.iter().chain(&world.nodes).chain(&world.objects) {
            self.api().remove(object).await?;
        }
        Ok(())
    }

    /// Waits until both know of everything.
    async fn know(&self, world: &World) -> Result<(), String> {
        sleep(HEARD).await;
        let mut pod = world.trials.first().cloned().unwrap_or_default();
        pod["metadata"]["name"] = "nowhere".into();
        pod["spec"] = serde_json::json!({
            "containers": [{"name": "c", "image": "i"}], "nodeSelector": {"no": "where"},
        });
        let expected = format!("0/{} nodes are available", world.nodes.len());
        for scheduler in [upstream::NAME, ours::NAME] {
            let trial = Trial { api: self.api(), pod: &pod, claim: None, running: &[] };
            for look in 1.. {
                let decision = trial.decided_by(scheduler).await?;
                trial.undo(&decision).await?;
                let [_, message] = decision.condition.unwrap_or_default();
                if message.starts_with(&expected) {
                    break;
                }
                if look == LOOKS {
                    return Err(format!("{scheduler} does not know every node: {message}"));
                }
                sleep(HEARD).await;
            }
        }
        Ok(())
    }

    fn trial<'a>(&'a self, pod: &'a Value, world: &'a World) -> Trial<'a> {
        let made = |volume: &&Value| volume["name"] == pods::MADE;
        let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let name = volumes.find(made).map(|it| &it["persistentVolumeClaim"]["claimName"]);
        let is_it = |object: &&Value| {
            object["kind"] == "PersistentVolumeClaim" && Some(&object["metadata"]["name"]) == name
        };
        let claim = world.objects.iter().find(is_it);
        Trial { api: self.api(), pod, claim, running: &world.pods }
    }

    /// Lets both decide. What ours did is left as it is.
    async fn pair(&self, trial: &Trial<'_>) -> Result<Pair, String> {
        let name = |part: &str| trial.pod["metadata"][part].as_str().unwrap_or_default();
        let key = format!("{}/{}", name("namespace"), name("name"));
        self.upstream.forget(&key);
        let mut theirs = trial.decided_by(upstream::NAME).await?;
        if theirs.node.is_some() && trial.claim.is_none() {
            self.upstream.told_of(&key).await;
        }
        theirs.scores = self.upstream.told.take(&key);
        trial.undo(&theirs).await?;
        self.ours.told.take(&key);
        let mut ours = trial.decided_by(ours::NAME).await?;
        ours.scores = self.ours.told.take(&key);
        Ok(Pair { theirs, ours })
    }

    fn differences(&self, pair: &Pair, world: &World) -> Vec<Difference> {
        verdict::differences(&pair.theirs, &pair.ours, &world.pods)
    }

    #[expect(clippy::print_stdout, reason = "the terminal is its interface")]
    fn tell(&self, seed: u64, pod: &Value, differences: &[Difference], world: &World) {
        if differences.is_empty() {
            return;
        }
        let mut text = format!("seed {seed}, {}: theirs | ours", path(pod));
        for difference in differences {
            let _ = write!(text, "\n  {difference}");
        }
        if self.objects {
            let _ = write!(text, "\n  pod {pod}");
            for object in world.nodes.iter().chain(&world.pods).chain(&world.objects) {
                let _ = write!(text, "\n  beside {object}");
            }
        }
        println!("{text}");
    }
}

/// What both decided about a Pod.
struct Pair {
    theirs: Decision,
    ours: Decision,
}

impl Tally {
    fn count(&mut self, pair: &Pair, differences: &[Difference]) {
        self.pods += 1;
        self.bound += usize::from(pair.theirs.node.is_some());
        self.compared += usize::from(!pair.theirs.scores.is_empty());
        self.preempting += usize::from(pair.theirs.nominated.is_some());
        self.differing += usize::from(!differences.is_empty());
        let parts: std::collections::BTreeSet<Part> =
            differences.iter().map(|difference| difference.part).collect();
        for part in parts {
            *self.differences.entry(part).or_default() += 1;
        }
    }
}
