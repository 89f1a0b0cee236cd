//! The study of scale: how the AppService controller of the examples fares with ever more AppServices, in
//! one process, with one shard and with several, on a cluster of our own in another process. It writes
//! `docs/scale.md` and its plots.
//!
//! Step by step so many AppServices are created as fast as the cluster takes them, each of which becomes a
//! Deployment and a ReplicaSet without Pods. When all are reconciled and nothing happens any more, some are
//! changed at a steady rate, and it is measured how long each change waits for the end of its reconcile.

mod chapter;
mod figures;
mod plots;
pub(crate) mod subject;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use kube::CustomResourceExt;
use serde_json::json;
use steersman_examples::app_service::{AppService, app_service};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, sleep_until};

use crate::processes::ourselves;
use crate::processes::talk::Process;
use crate::processes::wire::{Line, nanoseconds};
use crate::program::Program;
use crate::report::{Figure, Report};
use crate::rollout::user::User;
use figures::{Moment, Run, Sample, Step};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APP_SERVICES: &str = "/apis/demo.steersman.dev/v1alpha1/namespaces/default/appservices";
/// The annotation that says when a client changed an AppService.
const WRITTEN: &str = "study.steersman.dev/written";
/// How many requests are made at once to create AppServices.
const CONCURRENCY: usize = 32;
/// How often the controller is asked how far it is.
const LOOKED_EVERY: Duration = Duration::from_millis(250);
/// For how long nothing is reconciled before a step counts as done.
const QUIET: Duration = Duration::from_secs(2);
/// How many AppServices are changed in a second, and for how long.
const CHANGES_PER_SECOND: usize = 200;
const CHANGED_FOR: Duration = Duration::from_secs(20);
/// How long the last of these changes may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the benchmark `study` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Extent {
    /// study: how many shards the controller has, one after the other.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 4])]
    shards: Vec<usize>,
    /// study: the directory that gets scale.md and its plots.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
}

/// Runs the benchmark with so many AppServices.
pub(crate) fn run(extent: &Extent, sizes: &[String], report: &mut Report) -> Result<(), String> {
    let parsed =
        |text: &String| text.parse::<usize>().map_err(|_| format!("{text:?} is no number"));
    let mut sizes: Vec<usize> = sizes.iter().map(parsed).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![3_000, 12_000, 50_000, 200_000];
    }
    sizes.sort_unstable();
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut runs = Vec::new();
    for shards in &extent.shards {
        runtime.block_on(measure(*shards, &sizes, &mut runs, &extent.docs, report))?;
    }
    report.note(&format!("written: {}", extent.docs.join("scale.md").display()));
    Ok(())
}

