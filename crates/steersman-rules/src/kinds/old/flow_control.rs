//! Flow schemas and priority levels.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_number, items, text, within, within_existing};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS_MAX: f64 = 60.0;
const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The kinds of subjects, the field each is described in, and which others it excludes.
const SUBJECTS: &[(&str, &str)] =
    &[("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

/// The strategy of flow schemas.
pub(in crate::kinds) const FLOW_SCHEMA: Rules = Rules {
    default: |schema| {
        within(schema, "spec", |spec| fill_number(spec, "matchingPrecedence", 1000));
    },
    status: Some(|| json!({})),
    check: flow_schema,
    check_status: conditions,
    ..Rules::NONE
};

/// The strategy of priority levels.
pub(in crate::kinds) const PRIORITY_LEVEL: Rules = Rules {
    default: level_defaults,
    status: Some(|| json!({})),
    check: priority_level,
    check_status: conditions,
    ..Rules::NONE
};

fn flow_schema(schema: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = schema.at("spec");
    let precedence = spec.at("matchingPrecedence");
    let name = text(&schema.value["metadata"]["name"]);
    match precedence.number_or_zero() {
        ..=0 => errors.push(precedence.invalid("must be a positive value")),
        1 if name != "exempt" => errors.push(
            precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"),
        ),
        number if number > PRECEDENCE_MAX => {
            let detail = format!("must not be greater than {PRECEDENCE_MAX}");
            errors.push(precedence.invalid(&detail));
        }
        _ => {}
    }
    let method = spec.at("distinguisherMethod");
    let methods = ["ByNamespace", "ByUser"];
    if method.is_set() && !methods.contains(&text(&method.value["type"])) {
        let field = method.at("type").path();
        errors.push(FieldError::not_supported(field, method.value, &methods));
    }
    let level = spec.at("priorityLevelConfiguration");
    let level = level.at("name");
    if level.require_because("must reference a priority level", errors) {
        level.follows(names::dns1123_subdomain, errors);
    }
    spec.each("rules").for_each(|rule| check_rule(&rule, errors));
}

fn check_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    rule.at("subjects").require_because("subjects must contain at least one value", errors);
    rule.each("subjects").for_each(|subject| check_subject(&subject, errors));
    if rule.at("resourceRules").is_empty() && rule.at("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(rule.required(detail));
    }
    rule.each("resourceRules").for_each(|rule| resource_rule(&rule, errors));
    rule.each("nonResourceRules").for_each(|rule| path_rule(&rule, errors));
}

fn check_subject(subject: &At<'_, '_>, errors: &mut Errors) {
    let kind = subject.at("kind");
    let Some((kind, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind.text()) else {
        let kinds: Vec<&str> = SUBJECTS.iter().map(|(kind, _)| *kind).collect();
        errors.push(FieldError::not_supported(kind.path(), &Value::from(kind.text()), &kinds));
        return;
    };
    let part = subject.at(own);
    if part.is_absent() {
        let detail = format!("{own} is required when subject kind is '{kind}'");
        errors.push(part.required(&detail));
    } else {
        let name = part.at("name");
        if name.require(errors) && *own == "serviceAccount" && name.text() != "*" {
            name.follows(names::dns1123_subdomain, errors);
        }
        if *own == "serviceAccount" {
            let namespace = part.at("namespace");
            if namespace.require_because("must specify namespace for service account", errors) {
                namespace.follows(names::dns1123_label, errors);
            }
        }
    }
    for (other, field) in SUBJECTS.iter().rev().filter(|(_, field)| field != own) {
        let part = subject.at(field);
        if part.is_set() {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.push(part.forbidden(&detail));
        }
    }
}

/// A list that must have items, of which a wildcard stands alone. Whether it is one.
fn wildcard(list: &At<'_, '_>, what: &str, errors: &mut Errors) -> bool {
    let any = items(list.value).iter().any(|item| item == "*");
    if any && list.len() > 1 {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
    }
    any
}

fn verbs(rule: &At<'_, '_>, errors: &mut Errors) {
    let verbs = rule.at("verbs");
    if !verbs.require_because("verbs must contain at least one value", errors) {
        return;
    }
    let known = items(verbs.value).iter().all(|verb| VERBS.contains(&text(verb)));
    if !wildcard(&verbs, "verbs", errors) && !known {
        errors.push(verbs.not_supported(VERBS));
    }
}

fn resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(rule, errors);
    for (key, what, detail) in [
        ("apiGroups", "api groups", "resource rules must supply at least one api group"),
        ("resources", "resources", "resource rules must supply at least one resource"),
    ] {
        let list = rule.at(key);
        if list.require_because(detail, errors) {
            wildcard(&list, what, errors);
        }
    }
    let namespaces = rule.at("namespaces");
    if namespaces.is_empty() {
        if rule.value["clusterScope"] != true {
            errors.push(namespaces.required(
                "resource rules that are not cluster scoped must supply at least one namespace",
            ));
        }
    } else if !wildcard(&namespaces, "namespaces", errors) {
        for namespace in rule.each("namespaces") {
            for complaint in names::dns1123_label(namespace.text()) {
                let intro = "each member of this list must be '*' or a DNS-1123 label; ";
                errors.push(namespace.invalid(&format!("{intro}{complaint}")));
            }
        }
    }
}

fn path_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(rule, errors);
    let paths = rule.at("nonResourceURLs");
    if !paths.require_because("nonResourceURLs must contain at least one value", errors)
        || wildcard(&paths, "non-resource URLs", errors)
    {
        return;
    }
    for path in rule.each("nonResourceURLs") {
        let given = path.text();
        let detail = match given {
            "" => "must not be empty",
            "/" => continue,
            _ if !given.starts_with('/') => "must start with slash",
            _ if given.contains(' ') => "must not contain white-space",
            _ if given.contains("//") => "must not contain double slash",
            _ if given.trim_end_matches("/*").contains('*') => {
                "wildcard can only do suffix matching"
            }
            _ => continue,
        };
        errors.push(path.invalid(detail));
    }
}

