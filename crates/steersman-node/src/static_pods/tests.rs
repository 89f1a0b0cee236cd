//! What files say, and what is shown of it.

use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::mirror::{Step, mirror, step};
use super::source::Source;
use super::{HASH, MIRROR, SOURCE, annotation, is_mirror};

const WEB: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n\
                   spec: {containers: [{name: main, image: 'web:1'}]}\n";

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("steersman-static-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

/// The only Pod of a source.
fn only(source: &mut Source) -> Pod {
    let pods = source.pods(now()).unwrap();
    assert_eq!(pods.len(), 1, "{pods:#?}");
    pods.into_values().next().unwrap()
}

#[test]
fn a_file_becomes_a_pod_of_this_node_and_another_when_it_changes() {
    let directory = directory("files");
    let mut source = Source::new(directory.clone(), "Node-1");
    assert!(source.pods(now()).unwrap().is_empty(), "there is no directory");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("web.yaml"), WEB).unwrap();
    fs::write(directory.join(".web.yaml.swp"), WEB).unwrap();
    let pod = only(&mut source);
    assert_eq!(pod.metadata.name.as_deref(), Some("web-node-1"));
    assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
    let spec = pod.spec.as_ref().unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("Node-1"));
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"), "what is not said is filled in");
    assert!(
        spec.tolerations
            .as_ref()
            .unwrap()
            .iter()
            .any(|it| it.effect.as_deref() == Some("NoExecute"))
    );
    assert_eq!(annotation(&pod, SOURCE), Some("file"));
    assert_eq!(annotation(&pod, HASH), pod.metadata.uid.as_deref());
    assert_eq!(only(&mut source), pod, "nothing has changed");

    fs::write(directory.join("web.yaml"), WEB.replace("web:1", "web:20")).unwrap();
    let changed = only(&mut source);
    assert_ne!(changed.metadata.uid, pod.metadata.uid);
    fs::remove_file(directory.join("web.yaml")).unwrap();
    assert!(source.pods(now()).unwrap().is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_is_no_pod_or_needs_the_api_server_is_left_out() {
    let directory = directory("odd");
    fs::create_dir_all(&directory).unwrap();
    for (number, odd) in [
        "nonsense".to_owned(),
        WEB.replace("kind: Pod", "kind: Job"),
        WEB.replace("containers: [", "serviceAccountName: a, containers: ["),
        WEB.replace("image:", "envFrom: [{configMapRef: {name: a}}], image:"),
        WEB.replace("{containers", "{volumes: [{name: a, secret: {secretName: a}}], containers"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(directory.join(format!("{number}.yaml")), odd).unwrap();
    }
    let mut source = Source::new(directory.clone(), "a");
    let pods = source.pods(now()).unwrap();
    assert!(pods.is_empty(), "{pods:#?}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_else_is_the_api_servers_is_left_out_as_well() {
    let directory = directory("more");
    fs::create_dir_all(&directory).unwrap();
    let volume = |source: &str| {
        let volumes = format!("{{volumes: [{{name: a, {source}}}], containers");
        WEB.replace("{containers", &volumes)
    };
    for (number, odd) in [
        WEB.replace("{containers", "{imagePullSecrets: [{name: a}], containers"),
        WEB.replace("{containers", "{resourceClaims: [{name: a}], containers"),
        volume("csi: {driver: a}"),
        volume("ephemeral: {}"),
        volume("persistentVolumeClaim: {claimName: a}"),
        volume("projected: {sources: [{serviceAccountToken: {path: a}}]}"),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(directory.join(format!("{number}.yaml")), odd).unwrap();
    }
    let none = volume("projected: {sources: [{downwardAPI: {}}]}");
    fs::write(directory.join("none.yaml"), none).unwrap();
    let pods = Source::new(directory.clone(), "a").pods(now()).unwrap();
    assert_eq!(pods.len(), 1, "{pods:#?}");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_static_pod_has_a_class_of_quality() {
    let directory = directory("quality");
    fs::create_dir_all(&directory).unwrap();
    let class_of = |resources: &str| {
        let web = WEB.replace("image:", &format!("resources: {resources}, image:"));
        fs::write(directory.join("web.yaml"), web).unwrap();
        let pod = only(&mut Source::new(directory.clone(), "a"));
        pod.status.unwrap().qos_class.unwrap()
    };
    assert_eq!(class_of("{}"), "BestEffort");
    assert_eq!(class_of("{requests: {cpu: 1}}"), "Burstable");
    assert_eq!(class_of("{limits: {cpu: 1, memory: 1Gi}}"), "Guaranteed");
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_mirror_shows_its_pod_and_comes_back() {
    let directory = directory("mirror");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("web.yaml"), WEB).unwrap();
    let pod = only(&mut Source::new(directory.clone(), "a"));
    fs::remove_dir_all(&directory).unwrap();
    let mut node = Node::default();
    (node.metadata.name, node.metadata.uid) = (Some("a".into()), Some("1".into()));
    let mut shown = mirror(&pod, &node);
    assert!(is_mirror(&shown) && !is_mirror(&pod));
    assert_eq!(annotation(&shown, MIRROR), pod.metadata.uid.as_deref());
    assert_eq!(shown.metadata.owner_references.as_ref().unwrap()[0].kind, "Node");
    assert_eq!(shown.metadata.uid, None);
    let status = PodStatus { phase: Some("Running".into()), ..PodStatus::default() };
    assert_eq!(step(&pod, &status, None), Step::Create);
    assert_eq!(step(&pod, &status, Some(&shown)), Step::Report);
    shown.status = Some(status.clone());
    assert_eq!(step(&pod, &status, Some(&shown)), Step::Nothing);
    let mut deleted = shown.clone();
    deleted.metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(step(&pod, &status, Some(&deleted)), Step::Replace);
    let mut other = shown.clone();
    other.metadata.annotations.as_mut().unwrap().insert(MIRROR.into(), "another".into());
    assert_eq!(step(&pod, &status, Some(&other)), Step::Replace);
    let mut foreign = shown;
    foreign.metadata.annotations = None;
    assert_eq!(step(&pod, &status, Some(&foreign)), Step::Nothing, "it is somebody's");
}
