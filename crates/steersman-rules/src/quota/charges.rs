//! Whether an object fits into quotas, and what they are charged for it.

use jiff::Timestamp;
use serde_json::Value;

use super::amounts::Amounts;
use super::evaluator::Evaluator;
use super::limited::{Limited, Used};
use super::limits::Quota;
use super::measure::Measure;
use super::refusal::Refusal;

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
    /// What may be used only where a quota limits it.
    pub limited: &'a Limited,
    /// The time of the write.
    pub now: Timestamp,
}

/// What each quota is charged for a write, in their order; nothing where it does not concern them.
///
/// # Errors
///
/// Why the write does not fit. Then nobody is charged.
pub fn charges(quotas: &[Quota], demand: Demand<'_>) -> Result<Vec<Amounts>, Refusal> {
    let Demand { evaluator, new, limited, is_status, now, .. } = demand;
    let measure = evaluator.measure(new);
    let mut concerned = Vec::with_capacity(quotas.len());
    for quota in quotas {
        concerned.push(concerns(quota, demand, &measure).map_err(Refusal::Forbidden)?);
    }
    if !concerned.contains(&true) && limited.is_empty() {
        return Ok(vec![Amounts::default(); quotas.len()]);
    }
    let usage = measure.usage(now);
    refuse_negative(&usage)?;
    let Some(wanted) = wanted(quotas, &concerned, demand, &usage) else {
        return Ok(vec![Amounts::default(); quotas.len()]);
    };
    if !limited.is_empty() {
        let concerned = &concerned;
        limited.cover(&Used { evaluator, measure: &measure, usage: &usage, quotas, concerned })?;
    }
    let charges = quotas.iter().zip(&wanted).map(|(quota, it)| charge(quota, it, is_status));
    charges.collect::<Result<_, _>>().map_err(Refusal::Forbidden)
}

fn refuse_negative(usage: &Amounts) -> Result<(), Refusal> {
    let negative = usage.iter().filter(|(_, amount)| amount.is_negative());
    let negative: Vec<&str> = negative.map(|(name, _)| name).collect();
    if negative.is_empty() {
        return Ok(());
    }
    let names = negative.join(",");
    Err(Refusal::Forbidden(format!("quota usage is negative for resource(s): {names}")))
}

/// What an object uses more than before, by the quotas that it concerns; `None` if that is nothing.
fn wanted(
    quotas: &[Quota],
    concerned: &[bool],
    demand: Demand<'_>,
    usage: &Amounts,
) -> Option<Vec<Amounts>> {
    let before = demand.old.map(|old| demand.evaluator.measure(old));
    let mut more = usage.clone();
    if let Some(before) = &before {
        more.subtract(&before.usage(demand.now));
    }
    let more = more.without_zeros();
    let of = |quota: &Quota| match &before {
        // What comes into the scope of a quota is charged as a whole.
        Some(before) if !quota.has_in_scope(before) => usage.clone().without_zeros(),
        _ => more.clone(),
    };
    let all = quotas.iter().zip(concerned);
    let wanted: Vec<Amounts> = all
        .map(|(quota, concerned)| if *concerned { of(quota) } else { Amounts::default() })
        .collect();
    let is_free = match concerned.contains(&true) {
        true => wanted.iter().all(Amounts::is_empty),
        false => more.is_empty(),
    };
    (!is_free).then_some(wanted)
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
