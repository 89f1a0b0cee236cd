//! Amounts such as `500m` or `1Gi` that are written in different ways and mean the same.
//!
//! Without a schema nobody can tell an amount from a text that looks like one; so only what is
//! below a field that holds amounts is read as such.

use serde_json::Value;

/// Steps of a path below which there are amounts.
pub(super) const HOLDERS: [&str; 5] = [".limits", ".requests", ".capacity", ".hard", ".sizeLimit"];

/// Whether there are amounts in a field of this name.
pub(super) fn is_holder(name: &str) -> bool {
    HOLDERS.iter().any(|holder| holder[1..] == *name)
}

/// Whether two values are the same amount.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    matches!((amount(a), amount(b)), (Some(a), Some(b)) if a == b)
}

/// An amount in billionths, if it is one and not too large to tell.
fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => parse(&number.to_string()),
        Value::String(text) => parse(text),
        _ => None,
    }
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (binary, exponent) = scale(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent + 9 - i32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(binary)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        return scaled.checked_mul(power);
    }
    (scaled % power == 0).then(|| scaled / power)
}

/// What a suffix multiplies with, and by which power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|s| *s == suffix);
    if let Some(position) = binary {
        let bits = 10 * (u32::try_from(position).ok()? + 1);
        return Some((1_i128 << bits, 0));
    }
    let decimal = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        other => other.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    Some((1, decimal))
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
        ] {
            assert!(same(&a, &b), "{a} {b}");
        }
        for (a, b) in [
            (json!("1"), json!("1001m")),
            (json!("1Gi"), json!("1G")),
            (json!("one"), json!("one")),
            (json!(""), json!("")),
            (json!("1x"), json!("1")),
            (json!("9e99"), json!("9e99")),
        ] {
            assert!(!same(&a, &b), "{a} {b}");
        }
    }
}
