//! What kinds that roll out pods share: amounts as numbers or percentages, and counted replicas.

use serde_json::Value;

use super::at::{At, Errors};

/// Complains if the value is neither a number from zero nor a percentage.
pub(crate) fn int_or_percent(at: &At<'_, '_>, errors: &mut Errors) {
    match at.value {
        Value::String(text) if percent(text).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' \
                       (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.push(at.invalid(why));
        }
        _ => at.not_negative(errors),
    }
}

/// Complains if the value is a percentage of more than everything.
pub(crate) fn at_most_all(at: &At<'_, '_>, errors: &mut Errors) {
    if at.value.as_str().and_then(percent).is_some_and(|number| number > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

/// The number, or the number before the percent sign; zero where there is neither.
pub(crate) fn amount(at: &At<'_, '_>) -> u64 {
    let number = at.number().map(|number| u64::try_from(number).unwrap_or(1));
    number.or_else(|| at.value.as_str().and_then(percent)).unwrap_or(0)
}

/// What is too large for the type is also too large.
fn percent(text: &str) -> Option<u64> {
    let number = text.strip_suffix('%')?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| number.parse().unwrap_or(u64::MAX))
}

/// Counts in a status: what may not be negative, and what may not exceed `replicas`.
pub(crate) struct Counts {
    /// Every number of the status.
    pub(crate) numbers: &'static [&'static str],
    /// Those of `replicas` pods.
    pub(crate) parts: &'static [&'static str],
    /// What is said when more are available than ready.
    pub(crate) available: &'static str,
}

impl Counts {
    /// The mistakes in a status.
    pub(crate) fn check(&self, object: &At<'_, '_>, old: &Value, errors: &mut Errors) {
        let status = object.at("status");
        for number in self.numbers {
            status.at(number).not_negative(errors);
        }
        let count = |key: &str| status.at(key).number_or_zero();
        for part in self.parts {
            if count(part) > count("replicas") {
                let why = "cannot be greater than status.replicas";
                errors.push(status.at(part).invalid_value(count(part), why));
            }
        }
        if !self.parts.is_empty() && count("availableReplicas") > count("readyReplicas") {
            let available = status.at("availableReplicas");
            errors.push(available.invalid_value(count("availableReplicas"), self.available));
        }
        // To take the count away is less than any.
        let collisions = status.at("collisionCount");
        let before = old["status"]["collisionCount"].as_i64();
        if before.is_some_and(|before| collisions.number().is_none_or(|now| now < before)) {
            errors.push(collisions.invalid_value(count("collisionCount"), "cannot be decremented"));
        }
    }
}
