//! How files are named and how long they get.

use std::path::Path;

use crate::assert_tidy;
use crate::source;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "types"];

/// Lines from which on a file is two files.
const LINES_MAX: usize = 600;

/// Files that may be longer: path, reason.
const LONG_FILES: [(&str, &str); 0] = [];

/// The API server's source: what belongs to a kind stands among the rules.
const SERVER: &str = "crates/steersman-apiserver/src/";

/// Kinds one would be tempted to write a handler for. Names that also mean something else
/// on a server (event, status, binding, node, eviction) are left out.
const KINDS: &str = "
    pod deployment replicaset statefulset daemonset job cronjob configmap secret service
    serviceaccount namespace endpoints endpointslice ingress lease role rolebinding clusterrole
    persistentvolume persistentvolumeclaim storageclass poddisruptionbudget
    horizontalpodautoscaler";

#[test]
fn modules_are_named_after_what_they_own() {
    let mut problems = Vec::new();
    for path in source::rust().iter().map(|source| &source.path) {
        for part in path.trim_end_matches(".rs").split('/') {
            if EMPTY_NAMES.contains(&part) {
                problems.push(format!("{path}: `{part}` names nothing; use the noun it is about"));
            }
        }
    }
    assert_tidy(&problems);
}

#[test]
fn files_fit_in_the_head() {
    let mut problems = Vec::new();
    for source in source::rust() {
        let lines = source.text.lines().count();
        let allowed = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        if lines > LINES_MAX && !allowed {
            let path = &source.path;
            problems.push(format!("{path}: {lines} lines, more than {LINES_MAX}; split it"));
        }
    }
    for (path, reason) in LONG_FILES {
        if source::read(path).lines().count() <= LINES_MAX {
            problems.push(format!("{path} is no longer long, take it off the list: {reason}"));
        }
    }
    assert_tidy(&problems);
}

#[test]
fn one_pipeline_serves_every_kind() {
    let mut problems = Vec::new();
    for source in source::rust() {
        let Some(module) = source.path.strip_prefix(SERVER) else {
            continue;
        };
        // Kubernetes calls some plug-ins like the kind that they look after.
        if module.starts_with("admission_plugins/") {
            continue;
        }
        let stem = Path::new(module).file_stem().unwrap().to_string_lossy().replace('_', "");
        let kind = KINDS
            .split_whitespace()
            .any(|kind| stem == kind || stem.strip_suffix('s') == Some(kind));
        if kind {
            problems.push(format!(
                "{}: no handler per kind; what is said of one stands in steersman-rules/src/kinds",
                source.path
            ));
        }
    }
    assert_tidy(&problems);
}
