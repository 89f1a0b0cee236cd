//! Jobs, and `CronJobs`, which make them.

use serde_json::{Value, json};

use super::document::{
    fill, fill_text, immutable, is_empty, not_negative, one_of, set, text, within, within_existing,
};
use super::pod::defaults;
use super::{Strategy, template};
use crate::field::FieldError;

/// A controller appends eleven characters to the name of a cron job.
const CRON_NAME_MAX: usize = 52;

/// The strategy of jobs.
#[derive(Debug)]
pub(super) struct Job;

impl Strategy for Job {
    fn default(&self, job: &mut Value) {
        let labels = job["spec"]["template"]["metadata"]["labels"].clone();
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
            within(spec, "template", defaults::template);
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
            if spec["selector"].is_null() {
                let labels = json!({"batch.kubernetes.io/controller-uid": uid});
                set(spec, "selector", json!({"matchLabels": labels}));
            }
            within(spec, "template", |template| {
                within(template, "metadata", |metadata| {
                    within(metadata, "labels", |labels| {
                        for prefix in ["", "batch.kubernetes.io/"] {
                            set(labels, &format!("{prefix}controller-uid"), uid.as_str());
                            set(labels, &format!("{prefix}job-name"), name.as_str());
                        }
                    });
                });
            });
        });
    }

    fn validate_create(&self, job: &Value) -> Vec<FieldError> {
        let spec = &job["spec"];
        let mut errors = job_spec(spec, "spec");
        if spec["manualSelector"] != true {
            let made = json!({
                "controller-uid": job["metadata"]["uid"],
                "job-name": job["metadata"]["name"],
                "batch.kubernetes.io/controller-uid": job["metadata"]["uid"],
                "batch.kubernetes.io/job-name": job["metadata"]["name"],
            });
            if !template::matches(&spec["selector"], &made) {
                let detail = "`selector` not auto-generated";
                errors.push(FieldError::invalid("spec.selector", &spec["selector"], detail));
            }
        }
        let labels = &spec["template"]["metadata"]["labels"];
        if spec["selector"].is_null() {
            errors.push(FieldError::required("spec.selector", ""));
        } else if !template::matches(&spec["selector"], labels) {
            errors.push(template::mismatch(labels));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        let (old, new, status) = (&old["spec"], &new["spec"], &old["status"]);
        // Pods of a job that never started can still be shaped.
        let mut frozen = vec!["selector", "completionMode", "podFailurePolicy", "successPolicy"];
        frozen.extend(["backoffLimitPerIndex", "managedBy"]);
        if !(old["suspend"] == true && status["startTime"].is_null()) {
            frozen.push("template");
        }
        // An indexed job may change its completions together with its parallelism.
        let elastic =
            new["completionMode"] == "Indexed" && new["completions"] == new["parallelism"];
        if !elastic {
            frozen.push("completions");
        }
        errors.extend(frozen.iter().filter_map(|key| immutable(old, new, "spec", key)));
        errors
    }
}

fn job_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    let mut errors: Vec<_> =
        numbers.iter().filter_map(|key| not_negative(spec, path, key)).collect();
    errors.extend(one_of(spec, path, "completionMode", &["NonIndexed", "Indexed"]));
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(format!("{path}.completions"), detail));
    }
    if spec["completionMode"] != "Indexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if !spec[key].is_null() {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(format!("{path}.{key}"), &spec[key], detail));
            }
        }
    }
    errors.extend(template::validate_template(&spec["template"], &format!("{path}.template")));
    errors.extend(ends(spec, path));
    errors
}

/// A pod of a job must be able to end.
fn ends(spec: &Value, path: &str) -> Option<FieldError> {
    let field = format!("{path}.template.spec.restartPolicy");
    let policy = &spec["template"]["spec"]["restartPolicy"];
    match text(policy) {
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            Some(FieldError::required(field, detail))
        }
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            Some(FieldError::invalid(field, policy, detail))
        }
        "OnFailure" | "Never" => None,
        _ => Some(FieldError::not_supported(field, policy, &["OnFailure", "Never"])),
    }
}

/// The strategy of cron jobs.
#[derive(Debug)]
pub(super) struct CronJob;

impl Strategy for CronJob {
    fn default(&self, cron: &mut Value) {
        within(cron, "spec", |spec| {
            fill_text(spec, "concurrencyPolicy", "Allow");
            fill(spec, "suspend", false);
            fill(spec, "successfulJobsHistoryLimit", 3);
            fill(spec, "failedJobsHistoryLimit", 1);
            within_existing(spec, "jobTemplate", |job| {
                within(job, "spec", |spec| within(spec, "template", defaults::template));
            });
        });
    }

    fn prepare_create(&self, cron: &mut Value) {
        set(cron, "status", json!({}));
    }