fn level_defaults(level: &mut Value) {
    within(level, "spec", |spec| {
        within_existing(spec, "exempt", |exempt| {
            fill(exempt, "nominalConcurrencyShares", 0);
            fill(exempt, "lendablePercent", 0);
        });
        within_existing(spec, "limited", |limited| {
            fill(limited, "nominalConcurrencyShares", 30);
            fill(limited, "lendablePercent", 0);
            within_existing(limited, "limitResponse", |response| {
                within_existing(response, "queuing", |queuing| {
                    fill_number(queuing, "handSize", 8);
                    fill_number(queuing, "queues", 64);
                    fill_number(queuing, "queueLengthLimit", 50);
                });
            });
        });
    });
}

fn priority_level(level: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = level.at("spec");
    let (kind, limited, exempt) = (spec.at("type"), spec.at("limited"), spec.at("exempt"));
    let named = level.value["metadata"]["name"] == "exempt";
    if named != (kind.text() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_absent() {
                errors.push(limited.required("must not be empty when type is Limited"));
            } else {
                shares(&limited, errors);
                limit_response(&limited.at("limitResponse"), errors);
                let borrowed = limited.at("borrowingLimitPercent");
                if borrowed.number_or_zero() < 0 {
                    let detail = "if specified, must be a non-negative integer";
                    errors.push(borrowed.invalid(detail));
                }
            }
        }
        _ => kind.requires_one_of(&["Exempt", "Limited"], errors),
    }
}

fn shares(part: &At<'_, '_>, errors: &mut Errors) {
    let shares = part.at("nominalConcurrencyShares");
    if shares.number_or_zero() < 0 {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    part.at("lendablePercent").within(0..=100, errors);
}

fn limit_response(response: &At<'_, '_>, errors: &mut Errors) {
    let (kind, queuing) = (response.at("type"), response.at("queuing"));
    match (kind.text(), queuing.is_absent()) {
        ("Reject", false) => errors
            .push(queuing.forbidden("must be nil if limited.limitResponse.type is not Limited")),
        ("Queue", true) => errors
            .push(queuing.required("must not be empty if limited.limitResponse.type is Limited")),
        ("Queue", false) => queues(&queuing, errors),
        ("Reject", true) => {}
        _ => kind.requires_one_of(&["Queue", "Reject"], errors),
    }
}

fn queues(queuing: &At<'_, '_>, errors: &mut Errors) {
    let [length, queues, hand] =
        ["queueLengthLimit", "queues", "handSize"].map(|key| queuing.at(key));
    if length.number_or_zero() <= 0 {
        errors.push(length.invalid("must be positive"));
    }
    if queues.number_or_zero() <= 0 {
        errors.push(queues.invalid("must be positive"));
    } else if queues.number_or_zero() > QUEUES_MAX {
        errors.push(queues.invalid(&format!("must not be greater than {QUEUES_MAX}")));
    }
    let deck = queues.number_or_zero();
    if hand.number_or_zero() <= 0 {
        errors.push(hand.invalid("must be positive"));
    } else if hand.number_or_zero() > deck {
        errors.push(hand.invalid(&format!("should not be greater than queues ({deck})")));
    } else if entropy(deck, hand.number_or_zero()) > HASH_BITS_MAX {
        errors.push(hand.invalid(&format!(
            "required entropy bits of deckSize {deck} and handSize {} should not be greater \
             than 60",
            hand.number_or_zero()
        )));
    }
}

/// How many bits it takes to deal a hand: the sum of the bits of each card, rounded up.
fn entropy(deck: i64, hand: i64) -> f64 {
    // A hand that takes more than 60 cards takes more than 60 bits, unless the deck is that small.
    let cards = (0..hand.min(1000)).map(|dealt| u32::try_from(deck - dealt).unwrap_or(u32::MAX));
    cards.map(|left| f64::from(left).log2()).sum::<f64>().ceil()
}

fn conditions(object: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = object.at("status");
    let mut seen = HashSet::new();
    for condition in status.each("conditions") {
        let kind = condition.at("type");
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate());
        }
        kind.require(errors);
    }
}
