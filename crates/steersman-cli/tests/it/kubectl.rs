//! kubectl, unmodified, against the program.

mod access;
mod aggregation;
mod apply;
mod change;
mod create;
mod delete;
mod describe;
mod discover;
mod jobs;
mod nodes;
mod output;
mod rollout;
mod sets;
mod validation;
mod wait;
mod workloads;

use std::process::Command;

use crate::program::{Program, installed, read_until};

const CRD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests/app-service-crd.yaml");
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests/shop.yaml");

#[test]
fn kubectl_is_there() {
    let found = Command::new(installed("kubectl")).args(["version", "--client"]).output();
    let found = found.expect("`cargo xtask test` installs kubectl");
    assert!(found.status.success());
}

#[test]
fn get_all_shows_a_cluster_that_is_alive() {
    let program = Program::up(&["--nodes", "2"]);
    assert!(program.kubectl(&["get", "all", "-A"]).contains("service/kubernetes"));
    program.kubectl(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"]);
    let nodes = program.kubectl(&["get", "nodes", "-o", "wide"]);
    assert_eq!(nodes.lines().count(), 3, "{nodes}");
    assert!(nodes.contains("INTERNAL-IP") && nodes.contains("Ready"), "{nodes}");
    let namespaces = program.kubectl(&["get", "ns"]);
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(namespaces.contains(namespace), "{namespaces}");
    }
}

#[test]
fn a_deployment_lives_its_whole_life() {
    let program = Program::up(&[]);
    program.kubectl(&["create", "deployment", "web", "--image=nginx:1.29", "--replicas=2"]);
    let waited = ["wait", "--for=condition=Available", "deployment/web", "--timeout=60s"];
    assert!(program.kubectl(&waited).contains("condition met"));
    program.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);

    let table = program.kubectl(&["get", "deployment", "web"]);
    assert!(table.contains("UP-TO-DATE") && table.contains("2/2"), "{table}");
    let wide = program.kubectl(&["get", "pods", "-o", "wide"]);
    assert!(wide.contains("NODE") && wide.contains("Running") && wide.contains("10."), "{wide}");
    let yaml = program.kubectl(&["get", "deployment", "web", "-o", "yaml"]);
    assert!(yaml.contains("kind: Deployment") && yaml.contains("resourceVersion:"), "{yaml}");
    let json = program.kubectl(&["get", "pods", "-l", "app=web", "-o", "json"]);
    assert_eq!(json.matches("\"kind\": \"Pod\"").count(), 2, "{json}");

    program.kubectl(&["scale", "deployment/web", "--replicas=4"]);
    program.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    assert!(program.kubectl(&["get", "deployment", "web"]).contains("4/4"));
    let described = program.kubectl(&["describe", "deployment", "web"]);
    assert!(described.contains("4 desired") && described.contains("4 available"), "{described}");
    let described = program.kubectl(&["describe", "pods"]);
    assert!(described.contains("Running") && described.contains("nginx:1.29"), "{described}");

    program.kubectl(&["delete", "deployment", "web"]);
    // Each look takes kubectl a while, so this ends by itself when nothing is deleted.
    let mut looks = (0..200).map(|_| program.kubectl(&["get", "rs,pods", "-o", "name"]));
    assert!(looks.any(|left| left.is_empty()), "pods or replica sets stay");
}

#[test]
fn a_custom_resource_is_defined_applied_and_listed() {
    let program = Program::up(&[]);
    assert!(program.kubectl(&["apply", "-f", CRD]).contains("created"));
    program.kubectl(&["wait", "--for=condition=Established", "crd/appservices.demo.steersman.dev"]);
    assert!(program.kubectl(&["apply", "-f", SHOP]).contains("created"));
    assert!(program.kubectl(&["apply", "-f", SHOP]).contains("unchanged"));
    let apps = program.kubectl(&["get", "app"]);
    assert!(apps.contains("REPLICAS") && apps.contains("shop"), "{apps}");
    assert!(program.kubectl(&["describe", "app", "shop"]).contains("Deployment Name:"));
    program.kubectl(&["delete", "-f", CRD]);
    let resources = program.kubectl(&["api-resources", "--cached=false"]);
    assert!(!resources.contains("appservices"), "{resources}");
}

#[test]
fn api_resources_lists_every_group() {
    let program = Program::up(&["--nodes", "0"]);
    let resources = program.kubectl(&["api-resources"]);
    for part in [
        "deploy",
        "customresourcedefinitions",
        "cronjobs",
        "leases",
        "endpointslices",
        "networkpolicies",
        "storageclasses",
        "horizontalpodautoscalers",
        "roles",
    ] {
        assert!(resources.contains(part), "{part} is not in:\n{resources}");
    }
    assert!(program.kubectl(&["version"]).contains("v1.36"));
}

#[test]
fn a_watch_shows_pods_as_they_start() {
    let program = Program::up(&[]);
    program.kubectl(&["create", "deployment", "web", "--image=nginx"]);
    let (mut watch, output) = program.kubectl_in_background(&["get", "pods", "-w"]);
    read_until(&output, "Running"); // from here on it watches
    program.kubectl(&["scale", "deployment/web", "--replicas=2"]);
    read_until(&output, "Pending");
    read_until(&output, "Running");
    watch.kill().unwrap();
    watch.wait().unwrap();
}
