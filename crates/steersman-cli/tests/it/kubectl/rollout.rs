//! `kubectl rollout`: deployments change image, and change back.

use crate::program::Program;

const STATUS: &str = "rollout status deployment/web --timeout=60s";
const IMAGE: &str = "get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'";

#[test]
fn a_rollout_is_followed_listed_and_undone() {
    let program = Program::up(&[]);
    program.says("create deployment web --image=nginx:1 --replicas=2", &[]);
    program.says(STATUS, &["successfully rolled out"]);
    program.says("annotate deployment web kubernetes.io/change-cause=first", &[]);
    program.says("set image deployment/web nginx=nginx:2", &[]);
    program.says("annotate deployment web kubernetes.io/change-cause=second", &[]);
    program.says(STATUS, &["successfully rolled out"]);
    program.says("rollout history deployment/web", &["REVISION", "1", "first", "2", "second"]);
    program.says("rollout history deployment/web --revision=1", &["nginx:1"]);
    program.says("rollout undo deployment/web", &["rolled back"]);
    program.says(STATUS, &["successfully rolled out"]);
    program.says(IMAGE, &["nginx:1"]);
    let history = program.says("rollout history deployment/web", &["2", "3"]);
    assert!(!history.lines().any(|line| line.starts_with("1 ")), "{history}");
    program.says("rollout undo deployment/web --to-revision=2", &["rolled back"]);
    program.says(IMAGE, &["nginx:2"]);
    program.refuses("rollout undo deployment/web --to-revision=9", &["unable to find"]);
}

#[test]
fn a_rollout_is_paused_resumed_and_restarted() {
    let program = Program::up(&[]);
    program.says("create deployment web --image=nginx:1", &[]);
    program.says(STATUS, &[]);
    program.says("rollout pause deployment/web", &["deployment.apps/web paused"]);
    program.refuses("rollout pause deployment/web", &["is already paused"]);
    program.says("set image deployment/web nginx=nginx:2", &[]);
    let generation = program.says("get deployment web -o jsonpath='{.metadata.generation}'", &[]);
    let observed = "wait deployment/web --for=jsonpath='{.status.observedGeneration}'";
    program.says(&format!("{observed}={generation}"), &["condition met"]);
    program.says("get rs -o wide", &["nginx:1"]);
    program.refuses("rollout restart deployment/web", &["paused"]);
    program.says("rollout resume deployment/web", &["deployment.apps/web resumed"]);
    program.says(STATUS, &["successfully rolled out"]);
    program.says("rollout restart deployment/web", &["deployment.apps/web restarted"]);
    program.says(STATUS, &["successfully rolled out"]);
    let restarted = "get pods -o jsonpath='{.items[*].metadata.annotations}'";
    program.says(restarted, &["kubectl.kubernetes.io/restartedAt"]);
    assert_eq!(program.says("get rs -o name", &[]).lines().count(), 3);
}
