//! The spec of a cron job.

use serde_json::Value;

use super::super::job;
use super::schedule;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

/// A controller appends eleven characters to the name of a cron job.
const NAME_MAX: usize = 52;

/// The mistakes in a cron job; `old` is what it was, or null.
pub(super) fn check(cron: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = cron.at("spec");
    schedule(&spec, text(&old["spec"]["schedule"]), errors);
    spec.at("startingDeadlineSeconds").not_negative(errors);
    let zone = spec.at("timeZone");
    if zone.is_set() && (old.is_null() || old["spec"]["timeZone"] != *zone.value) {
        let complaints = schedule::time_zone(zone.text());
        errors.extend(complaints.iter().map(|why| zone.invalid(why)));
    }
    spec.at("concurrencyPolicy").requires_one_of(&["Allow", "Forbid", "Replace"], errors);
    let template = spec.at("jobTemplate.spec");
    job::spec::validate(&template, errors);
    let selector = template.at("selector");
    if selector.is_set() {
        errors.push(selector.invalid_as("raw", "`selector` will be auto-generated"));
    }
    let manual = template.at("manualSelector");
    if manual.is_true() {
        errors.push(manual.not_supported(&["nil", "false"]));
    }
    spec.at("successfulJobsHistoryLimit").not_negative(errors);
    spec.at("failedJobsHistoryLimit").not_negative(errors);
    let name = cron.at("metadata.name");
    if old.is_null() && name.text().len() > NAME_MAX {
        errors.push(name.invalid("must be no more than 52 characters"));
    }
}

/// Schedules could name a time zone once; those that did may go on.
fn schedule(spec: &At<'_, '_>, old: &str, errors: &mut Errors) {
    let schedule = spec.at("schedule");
    if schedule.text().is_empty() {
        errors.push(schedule.required(""));
        return;
    }
    if let Err(why) = schedule::check(schedule.text()) {
        errors.push(schedule.invalid(&why));
    }
    let names_zone = schedule.text().contains("TZ");
    let may = old.contains("TZ");
    if names_zone && may && spec.at("timeZone").is_set() {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(schedule.invalid(why));
    } else if names_zone && !may {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(schedule.invalid(why));
    }
}
