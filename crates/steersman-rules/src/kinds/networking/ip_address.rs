//! `IPAddress`: an address that is taken, and by whom. The owner stays.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::kind::Kind;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;
use crate::table::cells::or_none;
use crate::table::{Column, age};

/// What is said of `IPAddress`.
pub(super) const KIND: Kind = Kind {
    plural: "ipaddresses",
    name: "IPAddress",
    short_names: &["ip"],
    rules: &RULES,
    columns: || vec![Column::text("ParentRef", parent), age().unannounced()],
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check,
    change: |address, old, errors| {
        let spec = address.at("spec");
        let before = &old["spec"]["parentRef"];
        spec.at("parentRef").unchanged_as("*ParentReference", before, errors);
    },
    ..Rules::NONE
};

fn check(address: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = address.at("spec");
    let parent = spec.at("parentRef");
    if parent.is_absent() {
        errors.push(parent.required(""));
        return;
    }
    parent.at("group").may_follow(names::dns1123_subdomain, errors);
    parent.at("resource").requires(names::path_segment, errors);
    parent.at("name").requires(names::path_segment, errors);
    parent.at("namespace").follows(names::path_segment, errors);
}

fn parent(address: &Value, _: Timestamp) -> Value {
    let parent = &address["spec"]["parentRef"];
    if parent.is_null() {
        return or_none("");
    }
    let keys = ["resource", "group", "namespace", "name"];
    let [resource, group, namespace, name] = keys.map(|key| text(&parent[key]));
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    let kind = format!("{resource}{dot}{group}").to_lowercase();
    format!("{kind}{slash}{namespace}/{name}").into()
}
