//! `NetworkPolicy`: which pods it is about, and which peers they may talk to at which ports. A peer
//! is chosen by labels or by ranges of addresses.

use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::address::{self, Cidr};
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, is_empty, items, set, within};
use crate::rules::label_selector::label_selector;
use crate::table::cells::selector;
use crate::table::{Column, age};

/// Where the rules of each direction stand, and in them the peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// What is said of `NetworkPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "networkpolicies",
    name: "NetworkPolicy",
    short_names: &["netpol"],
    traits: &[Trait::Generation],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules =
    Rules { default: defaults, check, warn: |policy, _| warnings(policy), ..Rules::NONE };

fn defaults(policy: &mut Value) {
    within(policy, "spec", |spec| {
        if is_empty(&spec["policyTypes"]) {
            let both = !is_empty(&spec["egress"]);
            let types = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            set(spec, "policyTypes", types);
        }
        for direction in ["ingress", "egress"] {
            each(spec, direction, |rule| {
                each(rule, "ports", |port| fill(port, "protocol", "TCP"));
            });
        }
    });
}

fn check(policy: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = policy.at("spec");
    label_selector(&spec.at("podSelector"), errors);
    let before = ranges(old);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.each(direction) {
            rule.each("ports").for_each(|port| check_port(&port, errors));
            rule.each(peers).for_each(|peer| check_peer(&peer, &before, errors));
        }
    }
    let types = spec.at("policyTypes");
    if types.len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in spec.each("policyTypes") {
        kind.one_of(&["Ingress", "Egress"], errors);
    }
}

/// All ranges that a policy has named.
fn ranges(policy: &Value) -> Value {
    let mut all = Vec::new();
    for (direction, peers) in DIRECTIONS {
        for rule in items(&policy["spec"][direction]) {
            for block in items(&rule[peers]).iter().map(|peer| &peer["ipBlock"]) {
                all.extend((!block.is_null()).then(|| block["cidr"].clone()));
                all.extend(items(&block["except"]).iter().cloned());
            }
        }
    }
    all.into()
}

fn check_port(rule: &At<'_, '_>, errors: &mut Errors) {
    rule.at("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    let port = rule.at("port");
    let end = rule.at("endPort");
    match port.value {
        Value::Null if end.is_set() => {
            errors.push(end.invalid("may not be specified when `port` is not specified"));
        }
        Value::Null => {}
        Value::String(_) => {
            if end.is_set() {
                errors.push(end.invalid("may not be specified when `port` is non-numeric"));
            }
            port.follows(names::port_name, errors);
        }
        _ => {
            port.port(errors);
            if end.is_set() {
                if end.number_or_zero() < port.number_or_zero() {
                    // Kubernetes shows the one that is not at fault.
                    let why = "must be greater than or equal to `port`";
                    errors.push(end.invalid_value(port.number_or_zero(), why));
                }
                end.port(errors);
            }
        }
    }
}

fn check_peer(peer: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    let mut found = 0;
    for key in ["podSelector", "namespaceSelector"] {
        let selector = peer.at(key);
        if selector.is_set() {
            found += 1;
            label_selector(&selector, errors);
        }
    }
    let block = peer.at("ipBlock");
    if block.is_absent() {
        if found == 0 {
            errors.push(peer.required("must specify a peer"));
        }
        return;
    }
    check_ip_block(&block, before, errors);
    if found > 0 {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn check_ip_block(block: &At<'_, '_>, before: &Value, errors: &mut Errors) {
    let range = block.at("cidr");
    if !range.require(errors) {
        return;
    }
    address::legacy_cidr(&range, range.text(), before, errors);
    let Some(whole) = Cidr::parse(range.text()) else { return };
    for except in block.each("except") {
        address::legacy_cidr(&except, except.text(), before, errors);
        let piece = Cidr::parse(except.text());
        if piece.is_some_and(|piece| !whole.strictly_contains(piece)) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

fn warnings(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = At::root(policy);
    let spec = root.at("spec");
    for (direction, peers) in DIRECTIONS {
        for rule in spec.each(direction) {
            for peer in rule.each(peers) {
                let block = peer.at("ipBlock");
                let cidr = block.at("cidr");
                warnings.extend(address::cidr_warnings(&cidr.path(), cidr.text()));
                for except in block.each("except") {
                    warnings.extend(address::cidr_warnings(&except.path(), except.text()));
                }
            }
        }
    }
    warnings
}

fn columns() -> Vec<Column> {
    let pods = |policy: &Value, _| selector(&policy["spec"]["podSelector"]).into();
    vec![Column::text("Pod-Selector", pods), age()]
}
