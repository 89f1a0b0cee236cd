//! Jobs, and `CronJobs`, which make them.
//!
//! [`job`] has the rules of a job's spec, which a cron job's template shares; [`status`] those
//! of what its controller reports.

mod cron;
mod failure_policy;
mod indexes;
mod job;
mod schedule;
mod status;
#[cfg(test)]
mod tests;
mod update;

use serde_json::{Value, json};

use super::pod::{defaults, warnings};
use super::template;
use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, is_empty, set, text, within, within_existing};
use crate::rules::label_selector::{label_selector, matches};

/// Labels of a job's pods, each of which also exists without the prefix.
const PREFIX: &str = "batch.kubernetes.io/";
const UID: &str = "controller-uid";
const NAME: &str = "job-name";

/// The strategy of jobs.
#[derive(Debug)]
pub(in crate::kinds) struct Job;

impl Strategy for Job {
    fn default(&self, job: &mut Value) {
        let labels = template::labels(&job["spec"]).clone();
        within(job, "metadata", |metadata| {
            if is_empty(&metadata["labels"]) && !is_empty(&labels) {
                set(metadata, "labels", labels);
            }
        });
        within(job, "spec", |spec| {
            if spec["completions"].is_null() && spec["parallelism"].is_null() {
                set(spec, "completions", 1);
            }
            fill(spec, "parallelism", 1);
            let per_index = !spec["backoffLimitPerIndex"].is_null();
            fill(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
            fill(spec, "completionMode", "NonIndexed");
            fill(spec, "suspend", false);
            fill(spec, "manualSelector", false);
            let policy = !spec["podFailurePolicy"].is_null();
            let replacement = if policy { "Failed" } else { "TerminatingOrFailed" };
            fill(spec, "podReplacementPolicy", replacement);
            default_template(spec);
        });
    }

    /// The selector and the labels it needs are made from the job's uid, so that no two jobs
    /// ever share pods; needs `metadata.uid` and `metadata.name` to be set.
    fn prepare_create(&self, job: &mut Value) {
        self.default(job);
        set(job, "status", json!({}));
        if job["spec"]["manualSelector"] == true {
            return;
        }
        let [uid, name] = ["uid", "name"].map(|key| text(&job["metadata"][key]).to_owned());
        within(job, "spec", |spec| {
            within(spec, "selector", |selector| {
                within(selector, "matchLabels", |labels| {
                    fill(labels, &format!("{PREFIX}{UID}"), uid.as_str());
                });
            });
            within(spec, "template", |template| {
                within(template, "metadata", |metadata| {
                    within(metadata, "labels", |labels| {
                        for prefix in ["", PREFIX] {
                            fill(labels, &format!("{prefix}{NAME}"), name.as_str());
                            fill(labels, &format!("{prefix}{UID}"), uid.as_str());
                        }
                    });
                });
            });
        });
    }

    fn validate_create(&self, job: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        generated_selector(job, &mut errors);
        selecting_spec(job, &mut errors);
        job::name_allows_completions(job, &mut errors);
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        selecting_spec(new, &mut errors);
        update::validate(old, new, &mut errors);
        job::name_allows_completions(new, &mut errors);
        errors
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        status::validate(old, new)
    }

    fn warnings(&self, job: &Value, old: Option<&Value>) -> Vec<String> {
        of_spec(job, "spec", old)
    }
}

/// What a job has in its template that a template of a deployment has not.
fn default_template(spec: &mut Value) {
    within_existing(spec, "podFailurePolicy", |policy| {
        crate::rules::document::each(policy, "rules", |rule| {
            crate::rules::document::each(rule, "onPodConditions", |pattern| {
                fill_text(pattern, "status", "True");
            });
        });
    });
    within(spec, "template", defaults::template);
}

fn generated_selector(job: &Value, errors: &mut Errors) {
    let (metadata, spec) = (&job["metadata"], &job["spec"]);
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return;
    }
    let labels = template::labels(spec);
    let mut expected = json!({});
    for (key, value) in [(UID, &metadata["uid"]), (NAME, &metadata["name"])] {
        for prefix in ["", PREFIX] {
            let key = format!("{prefix}{key}");
            let field = format!("spec.template.metadata.labels[{key}]");
            let why = format!("must be '{}'", text(value));
            if labels[&key].is_null() {
                errors.push(FieldError::required(field, &why));
            } else if labels[&key] != *value {
                errors.push(FieldError::invalid(field, &labels[&key], &why));
            }
            expected[key] = value.clone();
        }
    }
    if !matches(&spec["selector"], &expected) {
        let why = "`selector` not auto-generated";
        errors.push(FieldError::invalid("spec.selector", &spec["selector"], why));
    }
}

fn selecting_spec(job: &Value, errors: &mut Errors) {
    let spec = At::new(&job["spec"], "spec");
    job::validate(&spec, errors);
    let selector = spec.at("selector");
    if selector.is_set() {
        label_selector(&selector, errors);
        let matches = matches(selector.value, template::labels(spec.value));
        template::matching(&spec, matches, errors);
    } else {
        errors.push(selector.required(""));
    }
}

/// The warnings about an object with a job's spec.
fn of_spec(object: &Value, path: &str, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_none() {
        found.extend(warnings::of_name(object, "Pod names and hostnames"));
    }
    let root = At::root(object);
    let spec = root.at(path);
    let above = |key: &str, limit: i64| spec.at(key).number().is_some_and(|n| n > limit);
    if spec.at("completionMode").text() == "Indexed"
        && above("completions", 100_000)
        && above("parallelism", 10_000)
    {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a \
                   parallelism higher than 10^4, Kubernetes might not be able to track \
                   completedIndexes when a big number of indexes fail";
        found.push(format!("{path}: {why}"));
    }
    found.extend(template::warnings_of(object, &format!("{path}.template"), old));
    found
}

/// The strategy of cron jobs.
#[derive(Debug)]
pub(in crate::kinds) struct CronJob;

impl Strategy for CronJob {
    fn default(&self, cron: &mut Value) {
        within(cron, "spec", |spec| {
            fill_text(spec, "concurrencyPolicy", "Allow");
            fill(spec, "suspend", false);
            fill(spec, "successfulJobsHistoryLimit", 3);
            fill(spec, "failedJobsHistoryLimit", 1);
            within_existing(spec, "jobTemplate", |job| within(job, "spec", default_template));
        });
    }

    fn prepare_create(&self, cron: &mut Value) {
        set(cron, "status", json!({}));
    }

    fn validate_create(&self, cron: &Value) -> Vec<FieldError> {
        cron::validate(cron, None)
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        cron::validate(new, Some(old))
    }

    fn warnings(&self, cron: &Value, old: Option<&Value>) -> Vec<String> {
        let mut found = of_spec(cron, "spec.jobTemplate.spec", old);
        if old.is_some() && text(&cron["spec"]["schedule"]).contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in spec.schedule, use timeZone instead, see \
                       https://kubernetes.io/blog/2022/09/30/enforce-cronjob-tz/ for more details";
            found.push(why.to_owned());
        }
        found
    }
}
