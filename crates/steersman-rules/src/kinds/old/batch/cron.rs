//! The spec of a cron job.

use serde_json::Value;

use super::{job, schedule};
use crate::field::FieldError;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

/// A controller appends eleven characters to the name of a cron job.
const NAME_MAX: usize = 52;

/// The mistakes in a cron job; `old` is what it was, if it exists.
pub(super) fn validate(cron: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = At::new(&cron["spec"], "spec");
    schedule(&spec, old.map(|old| text(&old["spec"]["schedule"])), &mut errors);
    spec.at("startingDeadlineSeconds").not_negative(&mut errors);
    let zone = spec.at("timeZone");
    if zone.is_set() && old.is_none_or(|old| old["spec"]["timeZone"] != *zone.value) {
        let complaints = schedule::time_zone(zone.text());
        errors.extend(complaints.iter().map(|why| zone.invalid(why)));
    }
    spec.at("concurrencyPolicy").requires_one_of(&["Allow", "Forbid", "Replace"], &mut errors);
    let template = spec.at("jobTemplate.spec");
    job::validate(&template, &mut errors);
    let selector = template.at("selector");
    if selector.is_set() {
        errors.push(selector.invalid("`selector` will be auto-generated"));
    }
    let manual = template.at("manualSelector");
    if manual.is_true() {
        errors.push(manual.not_supported(&["nil", "false"]));
    }
    spec.at("successfulJobsHistoryLimit").not_negative(&mut errors);
    spec.at("failedJobsHistoryLimit").not_negative(&mut errors);
    let name = &cron["metadata"]["name"];
    if old.is_none() && text(name).len() > NAME_MAX {
        let why = "must be no more than 52 characters";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    errors
}

/// Schedules could name a time zone once; those that did may go on.
fn schedule(spec: &At<'_, '_>, old: Option<&str>, errors: &mut Errors) {
    let schedule = spec.at("schedule");
    if schedule.text().is_empty() {
        errors.push(schedule.required(""));
        return;
    }
    if let Err(why) = schedule::check(schedule.text()) {
        errors.push(schedule.invalid(&why));
    }
    let names_zone = schedule.text().contains("TZ");
    let may = old.is_some_and(|old| old.contains("TZ"));
    if names_zone && may && spec.at("timeZone").is_set() {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(schedule.invalid(why));
    } else if names_zone && !may {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(schedule.invalid(why));
    }
}
