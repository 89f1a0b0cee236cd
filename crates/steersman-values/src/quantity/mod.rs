//! Quantities such as `500m`, `1.5Gi` or `2e3`: their syntax, order and canonical form.
//!
//! A [`Quantity`] is an exact decimal number; nothing about it is ever rounded but what
//! Kubernetes rounds, which is whatever lies below a billionth. Numbers of more than 38
//! significant digits are refused.

use std::cmp::Ordering;
use std::fmt::{self, Display, Write as _};

use serde_json::Value;

/// The smallest power of ten that a quantity can hold.
const NANO: i32 = -9;

/// Binary quantities end here.
const BINARY_MAX: u128 = i64::MAX as u128;

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How a quantity was written, and is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `1k`, `500m`
    Decimal,
    /// `1Ki`
    Binary,
    /// `1e3`
    Exponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// It does not have the form of one.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// It has the form, and a suffix that does not exist.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// It has more digits than can be held.
    #[error("a quantity of more than 38 digits")]
    Digits {
        /// Whether it is below zero.
        negative: bool,
    },
}

/// An exact amount: `digits` times ten to the power of `exponent`.
///
/// Equality and order are those of the amounts, however they were written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    negative: bool,
    /// Never a multiple of ten, except zero itself.
    digits: u128,
    exponent: i32,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self =
        Self { negative: false, digits: 0, exponent: 0, format: Format::Decimal };

    /// One.
    pub const ONE: Self = Self { digits: 1, ..Self::ZERO };

    /// So many whole units.
    pub fn units(number: usize) -> Self {
        let mut quantity = Self { digits: number as u128, ..Self::ZERO };
        quantity.normalise();
        quantity
    }

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(mistake(rest));
        }
        let unit = Unit::parse(suffix).ok_or_else(|| mistake(rest))?;
        let too_long = ParseQuantityError::Digits { negative };
        let (digits, exponent) = decimal(whole, fraction).ok_or(too_long)?;
        let digits = digits.checked_mul(unit.factor).ok_or(too_long)?;
        let exponent = exponent.checked_add(unit.exponent).ok_or(too_long)?;
        let mut quantity = Self { negative, digits, exponent, format: unit.format };
        quantity.round_up_to(NANO);
        if unit.format == Format::Binary {
            quantity.bound_binary();
        }
        Ok(quantity)
    }

    /// Reads a quantity of a document, where it is a text or a number.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text.trim()).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// The canonical text of a quantity, or what is not a quantity unchanged. As Kubernetes
    /// does, a text that is as good as canonical is kept.
    pub fn canonical(text: &str) -> Option<String> {
        let trimmed = text.trim();
        if keeps(trimmed) {
            return (trimmed.len() != text.len()).then(|| trimmed.to_owned());
        }
        Self::parse(trimmed).ok().map(|quantity| quantity.to_string())
    }

    /// Rounds away from zero to a multiple of a thousandth, as entries of resource lists are.
    #[must_use]
    pub fn rounded_to_milli(mut self) -> Self {
        self.round_up_to(-3);
        self
    }

    /// Rounds away from zero to whole units.
    #[must_use]
    pub fn rounded_to_units(mut self) -> Self {
        self.round_up_to(0);
        self
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.negative && self.digits > 0
    }

    /// Whether it is above zero.
    pub fn is_positive(self) -> bool {
        !self.negative && self.digits > 0
    }

    /// Whether it has no fraction.
    pub fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// The sum; `None` where it has too many digits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let a = i128::try_from(self.digits_at(exponent)?).ok()?;
        let b = i128::try_from(other.digits_at(exponent)?).ok()?;
        let sign = |number: i128, negative: bool| if negative { -number } else { number };
        let sum = sign(a, self.negative).checked_add(sign(b, other.negative))?;
        let format = if self.digits == 0 { other.format } else { self.format };
        let mut sum = Self { negative: sum < 0, digits: sum.unsigned_abs(), exponent, format };
        sum.normalise();
        Some(sum)
    }

    /// The difference; `None` where it has too many digits.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(Self { negative: !other.negative, ..other })
    }

    /// Whether it is a multiple of another amount; both must be integers.
    pub fn is_multiple_of(self, other: Self) -> bool {
        match (self.digits_at(0), other.digits_at(0)) {
            (Some(number), Some(factor)) => factor != 0 && number % factor == 0,
            _ => false,
        }
    }

    /// In whole units, rounded away from zero; at most what an `i64` holds.
    pub fn value(self) -> i64 {
        self.rounded_at(0)
    }

    /// In thousandths, rounded away from zero; at most what an `i64` holds.
    pub fn milli_value(self) -> i64 {
        self.rounded_at(-3)
    }

    fn rounded_at(mut self, exponent: i32) -> i64 {
        self.round_up_to(exponent);
        let most = if self.negative { i64::MIN } else { i64::MAX };
        let digits = self.digits_at(exponent).and_then(|digits| i64::try_from(digits).ok());
        digits.map_or(most, |digits| if self.negative { -digits } else { digits })
    }

    /// The digits in units of a smaller power of ten.
    fn digits_at(self, exponent: i32) -> Option<u128> {
        let places = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        if self.digits == 0 {
            return Some(0);
        }
        self.digits.checked_mul(10_u128.checked_pow(places)?)
    }

    /// Rounds away from zero what lies below a power of ten.
    fn round_up_to(&mut self, exponent: i32) {
        if self.digits > 0 && self.exponent < exponent {
            let places = self.exponent.abs_diff(exponent);
            self.digits = match 10_u128.checked_pow(places) {
                Some(power) => self.digits.div_ceil(power),
                None => 1,
            };
            self.exponent = exponent;
        }
        self.normalise();
    }

    fn bound_binary(&mut self) {
        let bound = Self { digits: BINARY_MAX, exponent: 0, ..*self };
        if self.magnitude(&bound) == Ordering::Greater {
            *self = bound;
        }
        let one = Self { digits: 1, exponent: 0, ..*self };
        if self.digits > 0 && self.magnitude(&one) == Ordering::Less {
            self.format = Format::Decimal;
        }
    }

    fn normalise(&mut self) {
        if self.digits == 0 {
            (self.exponent, self.negative) = (0, false);
            return;
        }
        while self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.exponent += 1;
        }
    }

    /// Compares what is left of the sign.
    fn magnitude(&self, other: &Self) -> Ordering {
        if self.digits == 0 || other.digits == 0 {
            return self.digits.cmp(&other.digits);
        }
        let order = |q: &Self| i64::from(q.digits.ilog10()) + i64::from(q.exponent);
        order(self).cmp(&order(other)).then_with(|| {
            // Of the same order, so the exponents are at most 38 apart.
            let low = self.exponent.min(other.exponent);
            match (self.digits_at(low), other.digits_at(low)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
            }
        })
    }

    /// The digits of an integer of at least 1024, with the factors of 1024 taken out.
    fn binary_parts(self) -> Option<(u128, usize)> {
        let mut amount = self.digits_at(0).filter(|amount| *amount >= 1024)?;
        let mut power = 0;
        while power < BINARY.len() && amount.is_multiple_of(1024) {
            amount /= 1024;
            power += 1;
        }
        Some((amount, power))
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_char('-')?;
        }
        if self.format == Format::Binary
            && let Some((amount, power)) = self.binary_parts()
        {
            let suffix = if power == 0 { "" } else { BINARY[power - 1] };
            return write!(f, "{amount}{suffix}");
        }
        // The exponent is brought to a multiple of three.
        let places = self.exponent.rem_euclid(3);
        let exponent = self.exponent - places;
        let zeros = usize::try_from(places).unwrap_or_default();
        let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent);
        match suffix {
            Some((suffix, _)) if self.format != Format::Exponent => {
                write!(f, "{}{:0<zeros$}{suffix}", self.digits, "")
            }
            _ if exponent == 0 => write!(f, "{}{:0<zeros$}", self.digits, ""),
            _ => write!(f, "{}{:0<zeros$}e{exponent}", self.digits, ""),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative(), other.is_negative()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

/// What a suffix stands for.
struct Unit {
    factor: u128,
    exponent: i32,
    format: Format,
}

impl Unit {
    fn parse(suffix: &str) -> Option<Self> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some(Self { factor: 1, exponent: *exponent, format: Format::Decimal });
        }
        if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
            let factor = 1 << (10 * (power + 1));
            return Some(Self { factor, exponent: 0, format: Format::Binary });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some(Self { factor: 1, exponent, format: Format::Exponent })
    }
}

