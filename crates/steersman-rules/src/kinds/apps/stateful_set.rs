//! StatefulSets: pods with a name and volumes of their own, one after the other.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::core::persistent_volume_claim as claim;
use crate::kinds::core::pod::template;
use crate::kinds::core::pod::{defaults, disabled};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{
    each, fill, fill_text, items, remove, same, set, text, within, within_existing,
};
use crate::rules::rollout::{Counts, amount, at_most_all, int_or_percent};
use crate::table::template::{containers, ready_of_wanted};
use crate::table::{Column, age};

/// What is said of StatefulSets.
pub(super) const KIND: Kind = Kind {
    plural: "statefulsets",
    name: "StatefulSet",
    short_names: &["sts"],
    traits: &[Trait::All, Trait::Generation, Trait::Scale, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({"replicas": 0, "availableReplicas": 0})),
    create: |set| {
        disabled::drop_of_template(set, "/spec/template", &Value::Null);
        drop_max_unavailable(set);
    },
    keep: |old, set| {
        disabled::drop_of_template(set, "/spec/template", old);
        if old.pointer(MAX_UNAVAILABLE).is_none_or(Value::is_null) {
            drop_max_unavailable(set);
        }
    },
    check,
    change: |set, old, errors| {
        let spec = set.at("spec");
        if !same(&frozen(&old["spec"]), &frozen(spec.value)) {
            let why = "updates to statefulset spec for fields other than 'replicas', \
                       'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
                       'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
                       forbidden";
            errors.push(spec.forbidden(why));
        }
    },
    check_status: |set, old, errors| COUNTS.check(set, old, errors),
    warn,
    ..Rules::NONE
};

const NAMES: template::Kind =
    template::Kind { of_selector: "statefulset", of_deadline: "StatefulSet" };

const COUNTS: Counts = Counts {
    numbers: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    parts: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    available: "cannot be greater than status.readyReplicas",
};

/// A field whose gate, `MaxUnavailableStatefulSet`, is off: it is dropped unless it was there.
const MAX_UNAVAILABLE: &str = "/spec/updateStrategy/rollingUpdate/maxUnavailable";

fn drop_max_unavailable(set: &mut Value) {
    within_existing(set, "spec", |spec| {
        within_existing(spec, "updateStrategy", |strategy| {
            within_existing(strategy, "rollingUpdate", |rolling| {
                drop(remove(rolling, "maxUnavailable"));
            });
        });
    });
}

/// What of a stateful set may change once it exists.
const MUTABLE: &[&str] = &[
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::text("Ready", ready_of_wanted), age()];
    columns.extend(containers());
    columns
}

fn default(set: &mut Value) {
    within(set, "spec", |spec| {
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill_text(spec, "podManagementPolicy", "OrderedReady");
        within(spec, "updateStrategy", |strategy| {
            if text(&strategy["type"]).is_empty() {
                fill_text(strategy, "type", "RollingUpdate");
                fill(strategy, "rollingUpdate", json!({}));
            }
            if strategy["type"] == "RollingUpdate" {
                within_existing(strategy, "rollingUpdate", |rolling| {
                    fill(rolling, "partition", 0);
                });
            }
        });
        within(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            fill_text(policy, "whenDeleted", "Retain");
            fill_text(policy, "whenScaled", "Retain");
        });
        each(spec, "volumeClaimTemplates", |claim| {
            fill_text(claim, "apiVersion", "v1");
            fill_text(claim, "kind", "PersistentVolumeClaim");
            within(claim, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
            within(claim, "status", |status| fill_text(status, "phase", "Pending"));
        });
        within(spec, "template", defaults::template);
    });
}

/// The claims and the service of sets made before today's rules are let be.
fn check(set: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = set.at("spec");
    policies(&spec, errors);
    if old.is_null() {
        for claim in spec.each("volumeClaimTemplates") {
            claim::check_spec(&claim.at("spec"), &Value::Null, errors);
        }
    }
    validate(&spec, old, errors);
}

