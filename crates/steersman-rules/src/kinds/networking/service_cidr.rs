//! `ServiceCIDR`: ranges that services get their addresses from, at most one of each family.
//! Ranges stay, and a second one may come.

use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::address::{self, Cidr};
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};
use crate::table::cells::texts;
use crate::table::{Column, age};

/// What is said of `ServiceCIDR`.
pub(super) const KIND: Kind = Kind {
    plural: "servicecidrs",
    name: "ServiceCIDR",
    traits: &[Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    status: Some(|| json!({})),
    check: |object, old, errors| {
        if old.is_null() {
            check(object, errors);
        }
    },
    change,
    ..Rules::NONE
};

fn check(object: &At<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let cidrs = spec.at("cidrs");
    match cidrs.len() {
        0 => return errors.push(cidrs.required("at least one CIDR required")),
        1 | 2 => {}
        // Kubernetes shows the whole spec.
        _ => {
            let spec = cidrs.with(spec.value);
            return errors.push(spec.invalid_as("ServiceCIDRSpec", "may only hold up to 2 values"));
        }
    }
    for cidr in spec.each("cidrs") {
        address::canonical_cidr(&cidr, errors);
    }
    let family = |cidr: &Value| Cidr::parse(text(cidr)).map(|cidr| cidr.ip.is_ipv4());
    if let [first, second] = cidrs.list()
        && family(first).is_some()
        && family(first) == family(second)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 \
                      and 2001:db8::/64";
        errors.push(cidrs.invalid(detail));
    }
}

/// Ranges that were stored before are not looked at again, unless one comes with them.
fn change(object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = object.at("spec");
    let before = items(&old["spec"]["cidrs"]);
    let cidrs = spec.at("cidrs");
    let comes = before.len() == 1 && cidrs.len() == 2;
    if !comes && before.len() != cidrs.len() {
        return errors.push(cidrs.invalid("field is immutable"));
    }
    for (cidr, old) in spec.each("cidrs").zip(before) {
        cidr.unchanged(old, errors);
    }
    if comes {
        check(object, errors);
    }
}

fn columns() -> Vec<Column> {
    vec![Column::text("CIDRs", |object, _| texts(&object["spec"]["cidrs"]).into()), age()]
}
