//! StatefulSets, DaemonSets, ReplicationControllers and disruption budgets, as people handle them.

use crate::program::Program;

fn workload(kind: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: web}}, spec: {{{spec}selector: \
         {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, spec: \
         {{containers: [{{name: main, image: 'nginx:1'}}]}}}}}}}}"
    )
}

/// Rolls a set out, lists its history, and takes it back.
fn rolls(program: &Program, set: &str) {
    let status = format!("rollout status {set} --timeout=60s");
    program.says(&status, &[]);
    program.says(&format!("rollout history {set}"), &["REVISION", "1", "first"]);
    program.says(&format!("set image {set} main=nginx:2"), &["image updated"]);
    program.says(&format!("annotate {set} kubernetes.io/change-cause=second --overwrite"), &[]);
    program.says(&status, &[]);
    let image = "get pods -o jsonpath='{.items[*].spec.containers[0].image}'";
    program.says(image, &["nginx:2"]);
    program.says(&format!("rollout history {set}"), &["1", "2"]);
    program.says(&format!("rollout history {set} --revision=1"), &["nginx:1"]);
    program.says(&format!("rollout undo {set}"), &["rolled back"]);
    program.says(&status, &[]);
    program.says(image, &["nginx:1"]);
    let history = program.says(&format!("rollout history {set}"), &["2", "3"]);
    assert!(!history.lines().any(|line| line.starts_with("1 ")), "{history}");
    program.says(&format!("rollout restart {set}"), &["restarted"]);
    program.says(&status, &[]);
}

#[test]
fn a_stateful_set_is_rolled_out_taken_back_scaled_and_described() {
    let program = Program::up(&[]);
    let set = workload("StatefulSet", "serviceName: web, replicas: 2, ");
    let annotated = set.replace(
        "{name: web}, spec",
        "{name: web, annotations: {kubernetes.io/change-cause: first}}, spec",
    );
    program.says_to(&annotated, "create -f -", &["statefulset.apps/web created"]);
    rolls(&program, "statefulset/web");
    program.says("scale statefulset/web --replicas=3", &["scaled"]);
    program.says("rollout status sts/web --timeout=60s", &["complete"]);
    program.says("get sts web", &["READY", "3/3"]);
    program.says("get pods -o name", &["pod/web-0", "pod/web-1", "pod/web-2"]);
    program.says(
        "describe sts web",
        &[
            "3 desired | 3 total",
            "SuccessfulCreate",
            "Create Pod web-0 in StatefulSet web successful",
        ],
    );
    program.says("get controllerrevisions", &["statefulset.apps/web", "REVISION"]);
}

#[test]
fn a_daemon_set_is_rolled_out_taken_back_and_described() {
    let program = Program::up(&["--nodes", "2"]);
    program.says("wait node --all --for=condition=Ready --timeout=60s", &[]);
    let annotated = workload("DaemonSet", "").replace(
        "{name: web}, spec",
        "{name: web, annotations: {kubernetes.io/change-cause: first}}, spec",
    );
    program.says_to(&annotated, "create -f -", &["daemonset.apps/web created"]);
    rolls(&program, "daemonset/web");
    program.says("get ds web", &["DESIRED", "2"]);
    program.says(
        "describe ds web",
        &["Desired Number of Nodes Scheduled: 2", "SuccessfulCreate", "Created pod: web-"],
    );
}

#[test]
fn a_replication_controller_is_scaled_and_described() {
    let program = Program::up(&[]);
    let controller = "{apiVersion: v1, kind: ReplicationController, metadata: {name: web}, spec: \
                      {replicas: 1, selector: {app: web}, template: {metadata: {labels: {app: web}}, \
                      spec: {containers: [{name: main, image: nginx}]}}}}";
    program.says_to(controller, "create -f -", &["replicationcontroller/web created"]);
    program.says("scale rc web --replicas=3", &["scaled"]);
    let ready = "wait rc/web --for=jsonpath='{.status.readyReplicas}'=3 --timeout=60s";
    program.says(ready, &["condition met"]);
    program.says("describe rc web", &["3 current / 3 desired", "replication-controller"]);
}

#[test]
fn a_drain_takes_pods_as_their_budget_allows_and_leaves_daemons() {
    let program = Program::up(&["--nodes", "2"]);
    program.says("wait node --all --for=condition=Ready --timeout=60s", &[]);
    program.says("create deployment api --image=nginx --replicas=4", &[]);
    program.says("rollout status deployment/api --timeout=60s", &[]);
    program.says_to(&workload("DaemonSet", ""), "create -f -", &[]);
    program.says("rollout status ds/web --timeout=60s", &[]);
    program.says("create pdb api --selector=app=api --max-unavailable=1", &["created"]);
    let allowed = "wait pdb/api --for=jsonpath='{.status.disruptionsAllowed}'=1 --timeout=60s";
    program.says(allowed, &["condition met"]);
    program.says("get pdb api", &["ALLOWED DISRUPTIONS", "N/A"]);
    program.refuses("drain node-0 --timeout=5s", &["cannot delete DaemonSet-managed Pods"]);
    program.says("drain node-0 --ignore-daemonsets --timeout=120s", &["evicting pod", "drained"]);
    program.says("rollout status deployment/api --timeout=60s", &[]);
    let left =
        program.says("get pods --field-selector=spec.nodeName=node-0 -o name", &["pod/web-"]);
    assert_eq!(left.lines().count(), 1, "{left}");
}
