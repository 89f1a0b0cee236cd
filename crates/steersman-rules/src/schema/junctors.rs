//! What other schemas say of a value: that all of them hold of it, or any, or one, or that one does not.

use serde_json::Value;

use super::node::{Junctors, Node};
use super::validate::{Change, validate};
use super::way::Way;
use crate::field::{Errors, FieldError};

/// What a schema finds in a value.
struct Found {
    errors: Errors,
    /// How much of the schema came into it.
    matches: usize,
}

/// Adds the mistakes in a value by other schemas. Old values count for nothing here. Says how much of
/// these schemas came into it.
pub(super) fn check(
    junctors: &Junctors,
    value: &Value,
    way: &Way<'_>,
    errors: &mut Errors,
) -> usize {
    let look = |node: &Node| {
        let mut errors = Errors::default();
        let matches = validate(node, Change { new: value, old: None }, way, &mut errors);
        Found { errors, matches }
    };
    let mut told = Errors::default();
    let mut matches = any_of(&junctors.any_of, look, way, &mut told);
    matches += one_of(&junctors.one_of, look, way, &mut told);
    matches += all_of(&junctors.all_of, look, way, &mut told);
    if junctors.not.as_ref().is_some_and(|not| look(not).errors.is_empty()) {
        told.push(junction(way, "must not validate the schema (not)"));
    }
    // What was told already is not told again.
    for error in told {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    matches
}

fn any_of(
    nodes: &[Node],
    look: impl Fn(&Node) -> Found,
    way: &Way<'_>,
    told: &mut Errors,
) -> usize {
    let mut best = None;
    for node in nodes {
        let found = look(node);
        if found.errors.is_empty() {
            return found.matches;
        }
        best = Some(better(best, found));
    }
    let Some(best) = best else { return 0 };
    told.push(junction(way, "must validate at least one schema (anyOf)"));
    told.extend(best.errors);
    best.matches
}

fn one_of(
    nodes: &[Node],
    look: impl Fn(&Node) -> Found,
    way: &Way<'_>,
    told: &mut Errors,
) -> usize {
    let mut best = None;
    let mut first = None;
    let mut valid = 0;
    for found in nodes.iter().map(look) {
        if found.errors.is_empty() {
            valid += 1;
            first = first.or(Some(found.matches));
        } else {
            best = Some(better(best, found));
        }
    }
    let mut refuse = |found: &str| {
        let text = format!("must validate one and only one schema (oneOf). {found}");
        told.push(junction(way, &text));
    };
    match (valid, best) {
        (0, None) => 0,
        (0, Some(best)) => {
            refuse("Found none valid");
            told.extend(best.errors);
            best.matches
        }
        (1, _) => first.unwrap_or_default(),
        (many, _) => {
            refuse(&format!("Found {many} valid alternatives"));
            0
        }
    }
}

fn all_of(
    nodes: &[Node],
    look: impl Fn(&Node) -> Found,
    way: &Way<'_>,
    told: &mut Errors,
) -> usize {
    let mut matches = 0;
    let mut valid = 0;
    for found in nodes.iter().map(look) {
        matches += found.matches;
        valid += usize::from(found.errors.is_empty());
        told.extend(found.errors);
    }
    if valid < nodes.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        told.push(junction(way, &format!("must validate all the schemas (allOf){none}")));
    }
    matches
}

/// Of two alternatives that fail, the one of which more came into it; the first, if that is the same.
fn better(best: Option<Found>, other: Found) -> Found {
    match best {
        Some(best) if best.matches >= other.matches => best,
        _ => other,
    }
}

/// What other schemas say does not fit; Kubernetes tells it of the whole object.
fn junction(way: &Way<'_>, text: &str) -> FieldError {
    let path = way.text();
    FieldError::invalid("<nil>", &Value::from(""), &format!("{path:?} {text}"))
}
