//! Waiting and watching.

use crate::program::{Program, read_until};

#[test]
fn wait_knows_conditions_paths_creation_and_deletion() {
    let program = Program::up(&[]);
    let created = "wait --for=create deployment/web --timeout=60s";
    let created: Vec<&str> = created.split(' ').collect();
    let (mut waiting, output) = program.kubectl_in_background(&created);
    program.says("create deployment web --image=nginx", &[]);
    read_until(&output, "condition met");
    waiting.wait().unwrap();
    program.says("wait deployment/web --for=condition=Available --timeout=60s", &["condition met"]);
    program.says("wait deployment/web --for=condition=Available=True", &["condition met"]);
    program
        .says("wait deployment/web --for=jsonpath='{.status.readyReplicas}'=1", &["condition met"]);
    program
        .says("wait pods -l app=web --for=jsonpath='{.status.phase}'=Running", &["condition met"]);
    program.says("wait deployment/web --for=jsonpath='{.status.conditions}'", &["condition met"]);
    program.refuses(
        "wait deployment/web --for=condition=Unheard --timeout=1s",
        &["timed out waiting for the condition on deployments/web"],
    );
    program.refuses("wait deployment/absent --for=condition=Ready", &["not found"]);
    let gone = "wait --for=delete pods -l app=web --timeout=60s";
    let gone: Vec<&str> = gone.split(' ').collect();
    let (mut waiting, output) = program.kubectl_in_background(&gone);
    program.says("delete deployment web", &["deleted"]);
    assert!(waiting.wait().unwrap().success());
    drop(output);
    program.says("wait --for=delete pod/absent", &[]);
}

#[test]
fn a_watch_prints_changes_in_each_format() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create configmap first --from-literal=a=b", &[]);
    let watches = [
        "get cm -w",
        "get cm --watch-only -o name",
        "get cm -w --output-watch-events",
        "get cm -w -o jsonpath={.metadata.name}{\"\\n\"}",
        "get cm -w -l app=web --show-labels",
        "get cm -A -w -o custom-columns=N:.metadata.name",
        "get cm --field-selector=metadata.name=second -w -o json",
    ];
    let watches =
        watches.map(|line| program.kubectl_in_background(&line.split(' ').collect::<Vec<_>>()));
    for index in [0, 2, 3, 5] {
        read_until(&watches[index].1, "first");
    }
    program.says("create configmap second --from-literal=a=b", &[]);
    program.says("label configmap second app=web", &[]);
    program.says("delete configmap second", &[]);
    for (_, output) in &watches {
        read_until(output, "second");
    }
    read_until(&watches[2].1, "MODIFIED");
    read_until(&watches[2].1, "DELETED");
    for (mut watch, _) in watches {
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
}

#[test]
fn events_are_listed_by_object_and_type() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create configmap web --from-literal=a=b", &[]);
    let event = |name: &str, kind: &str, reason: &str| {
        format!(
            "{{apiVersion: v1, kind: Event, metadata: {{name: {name}, namespace: default}}, \
             type: {kind}, reason: {reason}, message: it {reason}, count: 1, \
             lastTimestamp: '2030-01-01T00:00:00Z', firstTimestamp: '2030-01-01T00:00:00Z', \
             involvedObject: {{kind: ConfigMap, name: web, namespace: default, apiVersion: v1}}}}\n---\n"
        )
    };
    let both = event("e1", "Normal", "Grew") + &event("e2", "Warning", "Broke");
    program.says_to(&both, "create -f -", &["event/e1 created"]);
    program.says("events", &["LAST SEEN", "Grew", "Broke"]);
    let broken = program.says("events --types=Warning", &["it Broke", "ConfigMap/web"]);
    assert!(!broken.contains("Grew"), "{broken}");
    program.says("events --for=configmap/web -o yaml", &["reason: Grew"]);
    program.says("get events --field-selector=type=Warning", &["OBJECT", "configmap/web", "Broke"]);
    program.says("get events.events.k8s.io e1 -o yaml", &["note: it Grew", "regarding:"]);
    program.says("describe configmap web", &["Events:"]);
}
