//! Jobs: pods that run to their end, so many times. [`spec`] has the rules of what is wanted, which a
//! CronJob's template shares, [`status`] those of what the controller reports.

mod columns;
mod failure_policy;
mod indexes;
pub(super) mod spec;
mod status;
#[cfg(test)]
mod tests;
mod update;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled, warnings};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, fill_text, is_empty, set, text, within, within_existing};
use crate::rules::label_selector::{label_selector, matches};

/// What is said of Jobs.
pub(super) const KIND: Kind = Kind {
    plural: "jobs",
    name: "Job",
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    selectable_fields: &["status.successful"],
    rules: &RULES,
    columns: columns::columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({})),
    create: |job| {
        disabled::drop_of_template(job, "/spec/template", &Value::Null);
        create(job);
    },
    keep: |old, job| disabled::drop_of_template(job, "/spec/template", old),
    check: |job, old, errors| {
        generated_selector(job.value, old, errors);
        selecting_spec(job, errors);
        spec::name_allows_completions(job.value, errors);
        if !old.is_null() {
            // Kubernetes looks at the spec of a changed job twice, and so tells its mistakes twice.
            if !errors.is_empty() {
                selecting_spec(job, errors);
            }
            update::validate(old, job.value, errors);
        }
    },
    // Which labels a job must have depends on what it had, so all is said above.
    check_existing: Some(|_, _, _| {}),
    check_status: |job, old, errors| errors.extend(status::validate(old, job.value)),
    warn: |job, old| warnings_of(job, "spec", old),
    ..Rules::NONE
};

/// Labels of a job's pods, each of which also exists without the prefix.
const PREFIX: &str = "batch.kubernetes.io/";
const UID: &str = "controller-uid";
const NAME: &str = "job-name";

fn default(job: &mut Value) {
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
fn create(job: &mut Value) {
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

/// What a job has in its template that a template of a deployment has not.
pub(super) fn default_template(spec: &mut Value) {
    within_existing(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |pattern| {
                fill_text(pattern, "status", "True");
            });
        });
    });
    within(spec, "template", defaults::template);
}

/// A selector that is generated is that of this job, and so are the labels. Jobs that are older than
/// the labels with a prefix need not have them.
fn generated_selector(job: &Value, old: &Value, errors: &mut Errors) {
    let metadata = &job["metadata"];
    let spec = &job["spec"];
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return;
    }
    let labels = template::labels(spec);
    let had = |key: &str| !template::labels(&old["spec"])[format!("{PREFIX}{key}")].is_null();
    let prefixes: &[&str] =
        if old.is_null() || (had(UID) && had(NAME)) { &["", PREFIX] } else { &[""] };
    let mut expected = json!({});
    for prefix in prefixes {
        for (key, value) in [(UID, &metadata["uid"]), (NAME, &metadata["name"])] {
            let key = format!("{prefix}{key}");
            let field = format!("spec.template.metadata.labels[{key}]");
            let why = format!("must be '{}'", text(value));
            if labels[&key].is_null() {
                errors.push(FieldError::required(field, &why));
            } else if text(&labels[&key]) != text(value) {
                errors.push(FieldError::invalid(field, labels, &why));
            }
            expected[key] = value.clone();
        }
    }
    if is_sound(&spec["selector"]) && !matches(&spec["selector"], &expected) {
        let why = "`selector` not auto-generated";
        errors.push(At::new(&spec["selector"], "spec.selector").invalid_as("raw", why));
    }
}

fn selecting_spec(job: &At<'_, '_>, errors: &mut Errors) {
    let spec = job.at("spec");
    spec::validate(&spec, errors);
    let selector = spec.at("selector");
    if selector.is_set() {
        label_selector(&selector, errors);
    } else {
        errors.push(selector.required(""));
    }
    // What a selector means that is not sound nobody can tell; a missing one selects nothing.
    if is_sound(selector.value) {
        let labels = template::labels(spec.value);
        template::matching(&spec, selector.is_set() && matches(selector.value, labels), errors);
    }
}

fn is_sound(selector: &Value) -> bool {
    let mut errors = Errors::default();
    label_selector(&At::root(selector), &mut errors);
    errors.is_empty()
}

/// The warnings about an object with a job's spec.
pub(super) fn warnings_of(object: &Value, path: &str, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if !template::is_new_generation(object, old) {
        return found;
    }
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
