//! Whether an object fits into quotas, and what they are charged for it.

use jiff::Timestamp;
use serde_json::Value;

use super::amounts::Amounts;
use super::evaluator::Evaluator;
use super::limits::Quota;
use super::measure::Measure;

/// A write that wants something of quotas.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// How the object is counted.
    pub evaluator: &'a Evaluator,
    /// What is to be written.
    pub new: &'a Value,
    /// What that replaces.
    pub old: Option<&'a Value>,
    /// Whether it says what is, rather than what is wanted: that is counted, and never refused.
    pub is_status: bool,
    /// The time of the write.
    pub now: Timestamp,
}

/// What each quota is charged for a write, in their order; nothing where it does not concern them.
///
/// # Errors
///
/// In the words of Kubernetes, why the write does not fit. Then nobody is charged.
pub fn charges(quotas: &[Quota], demand: Demand<'_>) -> Result<Vec<Amounts>, String> {
    let Demand { evaluator, new, old, is_status, now } = demand;
    let measure = evaluator.measure(new);
    let mut concerned = Vec::with_capacity(quotas.len());
    for quota in quotas {
        concerned.push(concerns(quota, demand, &measure)?);
    }
    if !concerned.contains(&true) {
        return Ok(vec![Amounts::default(); quotas.len()]);
    }
    let usage = measure.usage(now);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| amount.is_negative()).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let before = old.map(|old| evaluator.measure(old));
    let more = before.as_ref().map(|before| {
        let mut more = usage.clone();
        more.subtract(&before.usage(now));
        more
    });
    let mut charges = Vec::with_capacity(quotas.len());
    for (quota, concerned) in quotas.iter().zip(concerned) {
        let counted_before = before.as_ref().is_some_and(|before| quota.has_in_scope(before));
        let wanted = more.as_ref().filter(|_| counted_before).unwrap_or(&usage);
        charges.push(match concerned {
            true => charge(quota, wanted, is_status)?,
            false => Amounts::default(),
        });
    }
    Ok(charges)
}

/// Whether a quota counts an object. One that does wants everything said that it counts, and must
/// itself be counted.
fn concerns(quota: &Quota, demand: Demand<'_>, measure: &Measure) -> Result<bool, String> {
    let counted = quota.counted(demand.evaluator);
    if counted.is_empty() || !quota.has_in_scope(measure) {
        return Ok(false);
    }
    if let Some(missing) = demand.evaluator.missing(&counted, demand.new) {
        return Err(format!("failed quota: {}: {missing}", quota.name));
    }
    if counted.iter().any(|name| quota.used.get(name).is_none()) {
        let names = counted.join(",");
        return Err(format!("status unknown for quota: {}, resources: {names}", quota.name));
    }
    Ok(true)
}

/// What a quota is charged, if that much is left.
fn charge(quota: &Quota, wanted: &Amounts, is_status: bool) -> Result<Amounts, String> {
    let wanted = wanted.only(|name| quota.hard.get(name).is_some()).without_zeros();
    if is_status {
        return Ok(wanted);
    }
    let mut sum = quota.used.only(|name| wanted.get(name).is_some());
    sum.add(&wanted);
    let exceeded: Vec<&str> = sum.exceeding(&quota.hard).collect();
    if exceeded.is_empty() {
        return Ok(wanted);
    }
    let of = |amounts: &Amounts| amounts.only(|name| exceeded.contains(&name));
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name,
        of(&wanted),
        of(&quota.used),
        of(&quota.hard)
    ))
}
