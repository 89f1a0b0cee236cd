//! Nodes register themselves, with a status of their own.

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::rules::Strategy;
use crate::rules::address::{self, Cidr};
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, items, text, within_existing};
use crate::rules::resource_name::check_amount;

const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The strategy of nodes.
#[derive(Debug)]
pub(in crate::kinds) struct Node;

impl Strategy for Node {
    /// A node that does not say what it can give away gives away what it has; the two fields
    /// for the addresses of its pods say the same.
    fn default(&self, node: &mut Value) {
        within_existing(node, "status", |status| {
            if !status["capacity"].is_null() {
                let capacity = status["capacity"].clone();
                fill(status, "allocatable", capacity);
            }
        });
        within_existing(node, "spec", |spec| {
            let (one, many) = (spec["podCIDR"].clone(), spec["podCIDRs"].clone());
            if !text(&one).is_empty() && is_empty(&many) {
                fill(spec, "podCIDRs", vec![one]);
            } else if text(&one).is_empty() && !is_empty(&many) {
                fill(spec, "podCIDR", many[0].clone());
            }
        });
    }

    fn validate_create(&self, node: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = At::root(node);
        taints(&root, &mut errors);
        resources(&root, &mut errors);
        let spec = root.at("spec");
        for range in spec.each("podCIDRs") {
            address::strict_cidr(&range, range.text(), &mut errors);
        }
        let family = |range: &Value| Cidr::parse(text(range)).map(|cidr| cidr.ip.is_ipv4());
        let same = match items(&spec.value["podCIDRs"]) {
            [] | [_] => false,
            [one, other] => family(one) == family(other),
            _ => true,
        };
        if same {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.push(spec.at("podCIDRs").invalid(detail));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = At::root(new);
        taints(&root, &mut errors);
        resources(&root, &mut errors);
        addresses(&root, &mut errors);
        let spec = root.at("spec");
        let ranges = spec.at("podCIDRs");
        if !is_empty(&old["spec"]["podCIDRs"]) && *ranges.value != old["spec"]["podCIDRs"] {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(ranges.forbidden(detail));
        }
        let (before, after) = (text(&old["spec"]["providerID"]), text(&new["spec"]["providerID"]));
        if !before.is_empty() && before != after {
            let how = if after.is_empty() { "cleared" } else { "modified" };
            let detail = format!("field cannot be {how} once set");
            errors.push(FieldError::invalid("spec.providerID", &Value::Null, &detail));
        }
        errors
    }

    fn validate_status_update(&self, _old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let root = At::root(new);
        resources(&root, &mut errors);
        addresses(&root, &mut errors);
        errors
    }

    fn prepare_status_update(&self, _old: &Value, new: &mut Value) {
        self.default(new);
    }

    fn warnings(&self, node: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !node["spec"]["configSource"].is_null() {
            warnings.push("spec.configSource: the feature is no longer supported".to_owned());
        }
        if !text(&node["spec"]["externalID"]).is_empty() {
            warnings.push(
                "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
            );
        }
        warnings
    }

    fn keeps_status(&self) -> bool {
        true
    }
}

/// The path says `metadata`, as it does in Kubernetes.
fn taints(node: &At<'_, '_>, errors: &mut Errors) {
    let mut seen: Vec<(String, String)> = Vec::new();
    for (i, taint) in items(&node.value["spec"]["taints"]).iter().enumerate() {
        let path = format!("metadata.taints[{i}]");
        let taint = At::new(taint, &path);
        let (key, value) = (taint.at("key"), taint.at("value"));
        key.follows(names::qualified_name, errors);
        let complaints = names::label_value(value.text());
        if !complaints.is_empty() {
            errors.push(value.invalid(&complaints.join(";")));
        }
        taint.at("effect").requires_one_of(TAINT_EFFECTS, errors);
        let pair = (key.text().to_owned(), text(&taint.value["effect"]).to_owned());
        if seen.contains(&pair) {
            let mut error = taint.duplicate();
            error.text.push_str(": taints must be unique by key and effect pair");
            errors.push(error);
        } else {
            seen.push(pair);
        }
    }
}

fn resources(node: &At<'_, '_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in node.value["status"][list].as_object().into_iter().flatten() {
            let path = format!("status.{list}.{name}");
            check_amount(name, &At::new(amount, &path), errors);
        }
    }
}

fn addresses(node: &At<'_, '_>, errors: &mut Errors) {
    let status = node.at("status");
    let all = items(&status.value["addresses"]);
    for (i, address) in status.each("addresses").enumerate() {
        if all[..i].contains(address.value) {
            errors.push(address.duplicate());
        }
    }
}
