//! `cargo xtask fuzz`: looks for bytes with which a reader does not hold to what it must, guided by
//! what they reach in the code.
//!
//! libFuzzer and the compiler's own coverage do the work. The flags below are what cargo-fuzz
//! passes, without sanitizers, which only nightly compilers have and which find what unsafe code
//! does: there is none here. So the toolchain of this repository is enough.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Outcome};

/// How long each target is looked at, unless said otherwise.
const SECONDS: &str = "60";

/// The most memory that one input may take, in megabytes.
const MEMORY: &str = "-rss_limit_mb=2048";
/// The longest that one input may take, in seconds.
const TIME: &str = "-timeout=10";
/// The longest input.
const LENGTH: &str = "-max_len=8192";

/// What the compiler adds for the fuzzer to see.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Looks at the target that is named, or at all, for so many seconds each.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut seconds = SECONDS;
    let mut wanted = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => seconds = rest.next().ok_or("--seconds of how many?")?,
            name if name.starts_with('-') => return Err(format!("what is `{name}`?")),
            name => wanted.push(name.to_owned()),
        }
    }
    let all = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target `{unknown}`; there are {}", all.join(", ")));
    }
    let program = build()?;
    let wanted = if wanted.is_empty() { all } else { wanted };
    let mut failed = Vec::new();
    for target in wanted {
        if let Err(why) = look(&program, &target, seconds) {
            process::announce(&why);
            failed.push(target);
        }
    }
    match failed.len() {
        0 => Ok(()),
        _ => Err(format!("{} did not hold; see fuzz/artifacts", failed.join(", "))),
    }
}

/// The names of the targets: each has a corpus.
fn targets() -> Result<Vec<String>, String> {
    let corpora = folder().join("corpus");
    let entries = fs::read_dir(&corpora).map_err(|error| format!("no corpora: {error}"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

/// Builds all targets as one program, and says where it is.
fn build() -> Result<PathBuf, String> {
    let host = host()?;
    let target = folder().join("libfuzzer/target");
    // A target that is named keeps the flags from build scripts and macros.
    let build = ["build", "--release", "--manifest-path", "fuzz/libfuzzer/Cargo.toml", "--target"];
    let flags = COVERAGE.join("\u{1f}");
    let mut command = process::cargo();
    command.args(build).arg(&host).env("CARGO_ENCODED_RUSTFLAGS", flags);
    process::run(command.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join(host).join("release/steersman-libfuzzer"))
}

/// Lets the fuzzer look at one target. What it finds worth keeping is kept in `found`, what does
/// not hold in `artifacts`; neither is part of the repository until somebody adds it to a corpus.
fn look(program: &Path, target: &str, seconds: &str) -> Outcome {
    let found = folder().join("found").join(target);
    let artifacts = folder().join("artifacts");
    for directory in [&found, &artifacts] {
        let made = fs::create_dir_all(directory);
        made.map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    }
    let mut command = Command::new(program);
    command.env("STEERSMAN_FUZZ_TARGET", target).arg(&found);
    command.arg(folder().join("corpus").join(target));
    command.arg(format!("-artifact_prefix={}/{target}-", artifacts.display()));
    command.arg(format!("-max_total_time={seconds}"));
    command.args([MEMORY, TIME, LENGTH, "-print_final_stats=1", "-verbosity=0"]);
    process::run(&mut command).map_err(|why| format!("{target}: {why}"))
}

/// The platform that this is.
fn host() -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output();
    let output = output.map_err(|error| format!("cannot ask rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc tells no platform".to_owned())
}

fn folder() -> PathBuf {
    process::root().join("fuzz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_does_not_exist_is_refused_before_anything_is_built() {
        let refused = run(&["nonsense".to_owned()]).unwrap_err();
        assert!(refused.contains("nonsense") && refused.contains("selector"), "{refused}");
    }
}
