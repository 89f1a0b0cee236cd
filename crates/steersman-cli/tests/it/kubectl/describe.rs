//! `kubectl describe` of every kind.

use crate::program::Program;

/// One object of each kind, each with a comment that tells what its description must show.
const EVERY_KIND: &str = include_str!("every-kind.yaml");
const SHOWS: &str = "# shows: ";

#[test]
fn every_kind_is_created_listed_described_and_deleted() {
    // Endpoints that nobody else writes.
    let program = Program::up(&["--nodes", "0", "--controllers", "*,-endpoints-controller"]);
    let shown: Vec<&str> = EVERY_KIND.lines().filter_map(|line| line.strip_prefix(SHOWS)).collect();
    let each = |line: &str, verb: &str| {
        let printed = program.says_to(EVERY_KIND, line, &[]);
        assert_eq!(printed.matches(verb).count(), shown.len(), "{line}:\n{printed}");
    };
    each("create -f -", " created");
    let listed = program.says_to(EVERY_KIND, "get -f - --no-headers", &[]);
    let rows = listed.lines().filter(|row| row.contains("/o "));
    assert_eq!(rows.count(), shown.len(), "{listed}");
    let described = program.says_to(EVERY_KIND, "describe -f -", &[]);
    let described: Vec<&str> = described.split("\nName: ").collect();
    assert_eq!(described.len(), shown.len(), "{described:#?}");
    for (parts, description) in shown.iter().zip(described) {
        let squeezed = description.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts.split(" | ") {
            assert!(squeezed.contains(part), "{part:?} is not in:\n{description}");
        }
    }
    each("apply --server-side --force-conflicts -f -", " serverside-applied");
    each("delete -f - --wait=false", " deleted");
}

#[test]
fn a_running_pod_and_a_node_are_described() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("create deployment web --image=nginx:1.29", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    program.says(
        "describe pods -l app=web",
        &["node-0", "Running", "Controlled By:", "ReplicaSet/web-", "Ready"],
    );
    program.says("describe node node-0", &["default", "web-", "Allocated resources:", "kubelet"]);
    program.says("describe rs", &["1 current / 1 desired", "1 Running"]);
    program.says(
        "describe deployment/web",
        &["NewReplicaSet:", "(1/1 replicas created)", "Available"],
    );
    program.says("describe service kubernetes", &["443/TCP", "Endpoints:"]);
    program.refuses("describe pod absent", &["\"absent\" not found"]);
}
