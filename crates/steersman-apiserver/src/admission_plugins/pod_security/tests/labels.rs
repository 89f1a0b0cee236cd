//! What the labels of a namespace mean.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;

use super::super::policy::{Level, LevelVersion, Policy, Version};
use super::level;

/// Labels, by the part of their names that tells them apart.
fn labels(labels: &[(&str, &str)]) -> Value {
    let named = |(name, value): &(&str, &str)| {
        (format!("pod-security.kubernetes.io/{name}"), Value::from(*value))
    };
    Value::Object(labels.iter().map(named).collect())
}

fn policy(text: &str) -> Policy {
    let mut levels = text.split(' ').map(level);
    let mut next = || levels.next().unwrap();
    Policy { enforce: next(), audit: next(), warn: next() }
}

#[track_caller]
fn read(given: &[(&str, &str)], expected: &str, mistakes: &[&str]) {
    let (found, errors) = Policy::of_labels(&labels(given), &Policy::PRIVILEGED);
    assert_eq!(found, policy(expected), "{given:?}");
    let errors: Vec<String> = errors.iter().map(FieldError::message).collect();
    assert_eq!(errors, mistakes, "{given:?}");
}

#[test]
fn labels_say_what_is_asked_and_whoever_is_refused_pods_is_warned() {
    let none = "privileged:latest";
    read(&[], &format!("{none} {none} {none}"), &[]);
    read(&[("enforce", "baseline")], &format!("baseline:latest {none} baseline:latest"), &[]);
    read(
        &[("enforce", "restricted"), ("enforce-version", "v1.22")],
        &format!("restricted:v1.22 {none} restricted:v1.22"),
        &[],
    );
    read(
        &[("enforce", "restricted"), ("warn-version", "v1.22")],
        &format!("restricted:latest {none} restricted:v1.22"),
        &[],
    );
    read(
        &[("enforce", "restricted"), ("warn", "baseline")],
        &format!("restricted:latest {none} baseline:latest"),
        &[],
    );
    read(
        &[("audit", "baseline"), ("audit-version", "v1.0"), ("warn", "restricted")],
        &format!("{none} baseline:v1.0 restricted:latest"),
        &[],
    );
    read(&[("enforce-version", "v1.5")], &format!("privileged:v1.5 {none} {none}"), &[]);
}

#[test]
fn labels_that_mean_nothing_are_strict_where_it_is_enforced() {
    let none = "privileged:latest";
    read(
        &[("enforce", "Baseline"), ("enforce-version", "1.22")],
        &format!("restricted:latest {none} {none}"),
        &[
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"Baseline\": \
             must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: \
             \"1.22\": must be \"latest\" or \"v1.x\"",
        ],
    );
    read(
        &[("audit", ""), ("audit-version", ""), ("warn", "x"), ("warn-version", "v1.01")],
        &format!("{none} {none} {none}"),
        &[
            "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"\": must be one \
             of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"\": must \
             be \"latest\" or \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"x\": must be one \
             of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.01\": \
             must be \"latest\" or \"v1.x\"",
        ],
    );
}

#[test]
fn versions_are_of_the_first_major_version() {
    for sound in ["latest", "v1.0", "v1.9", "v1.10", "v1.36", "v1.1000"] {
        assert_eq!(
            Version::parse(sound).map(|version| version.to_string()).as_deref(),
            Some(sound)
        );
    }
    let wrong = "v1 v1. v1.x v1.00 v1.01 v1.-1 v1.+1 v2.0 1.22 V1.2 Latest v1.2.3 \
                 v1.99999999999999999999";
    for wrong in wrong.split_whitespace().chain(["", "v1.2 ", " latest"]) {
        assert_eq!(Version::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn defaults_hold_where_no_label_says_otherwise() {
    let baseline = LevelVersion { level: Level::Baseline, version: Version::Minor(25) };
    let defaults = Policy { warn: baseline, ..Policy::PRIVILEGED };
    let of = |given: &[(&str, &str)]| Policy::of_labels(&labels(given), &defaults).0;
    assert_eq!(of(&[]), defaults);
    assert_eq!(of(&[("enforce", "privileged")]).warn, baseline);
    assert_eq!(of(&[("enforce", "restricted")]).warn, level("restricted:latest"));
    assert_eq!(of(&[("warn", "restricted")]).warn, level("restricted:v1.25"));
}

#[test]
fn only_what_is_asked_in_vain_is_told() {
    let told = |given: &[(&str, &str)]| {
        let labels = labels(given);
        let policy = Policy::of_labels(&labels, &Policy::PRIVILEGED).0;
        policy.set_in_vain(&labels, &Policy::PRIVILEGED)
    };
    assert_eq!(told(&[]), None);
    assert_eq!(told(&[("enforce-version", "v1.22")]), None);
    assert_eq!(told(&[("enforce", "baseline")]).as_deref(), Some("enforce=baseline:latest"));
    assert_eq!(
        told(&[("enforce", "privileged"), ("audit", "baseline"), ("warn", "restricted")])
            .as_deref(),
        Some("audit=baseline:latest, warn=restricted:latest")
    );
    let labels = json!({"app": "x"});
    let defaults = Policy { audit: level("baseline:latest"), ..Policy::PRIVILEGED };
    let policy = Policy::of_labels(&labels, &defaults).0;
    assert_eq!(policy.set_in_vain(&labels, &defaults), None);
}