    fn validate_create(&self, cron: &Value) -> Vec<FieldError> {
        let spec = &cron["spec"];
        let mut errors: Vec<_> = schedule(spec).into_iter().collect();
        let policies = ["Allow", "Forbid", "Replace"];
        errors.extend(one_of(spec, "spec", "concurrencyPolicy", &policies));
        for key in
            ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"]
        {
            errors.extend(not_negative(spec, "spec", key));
        }
        errors.extend(job_spec(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"));
        let name = &cron["metadata"]["name"];
        if text(name).len() > CRON_NAME_MAX {
            let detail = "must be no more than 52 characters";
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
        errors
    }
}

fn schedule(spec: &Value) -> Option<FieldError> {
    const FIELD: &str = "spec.schedule";
    let schedule = text(&spec["schedule"]);
    let fields: Vec<_> = schedule.split_whitespace().collect();
    if fields.is_empty() {
        return Some(FieldError::required(FIELD, ""));
    }
    if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        return Some(FieldError::invalid(FIELD, &spec["schedule"], detail));
    }
    let macros = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if macros.contains(&schedule) || schedule.starts_with("@every ") {
        return None;
    }
    (fields.len() != 5).then(|| {
        let shown = fields.join(" ");
        let detail = format!("expected exactly 5 fields, found {}: [{shown}]", fields.len());
        FieldError::invalid(FIELD, &spec["schedule"], &detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    fn template() -> Value {
        json!({"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox:1"}],
        }})
    }

    fn job(spec: Value) -> Value {
        let mut job = json!({"metadata": {"name": "j", "uid": "u-1"}});
        job["spec"] = spec;
        job["spec"]["template"] = template();
        Job.default(&mut job);
        Job.prepare_create(&mut job);
        job
    }

    #[test]
    fn a_job_selects_the_pods_that_carry_its_uid() {
        let job = job(json!({}));
        let spec = &job["spec"];
        assert_eq!(
            spec["selector"]["matchLabels"],
            json!({"batch.kubernetes.io/controller-uid": "u-1"})
        );
        let labels = &spec["template"]["metadata"]["labels"];
        assert_eq!(labels["controller-uid"], "u-1");
        assert_eq!(labels["batch.kubernetes.io/job-name"], "j");
        for (key, value) in [
            ("completions", json!(1)),
            ("parallelism", json!(1)),
            ("backoffLimit", json!(6)),
            ("completionMode", json!("NonIndexed")),
            ("suspend", json!(false)),
            ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ] {
            assert_eq!(spec[key], value, "{key}");
        }
        assert_eq!(messages(&Job.validate_create(&job)), Vec::<String>::new());
    }

    #[test]
    fn a_job_keeps_parallelism_without_completions() {
        let job = job(json!({"parallelism": 3}));
        assert!(job["spec"]["completions"].is_null());
    }

    #[test]
    fn mistakes_of_a_job_are_named_as_kubernetes_names_them() {
        let mut always = job(json!({}));
        always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
        let own = job(json!({"selector": {"matchLabels": {"a": "b"}}}));
        let negative = job(json!({"parallelism": -1}));
        for (job, message) in [
            (
                always,
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \
                 \"Never\"",
            ),
            (
                own,
                "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` not \
                 auto-generated",
            ),
            (negative, "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        ] {
            assert_eq!(messages(&Job.validate_create(&job))[0], message);
        }
    }

    #[test]
    fn the_template_of_a_started_job_may_not_change() {
        let old = job(json!({}));
        let mut new = old.clone();
        new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("busybox:2");
        let errors = Job.validate_update(&old, &new);
        assert_eq!(errors[0].field, "spec.template");
        assert!(errors[0].text.ends_with("field is immutable"));

        let mut suspended = old.clone();
        suspended["spec"]["suspend"] = json!(true);
        assert!(Job.validate_update(&suspended, &new).is_empty());
    }

    #[test]
    fn a_cron_job_needs_a_schedule_and_a_short_name() {
        let cron = |name: &str, schedule: Value| {
            let mut cron = json!({
                "metadata": {"name": name},
                "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template()}}},
            });
            CronJob.default(&mut cron);
            cron
        };
        for (cron, expected) in [
            (cron("c", json!("*/5 * * * *")), vec![]),
            (cron("c", json!("@hourly")), vec![]),
            (cron("c", json!("")), vec!["spec.schedule: Required value"]),
            (
                cron("c", json!("* *")),
                vec![
                    "spec.schedule: Invalid value: \"* *\": expected exactly 5 fields, found 2: \
                     [* *]",
                ],
            ),
        ] {
            assert_eq!(messages(&CronJob.validate_create(&cron)), expected);
        }
        let long = cron(&"c".repeat(53), json!("@daily"));
        assert_eq!(CronJob.validate_create(&long)[0].field, "metadata.name");
    }

    #[test]
    fn the_pods_of_a_cron_job_are_filled_in_but_not_the_job() {
        let mut cron = json!({"spec": {"jobTemplate": {"spec": {"template": template()}}}});
        CronJob.default(&mut cron);
        let job = &cron["spec"]["jobTemplate"]["spec"];
        assert_eq!(job["template"]["spec"]["containers"][0]["resources"], json!({}));
        assert!(job["backoffLimit"].is_null());
    }
}
