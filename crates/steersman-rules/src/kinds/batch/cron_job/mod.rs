//! CronJobs: a Job at every time that a schedule names.

mod schedule;
mod spec;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::job;
use crate::kinds::core::pod::disabled;
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::document::{fill, fill_text, text, within, within_existing};
use crate::table::cells::{len, selector, text as cell};
use crate::table::template::containers;
use crate::table::{Column, age, duration};

/// What is said of CronJobs.
pub(super) const KIND: Kind = Kind {
    plural: "cronjobs",
    name: "CronJob",
    short_names: &["cj"],
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({})),
    create: |cron| disabled::drop_of_template(cron, TEMPLATE, &Value::Null),
    keep: |old, cron| disabled::drop_of_template(cron, TEMPLATE, old),
    check: spec::check,
    warn,
    ..Rules::NONE
};

/// Where the template of the pods lies.
const TEMPLATE: &str = "/spec/jobTemplate/spec/template";

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::field("Schedule", "spec.schedule", ""),
        Column::field("Timezone", "spec.timeZone", "<none>"),
        Column {
            r#type: "boolean".into(),
            ..Column::text("Suspend", |job, _| {
                let suspended = job["spec"]["suspend"].as_bool();
                suspended.map_or("<unset>", |on| if on { "True" } else { "False" }).into()
            })
        },
        Column::count("Active", |job, _| len(&job["status"]["active"]).into()),
        Column::text("Last Schedule", |job, now| match cell(&job["status"]["lastScheduleTime"]) {
            "" => "<none>".into(),
            time => duration::since(time, now).into(),
        }),
        age(),
    ];
    columns.extend(containers());
    let show = |job: &Value, _| selector(&job["spec"]["jobTemplate"]["spec"]["selector"]).into();
    columns.push(Column::text("Selector", show).wide());
    columns
}

fn default(cron: &mut Value) {
    within(cron, "spec", |spec| {
        fill_text(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
        within_existing(spec, "jobTemplate", |job| within(job, "spec", job::default_template));
    });
}

fn warn(cron: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = job::warnings_of(cron, "spec.jobTemplate.spec", old);
    if old.is_some() && text(&cron["spec"]["schedule"]).contains("TZ") {
        // The path is that of Kubernetes.
        let why = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                   https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                   details";
        found.push(why.to_owned());
    }
    found
}