/// What is wrong with a text, its sign apart, that has no number or an unknown suffix.
fn mistake(rest: &str) -> ParseQuantityError {
    let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let fits = rest.len() > suffix.len() && exponent.chars().all(|c| c.is_ascii_digit());
    if fits { ParseQuantityError::Suffix } else { ParseQuantityError::Form }
}

/// The number before the suffix as digits and a power of ten.
fn decimal(whole: &str, fraction: &str) -> Option<(u128, i32)> {
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let zeros = if fraction.is_empty() { trailing_zeros(whole) } else { 0 };
    let whole = &whole[..whole.len() - zeros];
    let mut digits: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
    }
    let exponent = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
    Some((digits, i32::try_from(exponent).ok()?))
}

fn trailing_zeros(number: &str) -> usize {
    number.len() - number.trim_end_matches('0').len()
}

/// Whether a text is kept as it is written although it may not be canonical: Kubernetes spares
/// itself the work where the number is short, without a broken or superfluous thousand.
fn keeps(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = rest.trim_start_matches('0');
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Some(unit) = Unit::parse(suffix) else { return false };
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || whole.is_empty() {
        return false;
    }
    match unit.format {
        Format::Binary => {
            let power = usize::try_from(unit.factor.ilog2()).unwrap_or_default();
            let short = whole.len() + power * 3 / 10 < 15;
            let odd = whole.parse::<u64>().is_ok_and(|number| number % 8 != 0);
            fraction.is_empty() && short && odd
        }
        Format::Decimal | Format::Exponent => {
            let places = i64::from(unit.exponent) - fraction.len() as i64;
            whole.len() + fraction.len() <= 18
                && places >= i64::from(NANO)
                && places % 3 == 0
                && !(trailing_zeros(fraction) >= 3
                    || (trailing_zeros(fraction) == fraction.len()
                        && fraction.len() + trailing_zeros(whole) >= 3))
        }
    }
}

#[cfg(test)]
mod tests;
