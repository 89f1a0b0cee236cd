//! Amounts such as `500m` or `1Gi` that are written in different ways and mean the same.
//!
//! Without a schema nobody can tell an amount from a text that looks like one; so only what is
//! below a field that holds amounts is read as such.

use serde_json::Value;
use steersman_values::Quantity;

/// Steps of a path below which there are amounts.
pub(super) const HOLDERS: [&str; 5] = [".limits", ".requests", ".capacity", ".hard", ".sizeLimit"];

/// Whether there are amounts in a field of this name.
pub(super) fn is_holder(name: &str) -> bool {
    HOLDERS.iter().any(|holder| holder[1..] == *name)
}

/// Whether two values are the same amount.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    Quantity::of(a).is_some_and(|amount| Quantity::of(b) == Some(amount))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_amounts_are_the_same_however_they_are_written() {
        for (a, b) in [
            (json!("1000m"), json!("1")),
            (json!("1"), json!(1)),
            (json!("0.5"), json!("500m")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("1e3"), json!("1k")),
            (json!("1.50"), json!("1500m")),
            (json!("9e99"), json!("9e99")),
            (json!("0.0000000001"), json!("1n")),
        ] {
            assert!(same(&a, &b), "{a} {b}");
        }
        for (a, b) in [
            (json!("1"), json!("1001m")),
            (json!("1Gi"), json!("1G")),
            (json!("one"), json!("one")),
            (json!(""), json!("")),
            (json!("1x"), json!("1")),
        ] {
            assert!(!same(&a, &b), "{a} {b}");
        }
    }
}
