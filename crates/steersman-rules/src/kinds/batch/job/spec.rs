//! The spec of a job, also within a cron job's template.

use serde_json::Value;

use super::{failure_policy, indexes};
use crate::field::FieldError;
use crate::kinds::core::pod::template;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

const INDEXED_PARALLELISM_MAX: i64 = 100_000;
const INDEXED_FAILED_MAX: i64 = 100_000;

/// Jobs with more indexes than this may do less at once.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const MANY_COMPLETIONS_MAX: i64 = 10_000;

const MANAGED_BY_MAX: usize = 63;

/// The mistakes in a job's spec, besides its selector.
pub(in crate::kinds::batch) fn validate(spec: &At<'_, '_>, errors: &mut Errors) {
    for number in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.at(number).not_negative(errors);
    }
    let per_index = spec.at("backoffLimitPerIndex");
    if spec.at("maxFailedIndexes").is_set() && per_index.is_absent() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    managed_by(&spec.at("managedBy"), errors);
    let mode = spec.at("completionMode");
    mode.one_of(&["NonIndexed", "Indexed"], errors);
    if mode.text() == "Indexed" {
        indexed(spec, errors);
    }
    if mode.is_absent() || mode.text() == "NonIndexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if spec.at(key).is_set() {
                errors.push(spec.at(key).invalid("requires indexed completion mode"));
            }
        }
    }
    failure_policy::validate(spec, errors);
    success_policy(spec, errors);
    replacement(spec, errors);
    template::validate_template(&spec.at("template"), errors);
    ends(spec, errors);
}

fn indexed(spec: &At<'_, '_>, errors: &mut Errors) {
    let completions = spec.at("completions");
    let parallelism = spec.at("parallelism");
    let failed = spec.at("maxFailedIndexes");
    if completions.is_absent() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    let tail = " when completion mode is Indexed";
    at_most(&parallelism, INDEXED_PARALLELISM_MAX, tail, errors);
    if let (Some(most), Some(all)) = (failed.number(), completions.number())
        && most > all
    {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    at_most(&failed, INDEXED_FAILED_MAX, "", errors);
    let many = completions.number().is_some_and(|number| number > COMPLETIONS_SOFT_MAX);
    if many && spec.at("backoffLimitPerIndex").is_set() {
        if failed.is_absent() {
            let why = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.push(failed.required(&why));
        }
        let tail = format!(
            " when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per \
             index"
        );
        at_most(&parallelism, MANY_COMPLETIONS_MAX, &tail, errors);
        at_most(&failed, MANY_COMPLETIONS_MAX, &tail, errors);
    }
}

/// Complains of a number above `max`; `tail` says when it may not be.
fn at_most(at: &At<'_, '_>, max: i64, tail: &str, errors: &mut Errors) {
    if at.number().is_some_and(|number| number > max) {
        errors.push(at.invalid(&format!("must be less than or equal to {max}{tail}")));
    }
}

fn managed_by(at: &At<'_, '_>, errors: &mut Errors) {
    if at.is_absent() {
        return;
    }
    match at.text().split_once('/') {
        _ if at.text().is_empty() => errors.push(at.required("")),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            let complaints = names::dns1123_subdomain(host);
            errors.extend(complaints.iter().map(|why| at.invalid_value(host, why)));
            let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
            if !path.chars().all(allowed) {
                let why = "Invalid path (regex used for validation is \
                           '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                errors.push(at.invalid_value(path, why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(at.invalid(why));
        }
    }
    if at.text().len() > MANAGED_BY_MAX {
        errors.push(at.too_long(MANAGED_BY_MAX));
    }
}

fn success_policy(spec: &At<'_, '_>, errors: &mut Errors) {
    const RULES_MAX: usize = 20;
    const INDEXES_MAX: usize = 64 * 1024;
    let policy = spec.at("successPolicy");
    if policy.is_absent() {
        return;
    }
    if spec.at("completionMode").text() != "Indexed" {
        errors.push(policy.invalid_as("SuccessPolicy", "requires indexed completion mode"));
        return;
    }
    let rules = policy.at("rules");
    if rules.list().is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(rules.required(why));
    }
    if rules.len() > RULES_MAX {
        errors.push(rules.too_many(RULES_MAX));
    }
    let completions = spec.at("completions").number_or_zero();
    for rule in rules.items() {
        let count = rule.at("succeededCount");
        let listed = rule.at("succeededIndexes");
        if count.is_absent() && listed.is_absent() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(rule.required(why));
        }
        if listed.text().len() > INDEXES_MAX {
            errors.push(listed.too_long(INDEXES_MAX));
        }
        let total = indexes::count(listed.text(), completions);
        if let Err(why) = &total {
            errors.push(listed.invalid(&format!("error parsing succeededIndexes: {why}")));
        }
        let total = total.unwrap_or(0);
        count.not_negative(errors);
        let limits = [
            (completions, "the number of specified completions", true),
            (
                total,
                "the number of indexes in the specified succeededIndexes field",
                listed.is_set(),
            ),
        ];
        for (limit, what, applies) in limits {
            if applies && count.number().is_some_and(|count| count > limit) {
                let why = format!("must be less than or equal to {limit} ({what})");
                errors.push(count.invalid(&why));
            }
        }
    }
}

fn replacement(spec: &At<'_, '_>, errors: &mut Errors) {
    let allowed: &[&str] = match spec.at("podFailurePolicy").is_set() {
        true => &["Failed"],
        false => &["Failed", "TerminatingOrFailed"],
    };
    spec.at("podReplacementPolicy").one_of(allowed, errors);
}

/// A pod of a job must be able to end.
fn ends(spec: &At<'_, '_>, errors: &mut Errors) {
    let policy = spec.at("template.spec.restartPolicy");
    match policy.text() {
        "" | "Always" => {
            errors.push(policy.required("valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if spec.at("podFailurePolicy").is_set() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(policy.invalid(why));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
}

/// The index of a pod is part of its hostname.
pub(super) fn name_allows_completions(job: &Value, errors: &mut Errors) {
    let spec = &job["spec"];
    let last = spec["completions"].as_i64().filter(|n| *n > 0).map(|n| n - 1);
    if let Some(last) = last.filter(|_| spec["completionMode"] == "Indexed") {
        let name = &job["metadata"]["name"];
        let hostname = format!("{}-{last}", text(name));
        if !names::dns1123_label(&hostname).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {hostname}");
            errors.push(FieldError::invalid("metadata.name", name, &why));
        }
    }
}
