//! Whose turn it is, and what is said of how it went.

use std::sync::Arc;

use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::plan::{End, Served, Step, ended, running, served, step, stopped};
use crate::discovery::test_resource;

const BORN: &str = "2030-01-01T00:00:00Z";

fn migration(name: &str, conditions: &[(&str, &str)]) -> Arc<StorageVersionMigration> {
    born(name, BORN, conditions)
}

fn born(name: &str, at: &str, conditions: &[(&str, &str)]) -> Arc<StorageVersionMigration> {
    let condition = |(kind, status): &(&str, &str)| {
        json!({"type": kind, "status": status, "reason": "R", "message": "",
               "lastTransitionTime": BORN})
    };
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    let object = json!({
        "metadata": {"name": name, "creationTimestamp": at},
        "spec": {"resource": {"group": "example.com", "resource": "boats"}},
        "status": {"conditions": conditions},
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

fn now() -> Time {
    Time("2030-01-01T00:00:30Z".parse().unwrap())
}

#[test]
fn of_a_resource_one_migration_runs_at_a_time_the_oldest_first() {
    let (a, b) = (migration("a", &[]), migration("b", &[]));
    let older = born("z", "2029-12-31T00:00:00Z", &[]);
    let runs = migration("r", &[("Running", "True")]);
    let ended = migration("e", &[("Running", "True"), ("Succeeded", "True")]);
    let over = migration("o", &[("Running", "False"), ("Failed", "True")]);
    let step = |one: &Arc<StorageVersionMigration>, all: &[&Arc<StorageVersionMigration>]| {
        let all: Vec<_> = all.iter().map(|it| Arc::clone(it)).collect();
        step(one, &all)
    };
    assert_eq!(step(&a, &[&a, &b]), Step::Promote);
    assert_eq!(step(&b, &[&a, &b]), Step::Wait);
    assert_eq!(step(&a, &[&a, &older]), Step::Wait);
    assert_eq!(step(&older, &[&a, &older]), Step::Promote);
    assert_eq!(step(&a, &[&a, &runs]), Step::Wait);
    assert_eq!(step(&runs, &[&a, &runs]), Step::Wait);
    assert_eq!(step(&ended, &[&a, &ended]), Step::CleanUp);
    assert_eq!(step(&a, &[&a, &ended, &over]), Step::Promote);
    assert_eq!(step(&over, &[&over]), Step::Wait);
    let mut other = StorageVersionMigration::clone(&runs);
    other.spec.as_mut().unwrap().resource.resource = "ships".into();
    assert_eq!(step(&a, &[&a, &Arc::new(other)]), Step::Promote, "another resource");
}

#[test]
fn conditions_are_those_of_kubernetes() {
    let told = |migration: &StorageVersionMigration| {
        let status = migration.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let line = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message)
        };
        conditions.iter().map(line).collect::<Vec<_>>()
    };
    let first = running(&migration("a", &[]), &now());
    assert_eq!(told(&first), ["Running=True MigrationRunning: The migration is running"]);
    assert_eq!(running(&first, &now()), first, "it is said once");
    let well = ended(&first, End::Success, &now());
    assert_eq!(told(&well)[1], "Succeeded=True StorageVersionMigrationSucceeded: ");
    let badly = ended(&first, End::Failure("no".into()), &now());
    assert_eq!(told(&badly)[1], "Failed=True StorageVersionMigrationFailed: no");
    let over = stopped(&well, &now());
    assert_eq!(told(&over)[0], "Running=False MigrationCompleted: Migration completed");
    assert_eq!(told(&over)[1], told(&well)[1]);
}

#[test]
fn a_resource_must_come_within_a_minute_and_be_writable() {
    let migration = migration("a", &[]);
    let at = |seconds: i64| {
        let born: jiff::Timestamp = BORN.parse().unwrap();
        born + jiff::SignedDuration::from_secs(seconds)
    };
    assert_eq!(served(&migration, None, at(59)), Served::NotYet);
    let never = Served::Never("resource does not exist in discovery".into());
    assert_eq!(served(&migration, None, at(60)), never);
    // One that has no `update`.
    let resource = test_resource("example.com/v1", "Boat", "boats");
    let reason = "resource \"example.com/v1, Resource=boats\" does not support discovery operations: \
                  [update patch list]";
    assert_eq!(served(&migration, Some(&resource), at(0)), Served::Never(reason.into()));
}
