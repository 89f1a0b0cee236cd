//! `cargo xtask bench store`: our stores beside etcd, in one run on one disk.
//!
//! A program of its own, so that it has the allocator of `steersman` and nothing that stores do
//! not need. Ours are called in this process, as an API server calls them: that no network lies
//! between is a property of theirs. etcd is a process of its own and asked over the loopback.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it says what it is at")]

mod etcd;
mod extent;
mod fan_out;
mod large;
mod load;
mod measured;
mod objects;
mod place;
mod pods;
mod process_memory;
mod puts;
mod reads;
mod systems;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use extent::{Bench, Extent};
use measured::Measured;
use place::Place;
use steersman_bench_report::Report;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures our stores beside etcd.
#[derive(Parser)]
struct Arguments {
    /// Only this part: puts, watch, large, pods.
    #[arg(long, value_name = "PART")]
    part: Option<String>,
    /// Only the system of this name, where several are measured one by one.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// A tenth of everything, in less than a minute.
    #[arg(long)]
    quick: bool,
    /// How often the puts are measured; medians count.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Where the stores keep their files; beside this program unless given.
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
    /// One JSON object a line instead of tables.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.as_slice() {
        [fill, directory, pods] if fill == "fill" => hold(directory, pods),
        _ => run(&Arguments::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: store: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let place = Place::new(arguments.directory.as_deref())?;
    let system = arguments.system.clone();
    let extent = Extent::new(arguments.quick, arguments.rounds);
    let bench = Bench { extent, place, system };
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut report = Report::new("store", arguments.json);
    report.note(&format!("{}; {}", bench.place.description(), etcd::version()));
    let Extent { keys, writes_per_key, pods, .. } = bench.extent;
    report.note(&format!(
        "{keys} keys of 1 KB, the fill is {writes_per_key} writes to each, {pods} Pods of 3 KB"
    ));
    report.note("ours answer in this process, as in an API server; etcd answers over the loopback");
    let mut measured = Measured::default();
    runtime.block_on(measure(&bench, arguments.part.as_deref(), &mut measured))?;
    measured.print(&mut report, arguments.json);
    Ok(())
}

/// What a process does that another one has started for its memory.
fn hold(directory: &str, pods: &str) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let pods = pods.parse().map_err(|_| "so many Pods?")?;
    println!("{}", runtime.block_on(pods::hold(directory.as_ref(), pods))?);
    Ok(())
}

async fn measure(bench: &Bench, only: Option<&str>, measured: &mut Measured) -> Result<(), String> {
    let wanted = |part: &str| {
        let wanted = only.is_none_or(|only| only == part);
        if wanted {
            eprintln!("store: {part}");
        }
        wanted
    };
    if wanted("puts") {
        puts::measure(bench, measured).await?;
    }
    if wanted("watch") {
        fan_out::measure(bench, measured).await?;
    }
    if wanted("large") {
        large::measure(bench, measured).await?;
    }
    if wanted("pods") {
        pods::measure(bench, measured).await?;
    }
    Ok(())
}