fn warn(set: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = template::warnings_of(set, "spec.template", old);
    let root = At::root(set);
    for template in root.each("spec.volumeClaimTemplates") {
        // The paths are those of Kubernetes.
        let place = if old.is_none() { template } else { template.named("Spec") };
        claim::warn_of_spec(&place.with(&template.value["spec"]), &mut found);
    }
    if set["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        let why = "spec.revisionHistoryLimit: a negative value retains all historical \
                   revisions; a value >= 0 is recommended";
        found.push(why.to_owned());
    }
    found
}

fn validate(spec: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    spec.at("replicas").not_negative(errors);
    spec.at("minReadySeconds").not_negative(errors);
    spec.at("ordinals.start").not_negative(errors);
    if old.is_null() {
        spec.at("serviceName").may_follow(names::dns1123_label, errors);
    }
    let shaped = shaped(spec.value);
    let shaped = At::new(shaped.as_ref().unwrap_or(spec.value), "spec");
    if template::selects(&shaped, NAMES, errors) {
        template::validate_template(&shaped.at("template"), errors);
        // Of a set, Kubernetes looks at these twice.
        template::validate_metadata(&shaped.at("template"), errors);
    } else {
        errors.push(unexplained(&spec.at("selector")));
    }
    template::always_restarts(&shaped.at("template"), NAMES, errors);
}

/// Of a set, Kubernetes does not say what is wrong with the whole selector.
fn unexplained(selector: &At<'_, '_>) -> FieldError {
    let error = selector.invalid_as("raw", "");
    let text = error.text.trim_end_matches(": ").to_owned();
    FieldError { text, ..error }
}

fn policies(spec: &At<'_, '_>, errors: &mut Errors) {
    let management = spec.at("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&management.text()) {
        errors.push(management.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    let strategy = spec.at("updateStrategy");
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "RollingUpdate" => rolling_update(&rolling, errors),
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(strategy.invalid_as("StatefulSetUpdateStrategy", why));
        }
    }
    for key in ["whenDeleted", "whenScaled"] {
        let policy = spec.at("persistentVolumeClaimRetentionPolicy");
        if policy.is_set() && !["Retain", "Delete"].contains(&policy.at(key).text()) {
            errors.push(policy.at(key).not_supported(&["Retain", "Delete"]));
        }
    }
}

fn rolling_update(rolling: &At<'_, '_>, errors: &mut Errors) {
    rolling.at("partition").not_negative(errors);
    let unavailable = rolling.at("maxUnavailable");
    if unavailable.is_set() {
        int_or_percent(&unavailable, errors);
        if amount(&unavailable) == 0 {
            errors.push(unavailable.invalid("cannot be 0"));
        }
        at_most_all(&unavailable, errors);
    }
}

/// The spec with a template as its pods will have it: the set gives them names, and containers
/// may mount the claims of the set as if they were volumes. `None` if that changes nothing.
fn shaped(spec: &Value) -> Option<Value> {
    let pod = &spec["template"]["spec"];
    let named = !text(&pod["hostname"]).is_empty() || !text(&pod["subdomain"]).is_empty();
    let claims = items(&spec["volumeClaimTemplates"]);
    if claims.is_empty() && !named {
        return None;
    }
    // Several claims of one name are one volume.
    let mut taken = HashSet::new();
    let names = claims.iter().map(|claim| text(&claim["metadata"]["name"]));
    let names: Vec<&str> = names.filter(|name| taken.insert(*name)).collect();
    let mut shaped = spec.clone();
    within(&mut shaped, "template", |template| {
        within(template, "spec", |pod| {
            remove(pod, "hostname");
            remove(pod, "subdomain");
            let mut volumes: Vec<Value> = names
                .iter()
                .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
                .collect();
            let own = items(&pod["volumes"]).iter();
            volumes.extend(own.filter(|volume| !taken.contains(text(&volume["name"]))).cloned());
            set(pod, "volumes", volumes);
        });
    });
    Some(shaped)
}

fn frozen(spec: &Value) -> Value {
    let fields = spec.as_object().into_iter().flatten();
    let kept = fields.filter(|(key, _)| !MUTABLE.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}
