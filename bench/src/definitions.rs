//! Definitions, on the program over HTTPS: how soon one is served, how soon whole sets are, and what
//! they hold of memory once nothing happens any more.

use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::program::Program;
use crate::report::{Figure, Report, median};
use crate::rollout::user::User;

#[path = "../../crates/steersman-apiserver/tests/it/definition_sets/sets.rs"]
mod sets;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ROUNDS: usize = 5;
/// How many small definitions are timed one by one.
const SMALL: usize = 100;
/// How many are there when memory is looked at.
const AT_REST: usize = 1000;
/// How many more of a set are created to see what each further one holds: of a few, memory is mostly what
/// allocators keep of the largest request.
const FURTHER: usize = 60;
/// How long a program has that has just begun.
const SETTLE: Duration = Duration::from_secs(3);
/// How long nothing happens before memory is looked at.
const REST: Duration = Duration::from_secs(45);

/// A set of definitions: in whose style it is, and the set.
type Set = (&'static str, Vec<Value>);

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(one_by_one(report))?;
    let all: [Set; 4] = [
        ("cert-manager", sets::certificates()),
        ("prometheus-operator", sets::monitoring()),
        ("Gateway API", sets::gateways()),
        ("Crossplane", sets::cloud(100)),
    ];
    for set in all {
        runtime.block_on(whole(&set, report))?;
    }
    runtime.block_on(at_rest(report))
}

/// The program once it has settled, and somebody who is connected to it.
async fn start() -> Result<(Program, User), String> {
    let program = Program::start(&["--memory", "--nodes", "1"])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    user.get("/api/v1/namespaces/default").await?;
    tokio::time::sleep(SETTLE).await;
    Ok((program, user))
}

/// The same, once it has served a definition and an object: what it loads and starts for the first
/// belongs to no definition.
async fn start_used() -> Result<(Program, User), String> {
    let (program, user) = start().await?;
    for definition in sets::small(1) {
        install(&user, &definition).await?;
        user.create(&sets::collection(&definition), &sets::instance(&definition)).await?;
    }
    tokio::time::sleep(SETTLE).await;
    Ok((program, user))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Creates a definition; gives back once objects of its kind can be listed.
async fn install(user: &User, definition: &Value) -> Result<(), String> {
    user.create(DEFINITIONS, definition).await?;
    user.get(&sets::collection(definition)).await.map(drop)
}

async fn one_by_one(report: &mut Report) -> Result<(), String> {
    let (_program, user) = start().await?;
    let mut times = Vec::new();
    for definition in sets::small(SMALL) {
        let begun = Instant::now();
        install(&user, &definition).await?;
        times.push(milliseconds(begun));
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let metric = "a definition, from creation to a list of its kind";
    report.figure(&Figure { metric, value: median(times), unit: "ms", goal: "goal: under 5" });
    let metric = "  the slowest of a hundred";
    report.figure(&Figure { metric, value: worst, unit: "ms", goal: "" });
    Ok(())
}

/// Installs a set on a new program, some times, and creates an object of each kind.
async fn whole((style, definitions): &Set, report: &mut Report) -> Result<(), String> {
    let mut served = Vec::new();
    let mut used = Vec::new();
    let (mut each, mut further) = (0.0, None);
    for round in 0..ROUNDS {
        let (program, user) = start_used().await?;
        let before = program.resident()?;
        let begun = Instant::now();
        for definition in definitions {
            install(&user, definition).await?;
        }
        served.push(milliseconds(begun));
        let begun = Instant::now();
        use_all(&user, definitions).await?;
        used.push(milliseconds(begun));
        if round == 0 {
            tokio::time::sleep(REST).await;
            each = (program.resident()? - before) * 1024.0 / definitions.len() as f64;
            further = each_further(&program, &user, definitions).await?;
        }
    }
    let count = definitions.len();
    let kilobytes: usize =
        definitions.iter().map(|one| one.to_string().len()).sum::<usize>() / 1024;
    let metric = format!("{style}: {count} definitions, {kilobytes} KB, served");
    let goal = "goal: under 100";
    report.figure(&Figure { metric: &metric, value: median(served), unit: "ms", goal });
    let metric = "  the first object of each";
    report.figure(&Figure { metric, value: median(used), unit: "ms", goal: "" });
    let metric = "  resident at rest, for each definition";
    let goal = "goal: under 200";
    report.figure(&Figure { metric, value: each, unit: "KB", goal });
    if let Some(value) = further {
        let metric = "  for each further one of its kind";
        report.figure(&Figure { metric, value, unit: "KB", goal });
    }
    Ok(())
}

/// Creates an object of each kind.
async fn use_all(user: &User, definitions: &[Value]) -> Result<(), String> {
    for definition in definitions {
        user.create(&sets::collection(definition), &sets::instance(definition)).await?;
    }
    Ok(())
}

/// The same definition in another group.
fn of_another_group(definition: &Value, number: usize) -> Value {
    let mut again = definition.clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = format!("g{number}.{}", text(&again["spec"]["group"]));
    let plural = text(&again["spec"]["names"]["plural"]);
    again["metadata"]["name"] = format!("{plural}.{group}").into();
    again["spec"]["group"] = group.into();
    again
}

/// How many kilobytes each further definition of a small set holds at rest.
async fn each_further(
    program: &Program,
    user: &User,
    definitions: &[Value],
) -> Result<Option<f64>, String> {
    let sets = FURTHER / definitions.len();
    let before = program.resident()?;
    for number in 0..sets {
        let again: Vec<Value> =
            definitions.iter().map(|one| of_another_group(one, number)).collect();
        for definition in &again {
            install(user, definition).await?;
        }
        use_all(user, &again).await?;
    }
    if sets == 0 {
        return Ok(None);
    }
    tokio::time::sleep(REST).await;
    Ok(Some((program.resident()? - before) * 1024.0 / (sets * definitions.len()) as f64))
}

async fn at_rest(report: &mut Report) -> Result<(), String> {
    let (program, user) = start_used().await?;
    let before = program.resident()?;
    let begun = Instant::now();
    for definition in sets::cloud(AT_REST) {
        user.create(DEFINITIONS, &definition).await?;
    }
    let took = milliseconds(begun);
    tokio::time::sleep(REST).await;
    let each = (program.resident()? - before) * 1024.0 / AT_REST as f64;
    let metric = "1,000 definitions created";
    report.figure(&Figure { metric, value: took, unit: "ms", goal: "" });
    let metric = "  resident at rest, for each";
    report.figure(&Figure { metric, value: each, unit: "KB", goal: "goal: under 200" });
    Ok(())
}
