//! The text of the study, made from its figures: `docs/scale.md`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use steersman::clock;

use super::figures::{Run, Step};
use super::plots;

/// How much of all processors must be busy for them to be what limits.
const BUSY: f64 = 0.85;

/// Writes the text and its pictures into a directory.
pub(super) fn write(docs: &Path, runs: &[Run]) -> io::Result<()> {
    let pictures = docs.join("scale");
    fs::create_dir_all(&pictures)?;
    let drawn = plots::all(runs);
    for (file, picture) in &drawn {
        fs::write(pictures.join(file), picture)?;
    }
    let files: Vec<&str> = drawn.iter().map(|(file, _)| *file).collect();
    fs::write(docs.join("scale.md"), text(runs, &files, &Machine::here()))
}

/// What the study ran on.
struct Machine {
    cores: usize,
    /// In gigabytes; nothing if it is not known.
    memory: Option<f64>,
    commit: String,
    day: String,
}

impl Machine {
    fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kilobytes = total.and_then(|it| it.split_whitespace().next()?.parse::<f64>().ok());
        let git = Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).output();
        let commit = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self {
            cores,
            memory: kilobytes.map(|kilobytes| kilobytes / 1e6),
            commit: commit.unwrap_or_default(),
            day: clock::now().to_string().chars().take(10).collect(),
        }
    }
}

fn text(runs: &[Run], pictures: &[&str], machine: &Machine) -> String {
    let mut text = HEAD.to_owned();
    let Machine { cores, memory, commit, day } = machine;
    let memory_text = memory.map_or_else(String::new, |it| format!(" and {it:.0} GB"));
    let _ = writeln!(text, "\nTaken on {day} at {commit}, on {cores} processors{memory_text}.");
    if cfg!(debug_assertions) {
        text.push_str("\n**Without optimisation: these figures are not to be quoted.**\n");
    }
    for run in runs {
        let _ = writeln!(text, "\n## With {}\n", plots::shards(run.shards));
        text.push_str(&table(run));
    }
    text.push_str("\n## In pictures\n\n");
    for picture in pictures {
        let name = picture.trim_end_matches(".svg");
        let _ = writeln!(text, "![{name}](scale/{picture})\n");
    }
    text.push_str("## What limits it\n");
    for run in runs {
        text.push_str(&limits(run, machine));
    }
    if let [one, .., several] = runs {
        text.push_str(&compared(one, several));
    }
    text
}

const HEAD: &str = "\
# A study of scale

Written by `cargo xtask bench study`, which takes the figures and writes this page; do not edit it.

KubeVela has published how its controller fares with 3,000 to 400,000 applications. Here the
[AppService controller](../examples/src/app_service.rs) of the examples is put through the same: one
process with four workers for each shard, on a cluster of our own (`steersman up`, on disk, all
controllers) in a process beside it, both on the same machine as the client that makes the load. An
AppService becomes a Deployment and that a ReplicaSet; there are no Pods, since what is studied is the
controller and not the nodes.

Each step creates AppServices, 32 requests at a time, until there are as many as the table says, and
ends when all are reconciled and nothing has happened for two seconds. Then 200 AppServices a second are
changed for 20 seconds, and each change waits for the end of the reconcile that sees it. *Reconcile* is
the time within the reconciler, with its requests; *change* the time from the client's request to the
end of the reconcile. The queue is looked at four times a second.
";

fn table(run: &Run) -> String {
    let mut text = "\
| AppServices | until done, s | a second | reconciles (failed) | reconcile p50; p99, ms | most in the \
                    queue | change p50; p99, ms | controller, MB | cluster, MB |
|---|---|---|---|---|---|---|---|---|
"
    .to_owned();
    for step in &run.steps {
        let Step { size, seconds, reconciles, failures, depth_max, .. } = step;
        let _ = writeln!(
            text,
            "| {} | {seconds:.1} | {:.0} | {reconciles:.0} ({failures:.0}) | {:.1}; {:.1} | \
             {depth_max:.0} | {:.1}; {:.1} | {:.0} | {:.0} |",
            grouped(*size),
            step.rate(),
            step.reconcile_p50,
            step.reconcile_p99,
            step.change_p50,
            step.change_p99,
            step.controller_mb,
            step.cluster_mb
        );
    }
    let lost: f64 = run.steps.iter().map(|step| step.changes_lost).sum();
    let unheard: f64 = run.steps.iter().map(|step| step.unheard).sum();
    if lost > 0.0 {
        let _ = writeln!(
            text,
            "\nOf {lost:.0} of the changes no reconcile was seen that began after they were heard of."
        );
    }
    if unheard > 0.0 {
        let _ = writeln!(
            text,
            "\nThe times of {unheard:.0} reconciles are missing: records came faster than they were counted."
        );
    }
    text
}

