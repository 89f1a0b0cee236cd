//! Static Pods: files that this machine runs by itself, and what the API server shows of them.

use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;

use crate::machine::{Machine, is_ready, status};

/// A file with a Pod that says so and goes on until it is told to end.
fn manifest(said: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels: {{app: web}}\nspec:\n  \
         terminationGracePeriodSeconds: 2\n  containers:\n  - name: main\n    \
         image: localhost/busybox:1\n    command: [sh, -c, \"echo {said}; trap 'exit 0' TERM; \
         while true; do sleep 0.1; done\"]\n"
    )
}

fn container(pod: &Pod) -> Option<String> {
    status(pod, "main").and_then(|it| it.container_id.clone())
}

fn annotation(pod: &Pod, key: &str) -> String {
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    annotations.get(key).cloned().unwrap_or_default()
}

async fn start(name: &'static str) -> (Machine, PathBuf) {
    let mut file = PathBuf::new();
    let machine = Machine::start_with(name, |settings, room| {
        let directory = room.root.with_file_name("manifests");
        fs::create_dir_all(&directory).expect("a directory of our own");
        file = directory.join("web.yaml");
        settings.manifests = Some(directory);
    })
    .await;
    (machine, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_runs_and_its_mirror_comes_back_when_somebody_deletes_it() {
    let (mut machine, file) = start("fixed").await;
    fs::write(&file, manifest("one")).expect("a file");
    let shown = machine.until("web-fixed", is_ready).await;
    let hash = annotation(&shown, "kubernetes.io/config.hash");
    assert_eq!(annotation(&shown, "kubernetes.io/config.mirror"), hash);
    assert_eq!(annotation(&shown, "kubernetes.io/config.source"), "file");
    assert_ne!(shown.metadata.uid.as_ref(), Some(&hash), "the mirror is another object");
    let owner = &shown.metadata.owner_references.as_ref().expect("an owner")[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Node", "fixed"));

    let uid = shown.metadata.uid.clone();
    machine.delete("web-fixed", &DeleteParams::default()).await;
    let again = machine.until("web-fixed", |pod| is_ready(pod) && pod.metadata.uid != uid).await;
    assert_eq!(container(&again), container(&shown), "its container has heard nothing of it");
    assert_eq!(status(&again, "main").expect("a status").restart_count, 0);

    machine.kill_agent();
    machine.start_agent().await;
    let by_force = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    machine.delete("web-fixed", &by_force).await;
    let found = machine.until("web-fixed", is_ready).await;
    assert_eq!(container(&found), container(&shown), "it was found again");

    fs::remove_file(&file).expect("it is there");
    machine.until_gone("web-fixed").await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_is_another_pod_and_one_that_goes_while_nobody_looks_is_ended() {
    let (mut machine, file) = start("changes").await;
    fs::write(&file, manifest("one")).expect("a file");
    let first = machine.until("web-changes", is_ready).await;
    fs::write(&file, manifest("second")).expect("a file");
    let second = machine
        .until("web-changes", |pod| is_ready(pod) && container(pod) != container(&first))
        .await;
    let hash = |pod| annotation(pod, "kubernetes.io/config.mirror");
    assert_ne!(hash(&first), hash(&second));
    let command = second.spec.as_ref().expect("a spec").containers[0].command.clone();
    assert!(command.is_some_and(|command| command[2].contains("second")));
    machine.kill_agent();
    fs::remove_file(&file).expect("it is there");
    machine.start_agent().await;
    machine.until_nothing_is_left().await;
    machine.end().await;
}
