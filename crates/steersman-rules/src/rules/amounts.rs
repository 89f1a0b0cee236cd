//! Amounts of resources.

use super::at::At;
use crate::quantity::Quantity;

/// The warning about an amount of bytes that is not whole.
pub(crate) fn fraction(list: &At<'_, '_>, name: &str, warnings: &mut Vec<String>) {
    let amount = Quantity::of(&list.value[name]).filter(|amount| !amount.is_integer());
    if let Some(amount) = amount {
        let amount = amount.to_string();
        let why = format!("fractional byte value {amount:?} is invalid, must be an integer");
        warnings.push(format!("{}[{name}]: {why}", list.path()));
    }
}
