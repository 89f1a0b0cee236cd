//! What objects use, which quotas that concerns, and what they are charged.

mod charges;
mod names;
mod objects;
mod pods;
mod scopes;

use jiff::Timestamp;
use serde_json::Value;

use super::{Amounts, Evaluator};

/// A moment in the middle of the tests.
fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// What an object uses, as a list of documents.
fn usage(evaluator: &Evaluator, object: &Value) -> Value {
    evaluator.measure(object).usage(now()).to_value()
}

/// The amounts of a document.
fn amounts(list: &Value) -> Amounts {
    Amounts::of(list)
}
