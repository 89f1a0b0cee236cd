//! The status of a job, whoever manages it.
//!
//! Most rules are about a change: a status that was already wrong may stay so.

use std::collections::HashSet;

use serde_json::Value;

use super::failure_policy::without_value;
use super::indexes;
use crate::rules::at::{At, Errors};
use crate::rules::document::items;

/// An old and a new status with the job's spec, which does not change.
struct Change<'v> {
    spec: &'v Value,
    old: &'v Value,
    new: At<'v, 'v>,
}

/// The mistakes in a new status.
pub(super) fn validate(old: &Value, new: &Value) -> Errors {
    let mut errors = Errors::default();
    let status = At::new(&new["status"], "status");
    let change = Change { spec: &new["spec"], old: &old["status"], new: status };
    for number in ["active", "succeeded", "failed", "ready", "terminating"] {
        status.at(number).not_negative(&mut errors);
    }
    uncounted(&status.at("uncountedTerminatedPods"), &mut errors);
    change.conditions(&mut errors);
    change.times(&mut errors);
    change.finished(&mut errors);
    change.indexes(&mut errors);
    change.counters(&mut errors);
    errors
}

fn holds(status: &Value, kind: &str) -> bool {
    let holds = |condition: &Value| condition["type"] == kind && condition["status"] == "True";
    items(&status["conditions"]).iter().any(holds)
}

fn is_finished(status: &Value) -> bool {
    holds(status, "Complete") || holds(status, "Failed")
}

fn uncounted(at: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for list in ["succeeded", "failed"] {
        for uid in at.each(list) {
            if uid.text().is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text()) {
                errors.push(uid.duplicate());
            }
        }
    }
}

