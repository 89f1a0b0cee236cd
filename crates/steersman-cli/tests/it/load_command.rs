//! `steersman load`: a scenario on the cluster of a kubeconfig.

use std::process::Output;

use crate::program::{Program, steersman};

/// Whether the command succeeded, and both outputs.
fn load(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } =
        steersman(&[&["load"], arguments].concat()).output().unwrap();
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn a_scenario_is_run_and_told_of_as_table_page_and_figures() {
    let program = Program::up(&[]);
    let scenario = program.file(
        "web.yaml",
        "{name: web, namespaces: 2, objects: [{count: 2, deployment: {replicas: 2}}], \
         load: {for: 2s, updates: 2, gets: 20}}",
    );
    let kubeconfig = program.directory.join("kubeconfig").display().to_string();
    let json = program.directory.join("web.json").display().to_string();
    let page = program.directory.join("web.html").display().to_string();
    let common = [scenario.as_str(), "--kubeconfig", &kubeconfig];
    let (done, said) = load(&[&common[..], &["--json", &json]].concat());
    assert!(done, "{said}");
    for part in
        ["4 of 4 objects made", "4 of 4 objects ready", "get deployments", "everything is gone"]
    {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    let (done, said) = load(&[&common[..], &["--report", &page, "--beside", &json]].concat());
    assert!(done, "{said}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("stroke-dasharray") && page.contains("deployments ready"));
    program.says("get namespaces -o name", &["namespace/default"]);
    assert!(!program.says("get namespaces -o name", &[]).contains("web-"));

    program.says("create namespace web-1", &[]);
    let (done, said) = load(&common);
    assert!(!done && said.contains("error: namespace web-1 is there already"), "{said}");
    let wrong = program.file("wrong.yaml", "objects: [{count: 1}]");
    let (done, said) = load(&[&wrong, "--kubeconfig", &kubeconfig]);
    assert!(!done && said.contains("wrong.yaml: objects[0]: one of deployment"), "{said}");
}
