//! `kubectl delete`, with each way of treating dependents.

use crate::program::Program;

const LEFT: &str = "get rs,pods -o name";

/// A deployment whose pods run.
fn program() -> Program {
    let program = Program::up(&[]);
    program.says("create deployment web --image=nginx --replicas=2", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    program
}

/// Looks again until nothing is left; each look takes kubectl a while.
fn nothing_is_left(program: &Program) {
    let mut looks = (0..200).map(|_| program.says(LEFT, &[]));
    assert!(looks.any(|left| left.is_empty()), "dependents stay");
}

#[test]
fn dependents_go_in_the_background_or_first() {
    let program = program();
    program.says("delete deployment web --cascade=background --wait=false", &["deleted"]);
    nothing_is_left(&program);
    program.says("create deployment web --image=nginx", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    // In the foreground, the owner outlives its dependents, and kubectl waits for it.
    program.says("delete deployment web --cascade=foreground --timeout=60s", &["deleted"]);
    assert_eq!(program.says("get deployment,rs -o name", &[]), "");
    nothing_is_left(&program);
}

#[test]
fn orphans_stay_and_are_adopted_again() {
    let program = program();
    program.says("delete deployment web --cascade=orphan", &["deleted"]);
    let left = program.says(LEFT, &["replicaset.apps/web-"]);
    assert_eq!(left.lines().count(), 3, "{left}");
    let owners = "get rs -o jsonpath='{.items[*].metadata.ownerReferences[*].kind}'";
    assert_eq!(program.says(owners, &[]), "");
    program.says("create deployment web --image=nginx --replicas=2", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    assert_eq!(program.says(owners, &[]), "Deployment");
    // The Deployment makes another of the same name at once. A kubectl that first sees the old one and
    // then the new one would wait until that is deleted as well.
    program.says("delete rs -l app=web --cascade=orphan --wait=false", &["deleted"]);
}

#[test]
fn delete_takes_names_selectors_files_and_everything() {
    let program = Program::up(&[]);
    for name in ["one", "two", "three", "four"] {
        program.says(&format!("create configmap {name} --from-literal=a=b"), &[]);
    }
    program.says("label configmap two tier=front", &[]);
    program.says(
        "delete configmap one --dry-run=server",
        &["configmap \"one\" deleted", "(server dry run)"],
    );
    program.says("delete configmap one", &["configmap \"one\" deleted"]);
    program.says("delete configmap -l tier=front", &["configmap \"two\" deleted"]);
    program.says_to(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: three}}",
        "delete -f -",
        &["configmap \"three\" deleted"],
    );
    program.refuses("delete configmap one", &["configmaps \"one\" not found"]);
    program.says("delete configmap one --ignore-not-found", &[]);
    program.says("delete configmap --field-selector=metadata.name=four", &["\"four\" deleted"]);
    program.says("run web --image=nginx", &[]);
    program.says("wait pod/web --for=condition=Ready --timeout=60s", &[]);
    program.says("delete pod web --now", &["deleted"]);
    program.says("run web --image=nginx", &[]);
    program.says("delete pod web --force --grace-period=0", &["force deleted"]);
    program.says("create configmap kept --from-literal=a=b", &[]);
    program.says(
        "patch configmap kept -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}'",
        &[],
    );
    program.says("delete configmap kept --wait=false", &["deleted"]);
    program.says("get configmap kept -o jsonpath='{.metadata.deletionTimestamp}'", &["20"]);
    program.says("patch configmap kept -p '{\"metadata\":{\"finalizers\":null}}'", &[]);
    program.refuses("get configmap kept", &["NotFound"]);

    program.says("create namespace shop", &[]);
    program.says("create configmap inside --from-literal=a=b -n shop", &[]);
    program.says("delete namespace shop --timeout=60s", &["namespace \"shop\" deleted"]);
    program.refuses("get namespace shop", &["NotFound"]);
    program.refuses("delete namespace kube-system", &["Forbidden"]);
    program.says("create configmap last --from-literal=a=b", &[]);
    program.says("delete cm --all", &["\"last\" deleted"]);
}
