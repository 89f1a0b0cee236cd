//! `PriorityLevelConfiguration`: how many requests of a level are served at once, and what becomes
//! of the others: rejected, or dealt into queues.

use serde_json::{Value, json};

use super::conditions::check_status;
use super::mandatory;
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_number, text, within, within_existing};
use crate::table::cells::or_none;
use crate::table::{Column, age};

const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS_MAX: f64 = 60.0;

/// What is said of `PriorityLevelConfiguration`.
pub(super) const KIND: Kind = Kind {
    plural: "prioritylevelconfigurations",
    name: "PriorityLevelConfiguration",
    traits: &[Trait::Generation, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules =
    Rules { default: defaults, status: Some(|| json!({})), check, check_status, ..Rules::NONE };

fn defaults(level: &mut Value) {
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

fn check(level: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    const OF_OLD: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    let spec = level.at("spec");
    let annotations = level.at("metadata.annotations");
    if !annotations.value[OF_OLD].is_null() {
        errors.push(annotations.forbidden(&format!("annotation '{OF_OLD}' is forbidden")));
    }
    let name = text(&level.value["metadata"]["name"]);
    check_spec(name, &spec, errors);
    mandatory::check_level(name, &spec, errors);
}

fn check_spec(name: &str, spec: &At<'_, '_>, errors: &mut Errors) {
    let kind = spec.at("type");
    let limited = spec.at("limited");
    let exempt = spec.at("exempt");
    if (name == "exempt") != (kind.text() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            check_shares(&exempt, errors);
            check_lendable(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_absent() {
                errors.push(limited.required("must not be empty when type is Limited"));
            } else {
                check_shares(&limited, errors);
                check_limit_response(&limited.at("limitResponse"), errors);
                check_lendable(&limited, errors);
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

fn check_shares(part: &At<'_, '_>, errors: &mut Errors) {
    let shares = part.at("nominalConcurrencyShares");
    if shares.number_or_zero() < 0 {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
}

fn check_lendable(part: &At<'_, '_>, errors: &mut Errors) {
    part.at("lendablePercent").within(0..=100, errors);
}

fn check_limit_response(response: &At<'_, '_>, errors: &mut Errors) {
    let kind = response.at("type");
    let queuing = response.at("queuing");
    match (kind.text(), queuing.is_absent()) {
        ("Reject", false) => errors
            .push(queuing.forbidden("must be nil if limited.limitResponse.type is not Limited")),
        ("Queue", true) => errors
            .push(queuing.required("must not be empty if limited.limitResponse.type is Limited")),
        ("Queue", false) => check_queuing(&queuing, errors),
        ("Reject", true) => {}
        _ => kind.requires_one_of(&["Queue", "Reject"], errors),
    }
}

fn check_queuing(queuing: &At<'_, '_>, errors: &mut Errors) {
    let length = queuing.at("queueLengthLimit");
    let queues = queuing.at("queues");
    let hand = queuing.at("handSize");
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

fn columns() -> Vec<Column> {
    vec![
        Column::field("Type", "spec.type", ""),
        Column::text("NominalConcurrencyShares", |level, _| {
            number_or_none(&level["spec"]["limited"]["nominalConcurrencyShares"])
        }),
        Column::text("Queues", |level, _| number_or_none(&queuing(level)["queues"])),
        Column::text("HandSize", |level, _| number_or_none(&queuing(level)["handSize"])),
        Column::text("QueueLengthLimit", |level, _| {
            number_or_none(&queuing(level)["queueLengthLimit"])
        }),
        age(),
    ]
}

fn queuing(level: &Value) -> &Value {
    &level["spec"]["limited"]["limitResponse"]["queuing"]
}

/// A number, although the column is announced as text.
fn number_or_none(value: &Value) -> Value {
    if value.is_null() { or_none("") } else { value.clone() }
}
