//! Who may depend on whom: the two towers meet only at the API.
//!
//! Dev-dependencies are exempt: a test of the framework may start a whole cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{assert_tidy, metadata};

/// Packages and what they must not reach, directly or through another package of ours.
const MUST_NOT_KNOW: [(&str, &[&str], &str); 10] = [
    ("steersman", SERVER, "the framework works on any cluster; it sees a kube::Client"),
    ("steersman-macros", EVERYTHING, "a macro crate is built before everything else"),
    ("steersman-store", EVERYTHING, "a store knows bytes, keys and revisions"),
    ("steersman-values", EVERYTHING, "names, quantities and selectors stand below everything"),
    ("steersman-rules", TOWERS, "rules are functions of documents"),
    ("steersman-apiserver", CLIENTS, "the server does not know who its clients are"),
    ("steersman-controllers", SERVER, "controllers see only a kube::Client"),
    ("steersman-scheduler", SERVER, "the scheduler sees only a kube::Client"),
    ("steersman-node", SERVER, "a node sees only a kube::Client"),
    ("steersman-examples", SERVER, "an example uses what users have"),
];

const SERVER: &[&str] = &["steersman-store", "steersman-apiserver"];
const CLIENTS: &[&str] =
    &["steersman", "steersman-controllers", "steersman-scheduler", "steersman-node"];
const TOWERS: &[&str] = &[
    "steersman-store",
    "steersman-apiserver",
    "steersman",
    "steersman-controllers",
    "steersman-scheduler",
    "steersman-node",
];
/// Stands for every package of the workspace.
const EVERYTHING: &[&str] = &[];

/// The one package that may name both towers.
const MEETING_POINT: &str = "steersman-cluster";

/// Each package of the workspace with the packages of the workspace it depends on.
type Edges = BTreeMap<String, BTreeSet<String>>;

fn edges(packages: &[Value]) -> Edges {
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"] != "dev")
            .map(name)
            .filter(|dependency| ours.contains(dependency))
            .collect()
    };
    packages.iter().map(|package| (name(package), dependencies(package))).collect()
}

/// Everything a package reaches.
fn reached(edges: &Edges, package: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![package];
    while let Some(package) = ahead.pop() {
        for dependency in edges.get(package).into_iter().flatten() {
            if reached.insert(dependency.clone()) {
                ahead.push(dependency);
            }
        }
    }
    reached
}

fn forbidden(edges: &Edges) -> Vec<String> {
    let mut problems = Vec::new();
    for (package, unknown, reason) in MUST_NOT_KNOW {
        for dependency in reached(edges, package) {
            if unknown.is_empty() || unknown.contains(&dependency.as_str()) {
                problems.push(format!("{package} must not depend on {dependency}: {reason}"));
            }
        }
    }
    problems
}

fn second_meeting_points(edges: &Edges) -> Vec<String> {
    let names = |direct: &BTreeSet<String>, tower: &[&str]| {
        tower.iter().any(|package| direct.contains(*package))
    };
    edges
        .iter()
        .filter(|(package, direct)| {
            *package != MEETING_POINT && names(direct, SERVER) && names(direct, CLIENTS)
        })
        .map(|(package, _)| format!("{package} names both towers; only {MEETING_POINT} may"))
        .collect()
}

/// Dev-dependencies that lead back to the package that has them. With a version, each of the two
/// could be published only after the other; by path alone, they are no part of what is published.
fn unpublishable(packages: &[Value]) -> Vec<String> {
    let edges = edges(packages);
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = dependency["name"].as_str().unwrap();
            let back = dependency["kind"] == "dev" && reached(&edges, to).contains(name);
            if back && dependency["req"] != "*" {
                problems.push(format!(
                    "{name}: {to} depends on it; write {to} = {{ path = \"../{to}\" }}"
                ));
            }
        }
    }
    problems
}

#[test]
fn every_package_can_be_published_after_those_that_it_needs() {
    assert_tidy(&unpublishable(&metadata::ours()));
}

#[test]
fn every_dependency_edge_is_allowed() {
    let edges = edges(&metadata::ours());
    assert_tidy(&forbidden(&edges));
    assert_tidy(&second_meeting_points(&edges));
}

#[test]
fn the_rules_name_packages_that_exist() {
    let edges = edges(&metadata::ours());
    let named = MUST_NOT_KNOW.iter().map(|(package, ..)| package);
    for package in named.chain(SERVER).chain(CLIENTS).chain([&MEETING_POINT]) {
        assert!(edges.contains_key(*package), "{package} is no package of this workspace");
    }
}

#[test]
fn forbidden_edges_are_found_at_any_distance() {
    let edge = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let direct = Edges::from([edge("steersman-node", "steersman-store")]);
    assert_eq!(forbidden(&direct).len(), 1);
    let distant = Edges::from([
        edge("steersman-node", "steersman-cluster"),
        edge("steersman-cluster", "steersman-apiserver"),
    ]);
    assert_eq!(forbidden(&distant).len(), 1);
}

#[test]
fn a_dev_dependency_that_leads_back_has_no_version() {
    let package = |name: &str, dependency: &str, kind: &str, req: &str| {
        let dependency = json!({ "name": dependency, "kind": kind, "req": req });
        json!({ "name": name, "dependencies": [dependency] })
    };
    let normal = package("testkit", "framework", "normal", "^0.1.0");
    let versioned = package("framework", "testkit", "dev", "^0.1.0");
    let by_path = package("framework", "testkit", "dev", "*");
    assert_eq!(unpublishable(&[normal.clone(), versioned]).len(), 1);
    assert_eq!(unpublishable(&[normal, by_path]), [""; 0]);
}
