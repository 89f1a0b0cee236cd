//! DaemonSets: a pod on every node that fits.

use serde_json::{Value, json};

use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled};
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, same, set, text, within};
use crate::rules::label_selector::{label_selector, matches};
use crate::rules::rollout::{Counts, amount, at_most_all, int_or_percent};
use crate::strconv::parse_int;
use crate::table::cells::labels;
use crate::table::template::containers_and_selector;
use crate::table::{Column, age};

/// What is said of DaemonSets.
pub(super) const KIND: Kind = Kind {
    plural: "daemonsets",
    name: "DaemonSet",
    short_names: &["ds"],
    traits: &[Trait::All, Trait::Generation, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| {
        json!({
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        })
    }),
    create: |set| {
        disabled::drop_of_template(set, "/spec/template", &Value::Null);
        let given = template_generation(set).filter(|generation| *generation >= 1);
        set_template_generation(set, given.unwrap_or(1));
    },
    keep: |old, new| {
        disabled::drop_of_template(new, "/spec/template", old);
        // Only the whole template can be compared.
        default(new);
        let before = template_generation(old).unwrap_or(1);
        let changed = !same(&old["spec"]["template"], &new["spec"]["template"]);
        set_template_generation(new, before + i64::from(changed));
    },
    check,
    check_status: |set, old, errors| COUNTS.check(set, old, errors),
    // Who writes the status does not count the versions of the template.
    prepare_status: |old, new| set_template_generation(new, template_generation(old).unwrap_or(1)),
    unreadable: |set| {
        let generation = set["metadata"]["annotations"][TEMPLATE_GENERATION].as_str()?;
        parse_int(generation).err().map(|why| why.to_string())
    },
    warn: |set, old| {
        let same = |old| template_generation(old) == template_generation(set);
        if old.is_some_and(same) {
            Vec::new()
        } else {
            template::warnings_of(set, "spec.template", None)
        }
    },
    annotated_fields: &[TEMPLATE_GENERATION],
    ..Rules::NONE
};

const NAMES: template::Kind = template::Kind { of_selector: "daemonset", of_deadline: "DaemonSet" };

/// Counts the versions of the template, for clients older than `ControllerRevisions`.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

const COUNTS: Counts = Counts {
    numbers: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    parts: &[],
    available: "",
};

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::number("Desired", "status.desiredNumberScheduled"),
        Column::number("Current", "status.currentNumberScheduled"),
        Column::number("Ready", "status.numberReady"),
        Column::number("Up-to-date", "status.updatedNumberScheduled"),
        Column::number("Available", "status.numberAvailable"),
        Column::text("Node Selector", |set, _| {
            labels(&set["spec"]["template"]["spec"]["nodeSelector"]).into()
        }),
        age(),
    ];
    columns.extend(containers_and_selector());
    columns
}

fn default(set: &mut Value) {
    if template_generation(set).is_none() {
        set_template_generation(set, 1);
    }
    within(set, "spec", |spec| {
        fill(spec, "revisionHistoryLimit", 10);
        within(spec, "updateStrategy", |strategy| {
            fill_text(strategy, "type", "RollingUpdate");
            if strategy["type"] == "RollingUpdate" {
                within(strategy, "rollingUpdate", |rolling| {
                    fill(rolling, "maxUnavailable", 1);
                    fill(rolling, "maxSurge", 0);
                });
            }
        });
        within(spec, "template", defaults::template);
    });
}

fn check(set: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = set.at("spec");
    let selector = spec.at("selector");
    if !old.is_null() {
        selector.unchanged_as("*raw", &old["spec"]["selector"], errors);
    }
    let before = errors.len();
    label_selector(&selector, errors);
    // What a selector means that is not sound nobody can tell.
    if errors.len() == before {
        let labels = template::labels(spec.value);
        let matches = selector.is_set() && matches(selector.value, labels);
        template::matching(&spec, matches, errors);
    }
    template::not_everything(&selector, NAMES, errors);
    template::validate_template(&spec.at("template"), errors);
    template::always_restarts(&spec.at("template"), NAMES, errors);
    spec.at("minReadySeconds").not_negative(errors);
    update_strategy(&spec.at("updateStrategy"), errors);
    spec.at("revisionHistoryLimit").not_negative(errors);
}

fn template_generation(set: &Value) -> Option<i64> {
    text(&set["metadata"]["annotations"][TEMPLATE_GENERATION]).parse().ok()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    within(object, "metadata", |metadata| {
        within(metadata, "annotations", |annotations| {
            set(annotations, TEMPLATE_GENERATION, generation.to_string());
        });
    });
}

fn update_strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.at("rollingUpdate");
            let unavailable = rolling.at("maxUnavailable");
            let surge = rolling.at("maxSurge");
            int_or_percent(&unavailable, errors);
            int_or_percent(&surge, errors);
            at_most_all(&unavailable, errors);
            at_most_all(&surge, errors);
            match (amount(&unavailable), amount(&surge)) {
                (0, 0) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                (1.., 1..) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(surge.invalid(why));
                }
                _ => {}
            }
        }
        _ => {
            let known = ["RollingUpdate", "OnDelete"];
            errors.push(strategy.not_supported_as("DaemonSetUpdateStrategy", &known));
        }
    }
}
