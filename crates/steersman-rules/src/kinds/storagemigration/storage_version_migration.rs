//! `StorageVersionMigration`: that all objects of a resource are to be written again, so that they are
//! stored as the newest version says; what is to be migrated stays, and how it ended, too.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::rules::document::{items, text};
use crate::table::Column;

const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";
const RUNNING: &str = "Running";

/// What is said of `StorageVersionMigration`.
pub(super) const KIND: Kind = Kind {
    plural: "storageversionmigrations",
    name: "StorageVersionMigration",
    traits: &[Trait::OnRequest, Trait::VersionedUpdate, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1beta1")
};

const RULES: Rules = Rules {
    status: Some(|| json!({})),
    check,
    change: |migration, old, errors| {
        let kind = "StorageVersionMigrationSpec";
        migration.at("spec").unchanged_as(kind, &old["spec"], errors);
    },
    check_status,
    ..Rules::NONE
};

fn check(migration: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = migration.at("spec");
    let what = spec.at("resource");
    let resource = what.at("resource");
    if resource.require_because("resource is required to be set", errors) {
        resource.follows_at_once(names::dns1035_label, errors);
    }
    let group = what.at("group");
    if !group.is_empty() {
        group.follows_at_once(names::dns1123_subdomain, errors);
    }
}

fn check_status(migration: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let status = migration.at("status");
    let version = status.at("resourceVersion");
    if !version.is_empty() && !is_well_formed(version.text()) {
        let detail = format!("resource version is not well formed: {}", version.text());
        errors.push(version.invalid(&detail));
    }
    let list = status.at("conditions");
    conditions(&list, errors);
    let before = text(&old["status"]["resourceVersion"]);
    if !before.is_empty() && before != version.text() {
        errors.push(version.invalid("field is immutable"));
    }
    let is = |kind: &str| is_true(list.value, kind);
    let was = |kind: &str| is_true(&old["status"]["conditions"], kind);
    if is(SUCCEEDED) && is(FAILED) {
        let detail = "Both success and failed conditions cannot be true at the same time";
        errors.push(list.invalid(detail));
    }
    for (kind, name) in [(SUCCEEDED, "Success"), (FAILED, "Failed")] {
        if was(kind) && !is(kind) {
            let detail = format!("{name} condition cannot be set to false once it is true");
            errors.push(list.invalid(&detail));
        }
    }
}

/// Whether it is a version that an object can have: a whole number above zero.
fn is_well_formed(version: &str) -> bool {
    !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_true(conditions: &Value, kind: &str) -> bool {
    items(conditions).iter().any(|it| it["type"] == kind && it["status"] == "True")
}

fn columns() -> Vec<Column> {
    // Unlike all others, the name is announced as any text.
    let name = Column::field("Name", "metadata.name", "");
    vec![name, Column::text("Resource", resource), Column::text("Status", state)]
}

fn resource(migration: &Value, _: Timestamp) -> Value {
    let what = &migration["spec"]["resource"];
    match (text(&what["resource"]), text(&what["group"])) {
        (resource, "") => resource.into(),
        (resource, group) => format!("{resource}.{group}").into(),
    }
}

fn state(migration: &Value, _: Timestamp) -> Value {
    let conditions = items(&migration["status"]["conditions"]).iter();
    let known = |it: &&Value| [RUNNING, FAILED, SUCCEEDED].contains(&text(&it["type"]));
    let holds = conditions.filter(|it| it["status"] == "True").filter(known);
    holds.map(|it| text(&it["type"])).next_back().unwrap_or("Unknown").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    }

    fn of(group: &str, resource: &str) -> Value {
        json!({"metadata": {"name": "m"},
               "spec": {"resource": {"group": group, "resource": resource}}})
    }

    #[test]
    fn a_migration_is_of_a_resource_and_stays_so() {
        assert!(RULES.validate_create(&of("apps", "deployments")).is_empty());
        assert!(RULES.validate_create(&of("", "pods")).is_empty());
        assert_eq!(
            told(&RULES.validate_create(&of("", ""))),
            ["spec.resource.resource: Required value: resource is required to be set"]
        );
        let wrong = told(&RULES.validate_create(&of("A_b", "Pods")));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let moved = told(&RULES.validate_update(&of("", "pods"), &of("", "secrets")));
        assert!(moved.len() == 1 && moved[0].ends_with("field is immutable"), "{moved:?}");
    }

    #[test]
    fn how_a_migration_ended_stays() {
        let status = |version: &str, conditions: &[(&str, &str)]| {
            let condition = |(kind, status): &(&str, &str)| {
                json!({"type": kind, "status": status, "reason": "R", "message": "",
                       "lastTransitionTime": "2030-01-01T00:00:00Z"})
            };
            let conditions: Vec<Value> = conditions.iter().map(condition).collect();
            json!({"status": {"resourceVersion": version, "conditions": conditions}})
        };
        let check = |old: &Value, new: &Value| {
            let errors = told(&RULES.validate_status_update(old, new));
            let last = |text: String| text.rsplit(": ").next().unwrap_or_default().to_owned();
            errors.into_iter().map(last).collect::<Vec<String>>()
        };
        let none = status("", &[]);
        assert_eq!(check(&none, &status("7", &[(SUCCEEDED, "True")])), [""; 0]);
        assert_eq!(check(&none, &status("07", &[])), ["07"]);
        assert_eq!(check(&status("7", &[]), &status("8", &[])), ["field is immutable"]);
        let both = status("7", &[(SUCCEEDED, "True"), (FAILED, "True")]);
        let detail = "Both success and failed conditions cannot be true at the same time";
        assert_eq!(check(&none, &both), [detail]);
        let ended = status("7", &[(FAILED, "True")]);
        let detail = "Failed condition cannot be set to false once it is true";
        assert_eq!(check(&ended, &status("7", &[(FAILED, "False")])), [detail]);
    }

    #[test]
    fn the_last_condition_that_holds_is_shown() {
        let shown = |conditions: Value| {
            let object = json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}},
                                "status": {"conditions": conditions}});
            [resource, state].map(|cell| cell(&object, Timestamp::UNIX_EPOCH))
        };
        assert_eq!(shown(json!([])), ["deployments.apps", "Unknown"]);
        let conditions = json!([{"type": RUNNING, "status": "False"},
                                {"type": SUCCEEDED, "status": "True"}]);
        assert_eq!(shown(conditions), ["deployments.apps", "Succeeded"]);
    }
}