/// What kept the last step from being faster, and how far it goes from there.
fn limits(run: &Run, machine: &Machine) -> String {
    let Some(last) = run.steps.last() else { return String::new() };
    let whole = last.seconds * machine.cores as f64;
    let (cluster, controller) = (last.cluster_cpu / whole, last.controller_cpu / whole);
    let others = (1.0 - cluster - controller).max(0.0);
    let limit = match (cluster + controller, cluster > controller) {
        (busy, true) if busy > BUSY => {
            "processors, most of all for the API server and its controllers"
        }
        (busy, false) if busy > BUSY => "processors, most of all for the controller itself",
        _ => "waiting: for answers, for the disk, or for the client that creates the AppServices",
    };
    let mut text = format!(
        "\nWith {}, while the last {} AppServices came, the cluster had {:.0} % of all processor time, the \
         controller {:.0} %, and {:.0} % was left for the client or idle. The limit is {limit}. For each \
         AppService the cluster computed {:.2} ms and the controller {:.2} ms.",
        plots::shards(run.shards),
        grouped(last.new),
        cluster * 100.0,
        controller * 100.0,
        others * 100.0,
        last.cluster_cpu * 1000.0 / last.new as f64,
        last.controller_cpu * 1000.0 / last.new as f64
    );
    if let [.., before, _] = &run.steps[..] {
        text.push_str(&next_limit(before, last, machine));
    }
    text.push('\n');
    text
}

/// What comes after that: memory, as it has grown.
fn next_limit(before: &Step, last: &Step, machine: &Machine) -> String {
    let thousands = last.new as f64 / 1000.0;
    let cluster = (last.cluster_mb - before.cluster_mb) / thousands;
    let controller = (last.controller_mb - before.controller_mb) / thousands;
    let mut text = format!(
        " Were that gone, memory would be next: a thousand more AppServices took {cluster:.1} MB in the \
         cluster and {controller:.1} MB in the controller"
    );
    let left = machine.memory.map(|memory| memory * 1000.0 - last.cluster_mb - last.controller_mb);
    match left.filter(|left| *left > 0.0 && cluster + controller > 0.0) {
        Some(left) => {
            let most = last.size as f64 + left / (cluster + controller) * 1000.0;
            let _ = write!(text, ", so that this machine holds about {most:.0} of them.");
        }
        None => text.push('.'),
    }
    text
}

/// What several shards in one process bring and cost.
fn compared(one: &Run, several: &Run) -> String {
    let Some(last) = several.steps.last() else { return String::new() };
    let Some(first) = one.steps.iter().find(|step| step.size == last.size) else {
        return String::new();
    };
    format!(
        "\nBeside {}, {} in one process reconciled the step to {} AppServices at {:.2} times the rate and \
         took {:.2} times the memory for the controller: each shard keeps the caches that a replica \
         elsewhere would have.\n",
        plots::shards(one.shards),
        plots::shards(several.shards),
        grouped(last.size),
        last.rate() / first.rate(),
        last.controller_mb / first.controller_mb
    )
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(shards: usize, faster: f64) -> Run {
        let step = |size: usize, new: usize| Step {
            size,
            new,
            seconds: new as f64 / (100.0 * faster),
            controller_mb: size as f64 / 100.0 * shards as f64,
            cluster_mb: size as f64 / 20.0,
            controller_cpu: new as f64 / 400.0,
            cluster_cpu: new as f64 / 66.0,
            ..Step::default()
        };
        Run { shards, steps: vec![step(3000, 3000), step(12_000, 9000)], samples: Vec::new() }
    }

    #[test]
    fn the_text_says_what_the_figures_say() {
        let machine =
            Machine { cores: 2, memory: Some(8.0), commit: "c".into(), day: "2030-01-01".into() };
        let text = text(&[run(1, 1.0), run(4, 1.0)], &["rate.svg"], &machine);
        for part in [
            "Taken on 2030-01-01 at c, on 2 processors and 8 GB.",
            "| 12,000 | 90.0 | 100 |",
            "![rate](scale/rate.svg)",
            "With one shard, while the last 9,000 AppServices came, the cluster had 76 % of all \
             processor time, the controller 12 %",
            "The limit is processors, most of all for the API server and its controllers.",
            "a thousand more AppServices took 50.0 MB in the cluster and 10.0 MB in the controller, so \
             that this machine holds about 133333 of them.",
            "Beside one shard, 4 shards in one process reconciled the step to 12,000 AppServices at 1.00 \
             times the rate and took 4.00 times the memory",
        ] {
            assert!(text.contains(part), "{part}\n\n{text}");
        }
        let slow = super::text(&[run(1, 0.1)], &[], &machine);
        assert!(slow.contains("The limit is waiting"), "{slow}");
    }
}
