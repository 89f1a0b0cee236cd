//! The manifests: every dependency has a reason, and features are chosen in one place.

use crate::assert_tidy;
use crate::source;

/// Dependencies whose features a package may choose, with the reason.
const FEATURES_CHOSEN: [(&str, &str); 2] = [
    ("k8s-openapi", "binaries and tests choose the Kubernetes version, libraries must not"),
    ("proc-macro2", "only the tidy test asks for lines, macros have them from the compiler"),
];

/// The lines of one section of a manifest.
fn section<'a>(manifest: &'a str, header: &str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().skip_while(move |line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('['))
}

#[test]
fn every_group_of_dependencies_says_why() {
    let manifest = source::read("Cargo.toml");
    let mut problems = Vec::new();
    let mut explained = false;
    for line in section(&manifest, "[workspace.dependencies]") {
        if line.is_empty() {
            explained = false;
        } else if line.starts_with('#') {
            explained = true;
        } else if !explained {
            problems.push(format!("Cargo.toml: a comment above says why: {line}"));
        }
    }
    assert_tidy(&problems);
}

#[test]
fn dependencies_and_their_features_are_chosen_in_the_workspace() {
    let mut problems = Vec::new();
    for path in source::files("toml").iter().filter(|path| path.ends_with("/Cargo.toml")) {
        let manifest = source::read(path);
        // A workspace of its own, such as the fuzzer's, cannot inherit from this one.
        if manifest.lines().any(|line| line == "[workspace]") {
            continue;
        }
        for header in ["[dependencies]", "[dev-dependencies]", "[build-dependencies]"] {
            for line in section(&manifest, header).filter(|line| line.contains('=')) {
                let chooses = FEATURES_CHOSEN.iter().any(|(name, _)| line.starts_with(name));
                // Dev-dependencies that lead back, see `edges`.
                let by_path = header == "[dev-dependencies]" && line.contains("{ path = \"../");
                let inherited = line.contains("workspace = true") || by_path;
                if !inherited || (line.contains("features = ") && !chooses) {
                    let wanted = "move version and features to [workspace.dependencies]";
                    problems.push(format!("{path}: {wanted}: {line}"));
                }
            }
        }
    }
    assert_tidy(&problems);
}
