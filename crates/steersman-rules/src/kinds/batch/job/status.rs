//! The status of a job, whoever manages it.
//!
//! Most rules are about a change: a status that was already wrong may stay so.

use std::collections::HashSet;

use serde_json::Value;

use super::failure_policy::without_value;
use super::indexes;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, same};

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
    change.complete(&mut errors);
    change.completion_time(&mut errors);
    change.criteria(&mut errors);
    change.finished(&mut errors);
    change.indexes(&mut errors);
    change.pods(&mut errors);
    change.success(&mut errors);
    change.kept(&mut errors);
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

/// The rules in the order of Kubernetes.
impl Change<'_> {
    fn changed(&self, key: &str) -> bool {
        !same(&self.old[key], &self.new.value[key])
    }

    fn condition_changed(&self, kind: &str) -> bool {
        self.had(kind) != self.is(kind)
    }

    fn is(&self, kind: &str) -> bool {
        holds(self.new.value, kind)
    }

    fn had(&self, kind: &str) -> bool {
        holds(self.old, kind)
    }

    /// Complains of the conditions as a whole.
    fn contradicts(&self, why: &str, errors: &mut Errors) {
        errors.push(without_value(self.new.at("conditions").path(), why));
    }

    fn complete(&self, errors: &mut Errors) {
        for other in ["Failed", "FailureTarget"] {
            let changed = self.condition_changed("Complete") || self.condition_changed(other);
            if changed && self.is("Complete") && self.is(other) {
                let why = format!("cannot set Complete=True and {other}=true conditions");
                self.contradicts(&why, errors);
            }
        }
    }

    fn completion_time(&self, errors: &mut Errors) {
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
    }

    fn criteria(&self, errors: &mut Errors) {
        let fails = self.condition_changed("Failed") || self.changed("failedIndexes");
        if fails && self.is("Failed") && !self.is("FailureTarget") {
            let why = "cannot set Failed=True condition without the FailureTarget=true condition";
            self.contradicts(why, errors);
        }
        let completes =
            self.condition_changed("Complete") || self.condition_changed("SuccessCriteriaMet");
        if completes && self.is("Complete") && !self.is("SuccessCriteriaMet") {
            let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true \
                       condition";
            self.contradicts(why, errors);
        }
    }

    fn becomes_finished(&self) -> bool {
        is_finished(self.old) != is_finished(self.new.value)
    }

    /// Complains of pods that a finished job still has.
    fn none_left(&self, key: &str, errors: &mut Errors) {
        let pods = self.new.at(key);
        if is_finished(self.new.value)
            && (self.becomes_finished() || self.changed(key))
            && pods.number_or_zero() > 0
        {
            errors.push(pods.invalid(&format!("{key}>0 is invalid for finished job")));
        }
    }

    fn finished(&self, errors: &mut Errors) {
        self.none_left("active", errors);
        let is = is_finished(self.new.value);
        let becomes = self.becomes_finished();
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

    fn pods(&self, errors: &mut Errors) {
        self.none_left("terminating", errors);
        let ready = self.new.at("ready");
        let active = self.new.at("active").number_or_zero();
        if (self.changed("ready") || self.changed("active"))
            && ready.number().is_some_and(|ready| ready > active)
        {
            errors.push(ready.invalid("cannot set more ready pods than active"));
        }
    }

    fn success(&self, errors: &mut Errors) {
        for other in ["Failed", "FailureTarget"] {
            if self.is("SuccessCriteriaMet") && self.is(other) {
                let why = format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
                self.contradicts(&why, errors);
            }
        }
        let has_policy = !self.spec["successPolicy"].is_null();
        if has_policy && self.is("Complete") && !self.is("SuccessCriteriaMet") {
            let why = "cannot set Complete=True for Job with SuccessPolicy unless \
                       SuccessCriteriaMet=True";
            self.contradicts(why, errors);
        }
    }

    /// What was said before and may not be taken back.
    fn kept(&self, errors: &mut Errors) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if self.had(kind) && !self.is(kind) {
                let why = format!("cannot disable the terminal {kind}=True condition");
                self.contradicts(&why, errors);
            }
        }
        self.counters(errors);
        self.times(errors);
        if self.had("SuccessCriteriaMet") && !self.is("SuccessCriteriaMet") {
            self.contradicts("cannot disable the SuccessCriteriaMet=True condition", errors);
        }
        if self.had("Complete") && !self.had("SuccessCriteriaMet") && self.is("SuccessCriteriaMet")
        {
            let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true \
                       conditions";
            self.contradicts(why, errors);
        }
    }

    fn times(&self, errors: &mut Errors) {
        let end = self.new.at("completionTime");
        let was = &self.old["completionTime"];
        if end.is_set() && !was.is_null() && end.value != was {
            errors.push(end.invalid("field is immutable"));
        }
        let resumes = self.had("Suspended")
            && items(&self.new.value["conditions"])
                .iter()
                .any(|c| c["type"] == "Suspended" && c["status"] == "False");
        let moves = self.changed("startTime") && !self.old["startTime"].is_null();
        if moves && !resumes && self.spec["suspend"] != true {
            let why = "field is immutable for unsuspended job once set";
            errors.push(self.new.at("startTime").invalid(why));
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
