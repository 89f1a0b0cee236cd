//! Deployments: how pods of one version are replaced by those of the next.

use serde_json::{Value, json};

use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled};
use crate::kinds::kind::{self, Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{
    fill, fill_text, keep_annotation, remove, same, set, text, within, within_existing,
};
use crate::rules::rollout::{Counts, amount, at_most_all, int_or_percent};
use crate::strconv::{NumberError, parse_int};
use crate::table::template::{containers_and_selector, ready_of_wanted};
use crate::table::{Column, age};

/// What is said of Deployments.
pub(super) const KIND: Kind = Kind {
    plural: "deployments",
    name: "Deployment",
    short_names: &["deploy"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    status_metadata: kind::DEPLOYMENT_METADATA,
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({})),
    create: |deployment| disabled::drop_of_template(deployment, "/spec/template", &Value::Null),
    keep: |old, deployment| disabled::drop_of_template(deployment, "/spec/template", old),
    check,
    change: |deployment, old, errors| {
        let before = &old["spec"]["selector"];
        deployment.at("spec.selector").unchanged_as("*raw", before, errors);
    },
    check_status: |deployment, old, errors| COUNTS.check(deployment, old, errors),
    // Who writes the status does not say where to go back to.
    prepare_status: |old, deployment| keep_annotation(old, deployment, ROLLBACK_TO),
    unreadable: |deployment| {
        let why = rollback_to(deployment)?.err()?;
        let given = text(&deployment["metadata"]["annotations"][ROLLBACK_TO]);
        Some(format!("failed to parse annotation[{ROLLBACK_TO}]={given} as int64: {why}"))
    },
    // Annotations of a Deployment are copied to its ReplicaSets, so they count.
    is_new_generation: |old, new| {
        !same(&old["metadata"]["annotations"], &new["metadata"]["annotations"])
    },
    warn: template::warnings_of_replicas,
    ..Rules::NONE
};

/// The revision to go back to, which was a field of the spec once and is one to Kubernetes still.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// How Deployments and ReplicaSets are named in complaints about their templates.
pub(super) const NAMES: template::Kind =
    template::Kind { of_selector: "deployment", of_deadline: "ReplicaSet" };

const COUNTS: Counts = Counts {
    numbers: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
    available: "cannot be greater than readyReplicas",
};

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::text("Ready", ready_of_wanted),
        Column::number("Up-to-date", "status.updatedReplicas").called_text(),
        Column::number("Available", "status.availableReplicas").called_text(),
        age(),
    ];
    columns.extend(containers_and_selector());
    columns
}

fn default(deployment: &mut Value) {
    default_rollback(deployment);
    within(deployment, "spec", |spec| {
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        within(spec, "strategy", |strategy| {
            fill_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                within(strategy, "rollingUpdate", |rolling| {
                    fill(rolling, "maxUnavailable", "25%");
                    fill(rolling, "maxSurge", "25%");
                });
            }
        });
        within(spec, "template", defaults::template);
    });
}

/// The revision to go back to, if there is one.
fn rollback_to(deployment: &Value) -> Option<Result<i64, NumberError>> {
    let revision = text(&deployment["metadata"]["annotations"][ROLLBACK_TO]);
    (!revision.is_empty()).then(|| parse_int(revision))
}

/// Writes the revision to go back to as a number is written. An empty one is none.
fn default_rollback(deployment: &mut Value) {
    let revision = rollback_to(deployment).and_then(Result::ok);
    within_existing(deployment, "metadata", |metadata| {
        within_existing(metadata, "annotations", |annotations| match revision {
            Some(revision) => set(annotations, ROLLBACK_TO, revision.to_string()),
            None if annotations[ROLLBACK_TO] == "" => drop(remove(annotations, ROLLBACK_TO)),
            None => {}
        });
    });
}

fn check(deployment: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = deployment.at("spec");
    spec.at("replicas").not_negative(errors);
    template::validate(&spec, NAMES, errors);
    strategy(&spec.at("strategy"), errors);
    let ready = spec.at("minReadySeconds");
    let deadline = spec.at("progressDeadlineSeconds");
    ready.not_negative(errors);
    spec.at("revisionHistoryLimit").not_negative(errors);
    if let Some(Ok(revision @ ..0)) = rollback_to(deployment.value) {
        let why = "must be greater than or equal to 0";
        errors.push(spec.at("rollback.version").invalid_value(revision, why));
    }
    deadline.not_negative(errors);
    if deadline.number().is_some_and(|seconds| seconds <= ready.number_or_zero()) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
}

fn strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(rolling.forbidden(why));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => {
            let known = ["Recreate", "RollingUpdate"];
            errors.push(strategy.not_supported_as("DeploymentStrategy", &known));
        }
    }
}

fn rolling_update(rolling: &At<'_, '_>, errors: &mut Errors) {
    let unavailable = rolling.at("maxUnavailable");
    let surge = rolling.at("maxSurge");
    int_or_percent(&unavailable, errors);
    int_or_percent(&surge, errors);
    if amount(&unavailable) == 0 && amount(&surge) == 0 {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    at_most_all(&unavailable, errors);
}
