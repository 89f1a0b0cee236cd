//! What is counted of decisions.

use super::decision::{Decision, annotation};
use super::policy::{Level, LevelVersion, Policy, Version};
use crate::admission_registration::Operation;
use crate::state::plugins::Attributes;

/// The minor version of Kubernetes whose checks are the newest here.
const NEWEST: i64 = 36;

/// Counts what came of each mode of a policy.
pub(super) fn evaluated(write: Attributes<'_>, policy: &Policy, decision: &Decision) {
    let has = |key: &str| decision.audit.contains_key(key);
    if has(annotation::ERROR) {
        failed(write, "false");
    }
    if has(annotation::ENFORCED) {
        let came = if decision.refusal.is_some() { "deny" } else { "allow" };
        count(write, policy.enforce, ["enforce", came]);
    }
    if has(annotation::VIOLATIONS) {
        count(write, policy.audit, ["audit", "deny"]);
    }
    if decision.warning.is_some() {
        count(write, policy.warn, ["warn", "deny"]);
    }
}

/// Counts that somebody was not asked.
pub(super) fn exempted(write: Attributes<'_>) {
    write.server.metrics.pod_security.exemptions.with(of(write)).increment();
}

/// Counts that a policy could not be read; whether that was the end of it.
pub(super) fn failed(write: Attributes<'_>, fatal: &str) {
    let [operation, resource, subresource] = of(write);
    let labels = [fatal, operation, resource, subresource];
    write.server.metrics.pod_security.errors.with(labels).increment();
}

fn count(write: Attributes<'_>, at: LevelVersion, [mode, came]: [&str; 2]) {
    let level = at.level.to_string();
    let version = version(at);
    let [operation, resource, subresource] = of(write);
    let evaluations = &write.server.metrics.pod_security.evaluations;
    let counter =
        evaluations.with([came, mode, &level, &version, operation, resource, subresource]);
    counter.increment();
}

/// The version as it is told. Nothing is the same in all, and those that are yet to come are one.
fn version(at: LevelVersion) -> String {
    match at.version {
        _ if at.level == Level::Privileged => Version::Latest.to_string(),
        Version::Minor(minor) if minor > NEWEST => "future".to_owned(),
        version => version.to_string(),
    }
}

/// What is written, as it is told.
fn of(write: Attributes<'_>) -> [&str; 3] {
    let operation = if write.operation == Operation::Create { "create" } else { "update" };
    let resource = if write.resource.is("", "pods") { "pod" } else { "controller" };
    [operation, resource, write.subresource]
}
