//! Misuse does not compile, and the compiler says what to do instead.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The messages are pinned in the `.stderr` files beside the programs. After a change that is
/// meant, or of the compiler: run with `MISUSE=overwrite` and read what is different.
#[test]
fn misuse_is_explained_by_the_compiler() {
    let programs = programs();
    assert!(!programs.is_empty(), "no programs");
    let mut said = what_the_compiler_says(&programs);
    let is_overwriting = env::var("MISUSE").is_ok_and(|word| word == "overwrite");
    for (name, path) in programs {
        let pinned = path.with_extension("stderr");
        let said = said.remove(&name).unwrap_or_default();
        if is_overwriting {
            fs::write(&pinned, &said).unwrap();
        }
        let expected = fs::read_to_string(&pinned).unwrap_or_default();
        assert!(!said.is_empty(), "{name} compiles");
        assert_eq!(said, expected, "what is said of {name}");
    }
}

/// The programs by name.
fn programs() -> BTreeMap<String, PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let sources = files.filter(|path| path.extension().is_some_and(|kind| kind == "rs"));
    let named = |path: PathBuf| Some((path.file_stem()?.display().to_string(), path));
    sources.filter_map(named).collect()
}

/// Builds all of them with the cargo that runs this test and gathers the errors by program.
fn what_the_compiler_says(programs: &BTreeMap<String, PathBuf>) -> BTreeMap<String, String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The whole workspace, so that features and with them all dependencies are those that are
    // built already; and without what cargo tells this test about its package, which would make
    // the build scripts of some dependencies run again.
    cargo.args(["build", "--workspace", "--locked", "--keep-going", "--message-format=json"]);
    cargo.args(["--features", "steersman-misuse/programs"]);
    programs.keys().for_each(|name| {
        cargo.args(["--example", name]);
    });
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    let output = cargo.output().expect("cargo runs");
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let told: Value = serde_json::from_str(line).unwrap_or_default();
        let message = &told["message"];
        let has_place = message["spans"].as_array().is_some_and(|spans| !spans.is_empty());
        if message["level"] == "error" && has_place {
            let name = told["target"]["name"].as_str().unwrap_or_default().to_owned();
            let text = message["rendered"].as_str().unwrap_or_default();
            said.entry(name).or_default().push_str(&without_lines(text));
        }
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!said.is_empty(), "cargo said nothing of the programs:\n{stderr}");
    said
}

/// The text without the numbers of lines, which change with every edit of the framework, and
/// without the width that they take; nor does it matter into which file a long type was written.
fn without_lines(rendered: &str) -> String {
    let mut text = String::new();
    let is_kept = |line: &&str| !line.contains("the full name for the type has been written to");
    for line in rendered.trim_end().lines().filter(is_kept) {
        let rest = line.trim_start_matches(|letter: char| letter == ' ' || letter.is_ascii_digit());
        let kept = match rest.split_once(':') {
            Some((place, _)) if place.starts_with("-->") || place.starts_with(":::") => place,
            _ if rest.starts_with(['|', '=', '.']) => rest,
            _ => line.trim_start(),
        };
        text.push_str(kept.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}
