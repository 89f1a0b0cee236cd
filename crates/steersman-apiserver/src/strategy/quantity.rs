//! Quantities such as `500m` or `1Gi`, as far as comparing them needs.

use serde_json::Value;

const NANO: i128 = 1_000_000_000;

/// The value in billionths; `None` where the text is not a quantity.
pub(super) fn parse(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => parse_text(text),
        Value::Number(number) => parse_text(&number.to_string()),
        _ => None,
    }
}

fn parse_text(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
    let (digits, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let negative = whole.starts_with('-');
    let whole = whole.trim_start_matches(['+', '-']);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let scaled = digits.checked_mul(scale(suffix)?)? / 10_i128.checked_pow(places)?;
    Some(if negative { -scaled } else { scaled })
}

/// How many billionths one of a unit is.
fn scale(suffix: &str) -> Option<i128> {
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = DECIMAL.iter().position(|s| *s == suffix) {
        return 1000_i128.checked_pow(u32::try_from(power).ok()?);
    }
    if let Some(power) = BINARY.iter().position(|s| *s == suffix) {
        return 1024_i128.checked_pow(u32::try_from(power).ok()? + 1)?.checked_mul(NANO);
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    10_i128.checked_pow(u32::try_from(exponent.checked_add(9)?).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_quantities_are_equal_however_they_are_written() {
        for (one, other) in [
            (json!("1"), json!("1000m")),
            (json!(1), json!("1")),
            (json!("0.5"), json!("500m")),
            (json!("1Gi"), json!("1024Mi")),
            (json!("1k"), json!("1e3")),
            (json!("+1.5Ki"), json!("1536")),
        ] {
            assert_eq!(parse(&one), parse(&other), "{one} {other}");
            assert!(parse(&one).is_some());
        }
        for bad in ["", "a", "1x", "1KiB", "."] {
            assert_eq!(parse(&json!(bad)), None, "{bad}");
        }
    }
}