impl Change<'_> {
    fn changed(&self, key: &str) -> bool {
        self.old[key] != self.new.value[key]
    }

    fn condition_changed(&self, kind: &str) -> bool {
        holds(self.old, kind) != holds(self.new.value, kind)
    }

    fn is(&self, kind: &str) -> bool {
        holds(self.new.value, kind)
    }

    fn conditions(&self, errors: &mut Errors) {
        let mut wrong = |why: &str| {
            errors.push(without_value(self.new.at("conditions").path(), why));
        };
        let changed = |kind: &str| self.condition_changed(kind);
        let completes = changed("Complete");
        if (completes || changed("Failed")) && self.is("Complete") && self.is("Failed") {
            wrong("cannot set Complete=True and Failed=true conditions");
        }
        if (completes || changed("FailureTarget"))
            && self.is("Complete")
            && self.is("FailureTarget")
        {
            wrong("cannot set Complete=True and FailureTarget=true conditions");
        }
        if (changed("Failed") || self.changed("failedIndexes"))
            && self.is("Failed")
            && !self.is("FailureTarget")
        {
            wrong("cannot set Failed=True condition without the FailureTarget=true condition");
        }
        if (completes || changed("SuccessCriteriaMet"))
            && self.is("Complete")
            && !self.is("SuccessCriteriaMet")
        {
            wrong(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            );
        }
        for other in ["Failed", "FailureTarget"] {
            if self.is("SuccessCriteriaMet") && self.is(other) {
                wrong(&format!("cannot set SuccessCriteriaMet=True and {other}=true conditions"));
            }
        }
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if holds(self.old, kind) && !self.is(kind) {
                wrong(&format!("cannot disable the terminal {kind}=True condition"));
            }
        }
        if holds(self.old, "SuccessCriteriaMet") && !self.is("SuccessCriteriaMet") {
            wrong("cannot disable the SuccessCriteriaMet=True condition");
        }
    }

    fn times(&self, errors: &mut Errors) {
        let start = self.new.at("startTime");
        let end = self.new.at("completionTime");
        let ends = self.condition_changed("Complete") || self.changed("completionTime");
        if ends && end.is_set() && !self.is("Complete") {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.push(end.invalid(why));
        }
        if ends && end.is_absent() && self.is("Complete") {
            errors.push(end.required("completionTime is required for Complete jobs"));
        }
        // Times in UTC and full seconds are in the order of their texts.
        let moved = self.changed("startTime") || self.changed("completionTime");
        if moved && start.is_set() && end.is_set() && end.text() < start.text() {
            errors.push(end.invalid("must be equal to or after `startTime`"));
        }
        let was = &self.old["completionTime"];
        if end.is_set() && !was.is_null() && end.value != was {
            errors.push(end.invalid("field is immutable"));
        }
        let resumes = holds(self.old, "Suspended")
            && items(&self.new.value["conditions"])
                .iter()
                .any(|c| c["type"] == "Suspended" && c["status"] == "False");
        if self.changed("startTime")
            && !resumes
            && !self.old["startTime"].is_null()
            && self.spec["suspend"] != true
        {
            let why = "field is immutable for unsuspended job once set";
            errors.push(start.invalid(why));
        }
    }

    fn finished(&self, errors: &mut Errors) {
        let is = is_finished(self.new.value);
        let becomes = is_finished(self.old) != is;
        let above_zero = |key: &str| self.new.at(key).number().is_some_and(|number| number > 0);
        for key in ["active", "terminating"] {
            if is && (becomes || self.changed(key)) && above_zero(key) {
                let why = format!("{key}>0 is invalid for finished job");
                errors.push(self.new.at(key).invalid(&why));
            }
        }
        let nothing_to_do = self.spec["suspend"] == true && self.spec["completions"] == 0;
        let start = self.new.at("startTime");
        if is && (becomes || self.changed("startTime")) && !nothing_to_do && start.is_absent() {
            errors.push(start.required("startTime is required for finished job"));
        }
        let uncounted = self.new.at("uncountedTerminatedPods");
        let any = ["failed", "succeeded"].iter().any(|list| !uncounted.at(list).is_empty());
        if is && (becomes || self.changed("uncountedTerminatedPods")) && any {
            let why = "must be empty for finished job";
            errors.push(uncounted.invalid_as("UncountedTerminatedPods", why));
        }
        let ready = self.new.at("ready");
        let active = self.new.at("active").number_or_zero();
        if (self.changed("ready") || self.changed("active"))
            && ready.number().is_some_and(|ready| ready > active)
        {
            errors.push(ready.invalid("cannot set more ready pods than active"));
        }
    }

    fn indexes(&self, errors: &mut Errors) {
        let completed = self.new.at("completedIndexes");
        let failed = self.new.at("failedIndexes");
        let completions = self.spec["completions"].as_i64();
        let per_index = !self.spec["backoffLimitPerIndex"].is_null();
        let [completes, fails] = ["completedIndexes", "failedIndexes"].map(|key| self.changed(key));
        for (changed, at, name) in [
            (completes, &completed, "completedIndexes"),
            (fails && per_index, &failed, "failedIndexes"),
        ] {
            if let Some(completions) = completions.filter(|_| changed)
                && let Err(why) = indexes::count(at.text(), completions)
            {
                errors.push(at.invalid(&format!("error parsing {name}: {why}")));
            }
        }
        if completes && !completed.text().is_empty() && self.spec["completionMode"] != "Indexed" {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(completed.invalid(why));
        }
        if fails && !per_index && failed.is_set() {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(failed.invalid(why));
        }
        let shared = completions
            .filter(|_| completes || fails)
            .and_then(|n| indexes::overlap(completed.text(), failed.text(), n));
        if let Some(index) = shared {
            let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(failed.invalid(&why));
        }
    }

    fn counters(&self, errors: &mut Errors) {
        // An elastic job may lose indexes that had succeeded.
        let elastic = self.spec["completionMode"] == "Indexed"
            && self.spec["completions"] == self.spec["parallelism"];
        for (key, may_fall) in [("failed", false), ("succeeded", elastic)] {
            let was = self.old[key].as_i64().unwrap_or(0);
            let is = self.new.at(key);
            if !may_fall && is.number_or_zero() < was {
                let why = format!("cannot decrease the {key} counter");
                errors.push(is.invalid_value(is.number_or_zero(), &why));
            }
        }
    }
}