/// Grows one cluster to all sizes, with a controller of so many shards. The page is written after each
/// step, since a study takes an hour and may be cut short.
async fn measure(
    shards: usize,
    sizes: &[usize],
    runs: &mut Vec<Run>,
    docs: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let most = sizes.last().copied().unwrap_or_default();
    let program = Program::start(&["--nodes", "1"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    user.create(DEFINITIONS, &json!(AppService::crd())).await?;
    let kubeconfig = program.kubeconfig().display().to_string();
    let order = ["study".to_owned(), kubeconfig, shards.to_string(), most.to_string()];
    let process = Process::start(ourselves(&order)?)?;
    let mut controller = Subject { process, begun: Instant::now(), samples: Vec::new() };
    match controller.process.hear().await? {
        Some(Line::Serving { .. }) => {}
        _ => return Err("the controller did not start".to_owned()),
    }
    controller.begun = Instant::now();
    runs.push(Run { shards, steps: Vec::new(), samples: Vec::new() });
    let mut there = 0;
    for size in sizes.iter().copied() {
        let begin = controller.begun.elapsed().as_secs_f64();
        let mut step = grow(&program, &user, &mut controller, there..size).await?;
        there = size;
        change(&user, &mut controller, &mut step).await?;
        step.begin = begin;
        step.end = controller.begun.elapsed().as_secs_f64();
        tell(&step, shards, report);
        if let Some(run) = runs.last_mut() {
            run.steps.push(step);
            run.samples.append(&mut controller.samples);
        }
        chapter::write(docs, runs).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn tell(step: &Step, shards: usize, report: &mut Report) {
    let size = step.size;
    for (metric, value, unit) in step.named() {
        let metric = format!("{size} AppServices, {shards} shards: {metric}");
        report.figure(&Figure { metric: &metric, value, unit, goal: "" });
    }
}

/// The controller, in a process of its own.
struct Subject {
    process: Process,
    begun: Instant,
    /// How full its queues were, and how large it was, since it began.
    samples: Vec<Sample>,
}

impl Subject {
    /// Forgets what was measured before.
    async fn begin(&mut self) -> Result<(), String> {
        self.process.tell("begin").await
    }

    /// How far it is.
    async fn look(&mut self) -> Result<Moment, String> {
        self.process.tell("tell").await?;
        let Some(Line::Figures(figures)) = self.process.hear().await? else {
            return Err("the controller said something else".to_owned());
        };
        let moment = Moment(figures);
        let second = self.begun.elapsed().as_secs_f64();
        self.samples.push(Sample { second, depth: moment.of("depth") });
        Ok(moment)
    }

    /// Waits until so many AppServices are reconciled and nothing happens any more; gives since when.
    async fn until_quiet(&mut self, size: usize) -> Result<(Moment, Instant), String> {
        let mut counted = -1.0;
        let mut quiet_since = Instant::now();
        loop {
            let moment = self.look().await?;
            let count = moment.of("reconciles");
            if count > counted {
                counted = count;
                quiet_since = Instant::now();
            }
            let is_done = moment.of("settled") >= size as f64 && moment.of("depth") < 1.0;
            if is_done && quiet_since.elapsed() >= QUIET {
                return Ok((moment, quiet_since));
            }
            sleep(LOOKED_EVERY).await;
        }
    }

    /// The most keys that waited since a moment.
    fn deepest_since(&self, begun: Instant) -> f64 {
        let since = (begun - self.begun).as_secs_f64();
        let samples = self.samples.iter().filter(|sample| sample.second >= since);
        samples.map(|sample| sample.depth).fold(0.0, f64::max)
    }
}

/// Creates these AppServices and waits until all is done.
async fn grow(
    program: &Program,
    user: &User,
    controller: &mut Subject,
    numbers: std::ops::Range<usize>,
) -> Result<Step, String> {
    let size = numbers.end;
    let new = numbers.len();
    controller.begin().await?;
    let before = controller.look().await?;
    let cluster = program.processor_time()?;
    let begun = Instant::now();
    let creates = numbers.map(async |number| {
        user.create(APP_SERVICES, &json!(app_service(&format!("app-{number}"), 0))).await.map(drop)
    });
    let creates = stream::iter(creates).buffer_unordered(CONCURRENCY).try_collect::<()>();
    let created = async {
        creates.await?;
        Ok::<Duration, String>(begun.elapsed())
    };
    let (created, (moment, quiet_since)) =
        futures::try_join!(created, controller.until_quiet(size))?;
    let seconds = (quiet_since - begun).as_secs_f64();
    Ok(Step {
        size,
        new,
        created: created.as_secs_f64(),
        seconds,
        reconciles: moment.of("reconciles"),
        failures: moment.of("failures"),
        unheard: moment.of("unheard"),
        reconcile_p50: moment.of("reconcile_p50_ms"),
        reconcile_p99: moment.of("reconcile_p99_ms"),
        depth_max: controller.deepest_since(begun),
        controller_mb: moment.of("resident_mb"),
        cluster_mb: program.resident()?,
        controller_cpu: moment.of("computed_seconds") - before.of("computed_seconds"),
        cluster_cpu: (program.processor_time()? - cluster).as_secs_f64(),
        ..Step::default()
    })
}

/// Changes AppServices at a steady rate, and measures until when they are reconciled.
async fn change(user: &User, controller: &mut Subject, step: &mut Step) -> Result<(), String> {
    let changes = CHANGES_PER_SECOND * usize::try_from(CHANGED_FOR.as_secs()).unwrap_or_default();
    let changes = changes.min(step.size);
    let stride = step.size / changes.max(1);
    controller.begin().await?;
    let begun = Instant::now();
    let period = Duration::from_secs(1) / u32::try_from(CHANGES_PER_SECOND).unwrap_or(1);
    let writes = (0..changes).map(async |number| {
        sleep_until(begun + period * u32::try_from(number).unwrap_or_default()).await;
        let written = json!({"metadata": {"annotations": {WRITTEN: nanoseconds().to_string()}}});
        let path = format!("{APP_SERVICES}/app-{}", number * stride);
        user.merge(&path, &written).await.map(drop)
    });
    // As many at once as would be under way if each took a second.
    let writes = stream::iter(writes).buffer_unordered(CHANGES_PER_SECOND).try_collect::<()>();
    let heard = async {
        loop {
            let moment = controller.look().await?;
            let is_late = begun.elapsed() > CHANGED_FOR + PATIENCE;
            if moment.of("changes") >= changes as f64 || is_late {
                return Ok::<Moment, String>(moment);
            }
            sleep(LOOKED_EVERY).await;
        }
    };
    let ((), moment) = futures::try_join!(writes, heard)?;
    step.changes_lost = changes as f64 - moment.of("changes");
    step.change_p50 = moment.of("change_p50_ms");
    step.change_p99 = moment.of("change_p99_ms");
    Ok(())
}
