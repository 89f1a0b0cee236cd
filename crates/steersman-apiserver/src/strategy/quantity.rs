//! Quantities as plain numbers, for kinds that only compare them with zero or one.

use serde_json::Value;

use crate::quantity::Quantity;

/// The value in billionths; `None` where it is not a quantity, or too large to be counted so.
#[allow(dead_code, reason = "for the kinds that count so")]
pub(super) fn parse(value: &Value) -> Option<i128> {
    Quantity::of(value)?.billionths()
}
