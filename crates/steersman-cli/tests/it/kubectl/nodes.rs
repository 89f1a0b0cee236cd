//! Nodes: cordon, drain and taints, as an administrator does maintenance.

use crate::program::Program;

#[test]
fn a_node_is_cordoned_drained_and_given_back() {
    let program = Program::up(&["--nodes", "2"]);
    program.says("wait node --all --for=condition=Ready --timeout=60s", &[]);
    program.says("create deployment web --image=nginx --replicas=4", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    program.says("cordon node-0", &["node/node-0 cordoned"]);
    program.says("get node node-0", &["Ready,SchedulingDisabled"]);
    program.says("cordon node-0", &["already cordoned"]);
    program.says("run alone --image=nginx", &[]);
    program.says("wait pod/alone --for=condition=Ready --timeout=60s", &[]);
    program.says("get pod alone -o wide", &["node-1"]);
    program
        .refuses("drain node-1 --timeout=5s", &["cannot delete Pods that declare no controller"]);
    program.says("uncordon node-0 node-1", &["node/node-0 uncordoned"]);
    program.says(
        "drain node-1 --force --timeout=60s",
        &["evicting pod default/alone", "node/node-1 drained"],
    );
    program.says("rollout status deployment/web --timeout=60s", &[]);
    let left = program.says("get pods -A --field-selector=spec.nodeName=node-1 -o name", &[]);
    assert_eq!(left, "");
    program.says("get pods -l app=web -o wide", &["node-0"]);
}

#[test]
fn a_drain_waits_for_a_disruption_budget() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("create deployment web --image=nginx", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    program.says("create pdb web --selector=app=web --min-available=1", &[]);
    // kubectl does not repeat the server's reason, for it is still waiting to try again.
    program.refuses("drain node-0 --timeout=2s", &["error when evicting pods"]);
    program.says("get pods -o wide", &["Running"]);
    program.says("drain node-0 --disable-eviction --timeout=60s", &["drained"]);
}

#[test]
fn taints_come_and_go() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("wait node --all --for=condition=Ready --timeout=60s", &[]);
    program.says("taint nodes node-0 team=blue:NoSchedule", &["node/node-0 tainted"]);
    program.refuses("taint nodes node-0 team=red:NoSchedule", &["already has", "overwrite"]);
    program.says("taint nodes node-0 team=red:NoSchedule --overwrite", &["modified"]);
    program.says("describe node node-0", &["team=red:NoSchedule", "Capacity:", "Conditions:"]);
    program.says("run kept-out --image=nginx", &[]);
    program.says("get pod kept-out", &["Pending"]);
    program.says("taint nodes --all team-", &["untainted"]);
    program.says("wait pod/kept-out --for=condition=Ready --timeout=60s", &["condition met"]);
    program.says("label node node-0 disk=fast", &["labeled"]);
    program.says("get nodes -L disk -l disk=fast", &["DISK", "fast"]);
}
