//! Exact arithmetic with Kubernetes quantities such as `100m`, `1.5Gi` or `2e3`.
//!
//! A quantity is held in billionths as a wide integer, so nothing is lost between `1n` and
//! `7Ei`. Fractions of a billionth round up, as in Kubernetes, and what is too large to be held
//! counts as the largest amount there is.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount of a resource, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(i128);

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a quantity")]
pub(crate) struct NotAQuantity(String);

const NANO: i128 = 1_000_000_000;
/// How many digits after the point are read exactly.
const DECIMALS_MAX: usize = 18;

impl Amount {
    /// Reads a quantity.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAQuantity> {
        parse(text).map(Self).ok_or_else(|| NotAQuantity(text.to_owned()))
    }

    /// Reads a quantity, taking nonsense for nothing: the API server lets none in.
    pub(crate) fn of(quantity: &Quantity) -> Self {
        Self::parse(&quantity.0).unwrap_or_default()
    }

    /// In whole units, rounded up.
    pub(crate) fn value(self) -> i64 {
        self.rounded_up(NANO)
    }

    /// In thousandths, rounded up.
    pub(crate) fn milli_value(self) -> i64 {
        self.rounded_up(NANO / 1000)
    }

    fn rounded_up(self, unit: i128) -> i64 {
        let whole = self.0.div_euclid(unit) + i128::from(self.0.rem_euclid(unit) != 0);
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}n", self.0)
    }
}

/// The number of billionths that a text stands for.
fn parse(text: &str) -> Option<i128> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let digits_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(digits_end.unwrap_or(unsigned.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (factor, exponent) = suffix_of(suffix)?;
    let (mantissa, decimals) = mantissa(whole, fraction);
    Some(sign * scale_up(mantissa.saturating_mul(factor), exponent + 9 - decimals))
}

/// The digits as one number, and how many of them stand after the point.
fn mantissa(whole: &str, fraction: &str) -> (i128, i32) {
    let (exact, rest) = fraction.split_at(fraction.len().min(DECIMALS_MAX));
    let digits = format!("{whole}{exact}");
    let number = digits.parse().unwrap_or(i128::MAX); // only digits, so there are too many
    let beyond = i128::from(rest.bytes().any(|digit| digit != b'0'));
    (number.saturating_add(beyond), i32::try_from(exact.len()).unwrap_or(0))
}

/// A binary factor and a decimal exponent.
fn suffix_of(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1024_i128.pow(power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let exponent: i32 = digits.parse().ok()?;
            Some((1, exponent.clamp(-1000, 1000)))
        }
    }
}

/// `number` × 10^`exponent`, rounded up.
fn scale_up(number: i128, exponent: i32) -> i128 {
    let power = 10_i128.saturating_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return number.saturating_mul(power);
    }
    number / power + i128::from(number % power != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_quantity_is_read_exactly() {
        let table = [
            ("0", 0),
            ("1", 1_000),
            ("100m", 100),
            ("1.5", 1_500),
            (".5", 500),
            ("5.", 5_000),
            ("+2", 2_000),
            ("-1", -1_000),
            ("2k", 2_000_000),
            ("1Ki", 1_024_000),
            ("1.5Ki", 1_536_000),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("1e-3", 1),
            ("0.0005", 1), // half a thousandth rounds up
            ("1n", 1),
        ];
        for (text, milli) in table {
            assert_eq!(Amount::parse(text).unwrap().milli_value(), milli, "{text}");
        }
        assert_eq!(Amount::parse("7Ei").unwrap().value(), 7 << 60);
        assert_eq!(Amount::parse("1E").unwrap().value(), 10_i64.pow(18));
        assert_eq!(Amount::parse("32Gi").unwrap().value(), 32 << 30);
    }

    #[test]
    fn what_is_out_of_range_counts_as_the_largest_or_the_smallest_amount() {
        let digits = "9".repeat(60);
        for text in ["100Ei", "1e19", "1e31", "1e999", digits.as_str()] {
            assert_eq!(Amount::parse(text).unwrap().value(), i64::MAX, "{text}");
            assert_eq!(Amount::parse(&format!("-{text}")).unwrap().value(), i64::MIN, "{text}");
        }
        for text in ["1e-999", &format!("0.{}1", "0".repeat(60))] {
            assert_eq!(Amount::parse(text).unwrap().milli_value(), 1, "{text}");
        }
        assert_eq!(Amount::parse(&format!("2.{}", "0".repeat(60))).unwrap().value(), 2);
        assert_eq!(Amount::parse("0e999").unwrap().value(), 0);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "m", ".", "1.2.3", "1 Gi", "1gi", "--1", "1e", "٣"] {
            assert!(Amount::parse(text).is_err(), "{text:?}");
        }
    }
}
