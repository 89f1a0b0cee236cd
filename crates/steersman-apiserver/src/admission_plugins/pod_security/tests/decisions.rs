//! What comes of a Pod or a template, and when a Pod is judged again.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;

use super::super::configuration::Configuration;
use super::super::decision::Decision;
use super::super::policy::Policy;
use super::super::subject::Pod;
use super::{level, merged, pod, spec, with_security};

const PRIVILEGED: &str =
    "privileged (container \"c\" must not set securityContext.privileged=true)";

fn policy(enforce: &str, audit: &str, warn: &str) -> Policy {
    Policy { enforce: level(enforce), audit: level(audit), warn: level(warn) }
}

fn audit(decision: &Decision) -> Value {
    json!(decision.audit)
}

#[test]
fn a_pod_that_violates_what_is_enforced_is_refused_without_a_warning() {
    let object = with_security(json!({"privileged": true}));
    let policy = policy("baseline:v1.22", "restricted:latest", "baseline:latest");
    let decision = Decision::on_pod(&policy, &[], Pod::of(&object));
    let expected = format!("violates PodSecurity \"baseline:v1.22\": {PRIVILEGED}");
    assert_eq!(decision.refusal, Some(expected));
    assert_eq!(decision.warning, None);
    assert_eq!(
        audit(&decision),
        json!({
            "enforce-policy": "baseline:v1.22",
            "audit-violations": format!("would violate PodSecurity \"restricted:latest\": {PRIVILEGED}"),
        })
    );
}

#[test]
fn of_what_is_not_enforced_people_are_told() {
    let object = with_security(json!({"privileged": true}));
    let policy = policy("privileged:latest", "privileged:latest", "restricted:v1.30");
    let decision = Decision::on_pod(&policy, &[], Pod::of(&object));
    let expected = format!("would violate PodSecurity \"restricted:v1.30\": {PRIVILEGED}");
    assert_eq!((decision.refusal.as_ref(), decision.warning.as_ref()), (None, Some(&expected)));
    assert_eq!(audit(&decision), json!({"enforce-policy": "privileged:latest"}));
}

#[test]
fn a_template_is_never_refused() {
    let object = with_security(json!({"privileged": true}));
    let policy = policy("restricted:latest", "privileged:latest", "baseline:latest");
    let decision = Decision::on_template(&policy, &[], Pod::of(&object));
    let expected = format!("would violate PodSecurity \"baseline:latest\": {PRIVILEGED}");
    assert_eq!((decision.refusal.as_ref(), decision.warning.as_ref()), (None, Some(&expected)));
    assert_eq!(audit(&decision), json!({}));
}

#[test]
fn wrong_labels_are_told_to_the_audit_log() {
    let mistakes =
        [FieldError::invalid("a", &"x".into(), "no"), FieldError::invalid("b", &"y".into(), "no")];
    let object = pod(json!({}));
    let found = |mistakes: &[FieldError]| {
        audit(&Decision::on_template(&Policy::PRIVILEGED, mistakes, Pod::of(&object)))["error"]
            .clone()
    };
    assert_eq!(found(&mistakes[..1]), "Failed to parse policy: a: Invalid value: \"x\": no");
    assert_eq!(
        found(&mistakes),
        "Failed to parse policy: [a: Invalid value: \"x\": no, b: Invalid value: \"y\": no]"
    );
}

#[test]
fn only_images_and_new_containers_are_judged_again() {
    let old = spec(json!({
        "initContainers": [{"name": "i", "image": "a"}],
        "ephemeralContainers": [{"name": "e", "image": "a"}],
    }));
    let differs = |new: &Value| Pod::of(new).differs_from(Pod::of(&old));
    let changed = |fields| merged(old.clone(), json!({"spec": fields}));
    assert!(!differs(&old));
    assert!(!differs(&merged(old.clone(), json!({"metadata": {"labels": {"a": "b"}}}))));
    assert!(!differs(&changed(json!({"activeDeadlineSeconds": 5, "tolerations": []}))));
    assert!(!differs(&changed(json!({"containers": [
        {"name": "c", "image": "nginx", "resources": {"limits": {"cpu": "1"}}},
    ]}))));
    assert!(!differs(&changed(json!({"ephemeralContainers": null}))));
    assert!(differs(&changed(json!({"containers": [{"name": "c", "image": "b"}]}))));
    assert!(differs(&changed(json!({"containers": []}))));
    assert!(differs(&changed(json!({"initContainers": [{"name": "i", "image": "b"}]}))));
    assert!(differs(&changed(json!({"ephemeralContainers": [{"name": "e", "image": "b"}]}))));
    assert!(differs(&changed(json!({"ephemeralContainers": [{"name": "f", "image": "a"}]}))));
}

#[test]
fn nobody_is_exempt_who_is_not_named() {
    let none = Configuration::default();
    let names = || vec!["x".to_owned(), String::new()];
    let some = Configuration {
        exempt_namespaces: names(),
        exempt_users: names(),
        exempt_runtime_classes: names(),
        ..Configuration::default()
    };
    for (name, exempt) in [("x", true), ("y", false), ("", false)] {
        assert!(!none.exempts_namespace(name) && !none.exempts_user(name));
        assert!(!none.exempts_runtime_class(name));
        assert_eq!(some.exempts_namespace(name), exempt, "{name:?}");
        assert_eq!(some.exempts_user(name), exempt, "{name:?}");
        assert_eq!(some.exempts_runtime_class(name), exempt, "{name:?}");
    }
}
