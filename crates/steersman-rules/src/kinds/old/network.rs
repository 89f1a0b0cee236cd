//! Network policies, and the addresses that services are given.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::address::{self, Cidr};
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, is_empty, items, set, text, within};
use crate::rules::label_selector::label_selector;

/// The strategy of network policies.
pub(in crate::kinds) const NETWORK_POLICY: Rules = Rules {
    default: policy_defaults,
    check: policy,
    warn: |policy, _| policy_warnings(policy),
    ..Rules::NONE
};

/// The strategy of the addresses that services have.
pub(in crate::kinds) const IP_ADDRESS: Rules = Rules {
    check: ip_address,
    change: |address, old, errors| {
        let spec = address.at("spec");
        spec.at("parentRef").unchanged(&old["spec"]["parentRef"], errors);
    },
    ..Rules::NONE
};

/// The strategy of the ranges that services get their addresses from.
pub(in crate::kinds) const SERVICE_CIDR: Rules =
    Rules { status: Some(|| json!({})), check: service_cidr, change: cidr_change, ..Rules::NONE };

fn policy_defaults(policy: &mut Value) {
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

fn policy(policy: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = policy.at("spec");
    label_selector(&spec.at("podSelector"), errors);
    let before = ranges(old);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.each(direction) {
            rule.each("ports").for_each(|port| policy_port(&port, errors));
            rule.each(peers).for_each(|peer| policy_peer(&peer, &before, errors));
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
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in items(&policy["spec"][direction]) {
            for block in items(&rule[peers]).iter().map(|peer| &peer["ipBlock"]) {
                all.extend((!block.is_null()).then(|| block["cidr"].clone()));
                all.extend(items(&block["except"]).iter().cloned());
            }
        }
    }
    all.into()
}

fn policy_port(rule: &At<'_, '_>, errors: &mut Errors) {
    rule.at("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    let (port, end) = (rule.at("port"), rule.at("endPort"));
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

fn policy_peer(peer: &At<'_, '_>, before: &Value, errors: &mut Errors) {
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
    ip_block(&block, before, errors);
    if found > 0 {
        errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn ip_block(block: &At<'_, '_>, before: &Value, errors: &mut Errors) {
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

fn policy_warnings(policy: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = At::root(policy);
    let spec = root.at("spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
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

fn ip_address(address: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = address.at("spec");
    let parent = spec.at("parentRef");
    if parent.is_absent() {
        errors.push(parent.required(""));
        return;
    }
    let group = parent.at("group");
    if !group.is_empty() {
        group.follows(names::dns1123_subdomain, errors);
    }
    parent.at("resource").requires(names::path_segment, errors);
    parent.at("name").requires(names::path_segment, errors);
    parent.at("namespace").follows(names::path_segment, errors);
}

fn service_cidr(object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = object.at("spec");
    let cidrs = spec.at("cidrs");
    let added = items(&old["spec"]["cidrs"]).len() == 1 && cidrs.len() == 2;
    if !old.is_null() && !added {
        return;
    }
    match cidrs.len() {
        0 => return errors.push(cidrs.required("at least one CIDR required")),
        1 | 2 => {}
        _ => {
            let detail = "may only hold up to 2 values";
            return errors.push(FieldError::invalid("spec.cidrs", spec.value, detail));
        }
    }
    for cidr in spec.each("cidrs") {
        address::canonical_cidr(&cidr, errors);
    }
    let family = |cidr: &Value| Cidr::parse(text(cidr)).map(|cidr| cidr.ip.is_ipv4());
    if let [first, second] = items(cidrs.value)
        && family(first).is_some()
        && family(first) == family(second)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 \
                      and 2001:db8::/64";
        errors.push(cidrs.invalid(detail));
    }
}

/// Ranges stay; a second one may come.
fn cidr_change(object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = object.at("spec");
    let before = items(&old["spec"]["cidrs"]);
    let cidrs = spec.at("cidrs");
    let compared = match (before.len(), cidrs.len()) {
        (1, 2) => 1,
        (old, new) if old == new => old,
        _ => return errors.push(cidrs.invalid("field is immutable")),
    };
    for (cidr, old) in spec.each("cidrs").zip(before).take(compared) {
        cidr.unchanged(old, errors);
    }
}
