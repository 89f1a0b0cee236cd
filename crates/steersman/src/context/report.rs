//! What a reconcile reports of its object: a status, and conditions in it.
//!
//! Collected during the reconcile and merged into one status at its end. Conditions are merged
//! as JSON into whatever list the status has, so that no type needs to know of them, and the
//! conditions of others are left as they are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

use crate::conditions::NewCondition;
use crate::merge_diff::merge_diff;

/// What was reported so far.
#[derive(Clone, Default)]
pub(crate) struct Report {
    status: Option<Value>,
    conditions: Vec<ConditionChange>,
}

#[derive(Clone)]
enum ConditionChange {
    Set(NewCondition),
    Remove(String),
}

/// The object that a report is about.
pub(super) struct Reported<'a> {
    /// The status it has.
    pub(super) status: &'a Value,
    pub(super) generation: Option<i64>,
    pub(super) now: Time,
}

impl Report {
    pub(super) fn is_empty(&self) -> bool {
        self.status.is_none() && self.conditions.is_empty()
    }

    /// Makes this what was reported after something else.
    pub(super) fn come_after(&mut self, earlier: Self) {
        let Self { status, conditions } = earlier;
        if self.status.is_none() {
            self.status = status;
        }
        self.conditions.splice(0..0, conditions);
    }

    pub(super) fn set_status(&mut self, status: Value) {
        self.status = Some(status);
    }

    /// The status reported so far.
    pub(super) fn status(&self) -> Option<&Value> {
        self.status.as_ref()
    }

    /// Changes the status as the step from one state of it to another does.
    pub(super) fn change_status(&mut self, current: &Value, before: &Value, after: &Value) {
        let status = self.status.get_or_insert_with(|| current.clone());
        if let Some(patch) = merge_diff(before, after) {
            json_patch::merge(status, &patch);
        }
    }

    pub(super) fn set_condition(&mut self, condition: NewCondition) {
        self.conditions.push(ConditionChange::Set(condition));
    }

    pub(super) fn remove_condition(&mut self, type_: &str) {
        self.conditions.push(ConditionChange::Remove(type_.to_owned()));
    }

    /// The status that the object is to have; `None` if nothing was reported.
    pub(super) fn wanted(self, object: &Reported<'_>) -> Option<Value> {
        if self.conditions.is_empty() {
            return self.status;
        }
        let mut wanted = self.status.unwrap_or_else(|| object.status.clone());
        let own = wanted["conditions"].as_array().filter(|own| !own.is_empty());
        let base = own.or_else(|| object.status["conditions"].as_array());
        let mut conditions = base.cloned().unwrap_or_default();
        for change in self.conditions {
            match change {
                ConditionChange::Set(condition) => set(&mut conditions, condition, object),
                ConditionChange::Remove(type_) => conditions.retain(|old| old["type"] != type_),
            }
        }
        if !wanted.is_object() {
            wanted = Value::Object(Map::new());
        }
        wanted["conditions"] = Value::Array(conditions);
        Some(wanted)
    }
}

/// Sets a condition in a list of them. What else a condition of the kind has stays in it.
fn set(conditions: &mut Vec<Value>, new: NewCondition, object: &Reported<'_>) {
    let new = new.or_observed(object.generation).since(object.now.clone());
    let fields = json!(new);
    let Some(old) = conditions.iter_mut().find(|old| old["type"] == *new.type_) else {
        return conditions.push(fields);
    };
    let since = old["lastTransitionTime"].clone();
    let same = old["status"] == *new.status && !since.is_null();
    json_patch::merge(old, &fields);
    if same {
        old["lastTransitionTime"] = since;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::ConditionType;

    const READY: ConditionType = ConditionType::new("Ready");

    fn wanted(report: Report, status: &Value) -> Option<Value> {
        let now = Time("2030-01-01T00:00:00Z".parse().unwrap());
        report.wanted(&Reported { status, generation: Some(3), now })
    }

    fn condition(status: &str, since: &str) -> Value {
        json!({"type": "Ready", "status": status, "reason": "R", "message": "m",
            "observedGeneration": 3, "lastTransitionTime": since})
    }

    #[test]
    fn a_report_of_nothing_is_none() {
        assert_eq!(wanted(Report::default(), &json!({"a": 1})), None);
    }

    #[test]
    fn conditions_alone_leave_the_rest_of_the_status() {
        let mut report = Report::default();
        report.set_condition(READY.yes("R", "m"));
        let status = json!({"replicas": 2, "conditions": [{"type": "Other", "status": "x"}]});
        let conditions =
            json!([{"type": "Other", "status": "x"}, condition("True", "2030-01-01T00:00:00Z")]);
        let expected = json!({"replicas": 2, "conditions": conditions});
        assert_eq!(wanted(report, &status), Some(expected));
    }

    #[test]
    fn a_status_without_conditions_keeps_those_that_are_there_and_since_when() {
        let mut report = Report::default();
        report.set_condition(READY.no("R", "m"));
        report.set_condition(READY.yes("R", "m"));
        report.set_status(json!({"replicas": 3, "conditions": []}));
        let mut there = condition("True", "2029-01-01T00:00:00Z");
        there["lastUpdateTime"] = json!("of another sort");
        there["message"] = json!("old");
        let status = wanted(report, &json!({"conditions": [there.clone()]})).unwrap();
        there["message"] = json!("m");
        there["lastTransitionTime"] = json!("2030-01-01T00:00:00Z");
        assert_eq!(status, json!({"replicas": 3, "conditions": [there]}), "it was no meanwhile");
    }

    #[test]
    fn what_is_true_still_is_so_since_it_was() {
        let mut report = Report::default();
        report.set_condition(READY.yes("R", "m"));
        let there = json!({"conditions": [condition("True", "2029-01-01T00:00:00Z")]});
        assert_eq!(wanted(report, &there), Some(there));
    }

    #[test]
    fn conditions_can_be_removed_and_are_made_where_there_is_no_status() {
        let mut report = Report::default();
        report.remove_condition("Ready");
        let there = json!({"conditions": [condition("True", "2029-01-01T00:00:00Z")]});
        assert_eq!(wanted(report, &there), Some(json!({"conditions": []})));
        let mut report = Report::default();
        report.set_condition(READY.yes("R", "m"));
        let made = wanted(report, &Value::Null).unwrap();
        assert_eq!(made["conditions"][0]["status"], "True");
    }

    #[test]
    fn a_change_of_known_fields_keeps_the_unknown_ones() {
        let mut report = Report::default();
        let current = json!({"known": 1, "unknown": 2});
        report.change_status(&current, &json!({"known": 1}), &json!({"known": 5}));
        report.change_status(&current, &json!({"known": 5}), &json!({"known": 5, "more": 1}));
        let expected = json!({"known": 5, "unknown": 2, "more": 1});
        assert_eq!(wanted(report, &current), Some(expected));
    }
}
