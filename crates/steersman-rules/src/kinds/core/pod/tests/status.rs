//! What a node may say of its pods.

use serde_json::{Value, json};

use super::{RULES, messages, rich};

fn written(old: &Value, status: Value) -> (Value, Vec<String>) {
    let mut new = old.clone();
    new["status"] = status;
    RULES.prepare_status_update(old, &mut new);
    let errors = messages(&RULES.validate_status_update(old, &new));
    (new, errors)
}

fn ended(policy: &str, code: i64) -> Value {
    let mut pod = rich();
    pod["spec"]["restartPolicy"] = json!(policy);
    pod["status"]["containerStatuses"] =
        json!([{"name": "c", "state": {"terminated": {"exitCode": code}}}]);
    pod
}

#[test]
fn what_the_writer_does_not_know_stays() {
    let mut old = rich();
    old["status"]["observedGeneration"] = json!(3);
    let (new, errors) = written(&old, json!({"phase": "Running", "podIP": "10.0.0.1"}));
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(new["status"]["qosClass"], "BestEffort");
    assert_eq!(new["status"]["observedGeneration"], 3);
    assert_eq!(new["status"]["podIPs"], json!([{"ip": "10.0.0.1"}]));
}

#[test]
fn a_container_that_ended_starts_again_only_if_it_may() {
    let refused = "status.containerStatuses[0].state: Forbidden: may not be transitioned to \
                   non-terminated state";
    let waiting = json!({"containerStatuses": [{"name": "c", "state": {"waiting": {}}}]});
    for (policy, code, expected) in [
        ("Always", 0, vec![]),
        ("OnFailure", 1, vec![]),
        ("OnFailure", 0, vec![refused]),
        ("Never", 1, vec![refused]),
    ] {
        let (_, errors) = written(&ended(policy, code), waiting.clone());
        assert_eq!(errors, expected, "{policy} {code}");
    }
}

#[test]
fn mistakes_in_a_status() {
    let cases: &[(Value, &[&str])] = &[
        (
            json!({"qosClass": "Guaranteed"}),
            &["status.qosClass: Invalid value: \"Guaranteed\": field is immutable"],
        ),
        (
            json!({"observedGeneration": -1}),
            &["status.observedGeneration: Invalid value: -1: must be a non-negative integer"],
        ),
        (
            json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}),
            &["status.podIPs: Invalid value: [{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}]: may \
               specify no more than one IP for each IP family"],
        ),
        (
            json!({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}),
            &["status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`"],
        ),
        (
            json!({"resourceClaimStatuses": [{"name": "x"}]}),
            &[
                "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of \
               an entry in `spec.resourceClaims`",
            ],
        ),
        (json!({"conditions": [{"type": "example.com/gate", "status": "True"}]}), &[]),
    ];
    for (status, expected) in cases {
        assert_eq!(written(&rich(), status.clone()).1, *expected, "{status}");
    }
}
