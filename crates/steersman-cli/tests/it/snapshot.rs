//! `steersman snapshot`: a cluster in a file.

use std::process::Output;

use crate::program::{Program, steersman};

/// Whether the command succeeded, and both outputs.
fn snapshot(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } =
        steersman(&[&["snapshot"], arguments].concat()).output().unwrap();
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn a_cluster_is_saved_while_it_runs_and_restored_elsewhere() {
    let mut program = Program::up_on_disk(&[]);
    program.says("create deployment web --image=nginx --replicas=2", &[]);
    program.says("rollout status deployment/web --timeout=60s", &[]);
    let data = program.directory.join("data").display().to_string();
    let file = program.directory.join("saved").display().to_string();
    let (saved, said) = snapshot(&["save", &file, "--data-dir", &data]);
    assert!(saved && said.contains("saved") && said.contains("keys at revision"), "{said}");
    program.says("delete deployment web", &[]); // a mistake
    program.stop();

    let (good, said) = snapshot(&["status", &file]);
    assert!(good && said.contains("checksums    good"), "{said}");
    let (good, json) = snapshot(&["status", &file, "-o", "json"]);
    assert!(good && json.starts_with("{\"revision\":"), "{json}");
    let (restored, said) = snapshot(&["restore", &file, "--data-dir", &data]);
    assert!(!restored && said.contains("not empty") && said.contains("--data-dir"), "{said}");
    std::fs::remove_dir_all(&data).unwrap();
    let bumped = ["restore", &file, "--data-dir", &data, "--bump-revision", "5000"];
    let (restored, said) = snapshot(&bumped);
    assert!(restored && said.contains("steersman up --data-dir"), "{said}");

    program.start_again();
    program.says("get deployment web", &["2/2"]);
    let version = program.says("get deployment web -o jsonpath='{.metadata.resourceVersion}'", &[]);
    program.says("annotate deployment web again=yes", &[]);
    let next = program.says("get deployment web -o jsonpath='{.metadata.resourceVersion}'", &[]);
    let [version, next]: [u64; 2] = [version, next].map(|text| text.trim().parse().unwrap());
    assert!(version < 5000 && next > 5000, "{version}, {next}");
}

#[test]
fn what_cannot_be_saved_or_read_is_told_with_what_to_do() {
    let directory = crate::program::directory();
    let path = |name: &str| directory.join(name).display().to_string();
    let (file, none) = (path("file"), path("none"));
    for (arguments, parts) in [
        (vec!["save", &file, "--data-dir", &none], ["no cluster is kept in", "--data-dir"]),
        (vec!["save", &file, "--etcd", "http://a:2379"], ["etcdctl snapshot save", "etcd"]),
        (vec!["status", &file], ["cannot", &file]),
        (vec!["restore", &file, "--data-dir", &none], ["cannot", &file]),
    ] {
        let (succeeded, said) = snapshot(&arguments);
        assert!(!succeeded && said.lines().count() == 1, "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    }
    std::fs::write(&file, "not a snapshot").unwrap();
    let (succeeded, said) = snapshot(&["status", &file]);
    assert!(!succeeded && said.contains(&file) && said.lines().count() == 1, "{said}");
}
