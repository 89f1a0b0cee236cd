//! What kubectl makes of the server's OpenAPI documents.

use std::process::Command;

use crate::program::Program;

const CRD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests/app-service-crd.yaml");

#[test]
fn explain_tells_what_fields_mean() {
    let program = Program::up(&["--nodes", "0"]);
    let containers = program.kubectl(&["explain", "pod.spec.containers"]);
    for part in ["KIND:       Pod", "FIELD: containers <[]Container>", "imagePullPolicy", "enum: "]
    {
        assert!(containers.contains(part), "{part} is not in:\n{containers}");
    }
    let all = program.kubectl(&["explain", "deployment.spec", "--recursive"]);
    assert!(all.contains("terminationGracePeriodSeconds\t<integer>"), "{all}");
    program.kubectl(&["apply", "-f", CRD]);
    let custom = program.kubectl(&["explain", "appservices.spec", "--recursive"]);
    assert!(custom.contains("GROUP:      demo.steersman.dev"), "{custom}");
    assert!(custom.contains("replicas\t<integer>"), "{custom}");
}

#[test]
fn explain_knows_every_kind() {
    let program = Program::up(&["--nodes", "0"]);
    let resources = program.kubectl(&["api-resources", "-o", "name"]);
    assert!(resources.lines().count() > 60, "{resources}");
    for resource in resources.lines() {
        // kubectl would take the group for a field of the core resource.
        let explained = match resource.split_once('.') {
            Some(("events", _)) => {
                program.kubectl(&["explain", "events", "--api-version=events.k8s.io/v1"])
            }
            Some((plural, "metrics.k8s.io")) => {
                program.kubectl(&["explain", plural, "--api-version=metrics.k8s.io/v1beta1"])
            }
            _ => program.kubectl(&["explain", resource]),
        };
        assert!(explained.contains("DESCRIPTION:") && explained.contains("FIELDS:"), "{explained}");
        assert!(!explained.contains("<empty>"), "{explained}");
    }
}

#[test]
fn kubectl_leaves_validation_to_the_server_and_the_server_names_the_mistake() {
    let program = Program::up(&["--nodes", "0"]);
    let file = program.directory.join("unheard.yaml");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nunheard: of\n";
    std::fs::write(&file, text).unwrap();
    let create = |how: &str| {
        let mut command = Command::new("kubectl");
        command.env("HOME", &program.directory);
        command.env("KUBECONFIG", program.directory.join("kubeconfig"));
        let output = command.args(["create", "-f"]).arg(&file).arg(how).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (created, said) = create("--validate=strict");
    assert!(
        !created && said.contains("strict decoding error: unknown field \"unheard\""),
        "{said}"
    );
    assert_eq!(create("--validate=ignore"), (true, String::new()));
    program.kubectl(&["delete", "configmap", "a"]);
    let (created, said) = create("--validate=warn");
    assert!(created && said.contains("Warning: unknown field \"unheard\""), "{said}");
}
