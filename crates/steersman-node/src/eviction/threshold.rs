//! From when on something is short.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use steersman_values::Quantity;

use super::signal::Signal;

/// So much of something, or such a part of all there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    Units(i64),
    /// From 0 to 1.
    Part(f64),
}

impl Amount {
    /// In units, of this capacity.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a part of an amount is a rough number, and so it is upstream"
    )]
    pub(crate) fn of(self, capacity: i64) -> i64 {
        match self {
            Self::Units(units) => units,
            Self::Part(part) => (capacity as f64 * part) as i64,
        }
    }
}

/// From when on there is too little of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    pub(crate) signal: Signal,
    /// There is too little below this.
    pub(crate) value: Amount,
    /// For how long there must be too little before Pods are evicted; a hard threshold has none.
    pub(crate) grace: SignedDuration,
    /// How much more than that must be there before all is well again.
    pub(crate) min_reclaim: Option<Amount>,
}

impl Threshold {
    /// Whether Pods are evicted at once.
    pub(crate) fn is_hard(&self) -> bool {
        self.grace.is_zero()
    }
}

/// Thresholds as a kubelet's configuration has them, by the names of signals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) hard: BTreeMap<String, String>,
    pub(crate) soft: BTreeMap<String, String>,
    pub(crate) soft_grace: BTreeMap<String, String>,
    pub(crate) minimum_reclaim: BTreeMap<String, String>,
}

impl Settings {
    /// What a kubelet does on Linux if nobody says anything.
    pub(crate) fn usual() -> Self {
        let hard = [
            ("memory.available", "100Mi"),
            ("nodefs.available", "10%"),
            ("nodefs.inodesFree", "5%"),
            ("imagefs.available", "15%"),
            ("imagefs.inodesFree", "5%"),
        ];
        let hard = hard.map(|(signal, value)| (signal.to_owned(), value.to_owned())).into();
        Self { hard, ..Self::default() }
    }
}

/// Why settings make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ThresholdError {
    #[error("unsupported eviction signal {0}")]
    Signal(String),
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    NoGrace(Signal),
    #[error("time: invalid duration {0:?}")]
    Duration(String),
    #[error("invalid eviction grace period specified: {0}, must be a positive value")]
    NegativeGrace(String),
    #[error("strconv.ParseFloat: parsing {0:?}: invalid syntax")]
    Percentage(String),
    #[error("eviction percentage threshold {signal} must be {bound}: {value}")]
    PercentageBound { signal: Signal, bound: &'static str, value: String },
    #[error("{0}")]
    Quantity(String),
    #[error("eviction threshold {signal} must be positive: {value}")]
    NotPositive { signal: Signal, value: String },
    #[error("eviction percentage minimum reclaim {signal} must be positive: {value}")]
    ReclaimPercentage { signal: Signal, value: String },
    #[error("negative eviction minimum reclaim specified for {0}")]
    NegativeReclaim(Signal),
}

/// Reads thresholds, hard ones first. That of the node's memory holds for the memory that is allotted
/// to Pods as well.
pub(crate) fn parse(settings: &Settings) -> Result<Vec<Threshold>, ThresholdError> {
    let mut thresholds = Vec::new();
    for (name, text) in &settings.hard {
        thresholds.extend(threshold(signal(name)?, text, SignedDuration::ZERO)?);
    }
    let mut graces = BTreeMap::new();
    for (name, text) in &settings.soft_grace {
        graces.insert(signal(name)?, grace(text)?);
    }
    for (name, text) in &settings.soft {
        let signal = signal(name)?;
        let found = threshold(signal, text, SignedDuration::ZERO)?;
        let grace = *graces.get(&signal).ok_or(ThresholdError::NoGrace(signal))?;
        thresholds.extend(found.map(|found| Threshold { grace, ..found }));
    }
    for (name, text) in &settings.minimum_reclaim {
        let signal = signal(name)?;
        let reclaim = min_reclaim(signal, text)?;
        for threshold in thresholds.iter_mut().filter(|it| it.signal == signal) {
            threshold.min_reclaim = Some(reclaim);
        }
    }
    let memory = thresholds.iter().find(|it| it.signal == Signal::MemoryAvailable && it.is_hard());
    let signal = Signal::AllocatableMemoryAvailable;
    let allotted = memory.map(|memory| Threshold { signal, ..*memory });
    thresholds.extend(allotted);
    Ok(thresholds)
}

fn signal(name: &str) -> Result<Signal, ThresholdError> {
    let found = Signal::ALL.into_iter().find(|signal| signal.name() == name);
    found.ok_or_else(|| ThresholdError::Signal(name.to_owned()))
}

/// None for those that never apply.
fn threshold(
    signal: Signal,
    text: &str,
    grace: SignedDuration,
) -> Result<Option<Threshold>, ThresholdError> {
    let value = if text.ends_with('%') {
        if matches!(text, "0%" | "100%") {
            return Ok(None);
        }
        let part = part(text)?;
        let out_of =
            |bound| Err(ThresholdError::PercentageBound { signal, bound, value: text.to_owned() });
        match part {
            part if part < 0.0 => return out_of(">= 0%"),
            part if part > 1.0 => return out_of("<= 100%"),
            part => Amount::Part(part),
        }
    } else {
        let quantity = quantity(text)?;
        if !quantity.is_positive() {
            return Err(ThresholdError::NotPositive { signal, value: quantity.to_string() });
        }
        Amount::Units(quantity.value())
    };
    Ok(Some(Threshold { signal, value, grace, min_reclaim: None }))
}

fn min_reclaim(signal: Signal, text: &str) -> Result<Amount, ThresholdError> {
    if text.ends_with('%') {
        let part = part(text)?;
        if part <= 0.0 {
            return Err(ThresholdError::ReclaimPercentage { signal, value: text.to_owned() });
        }
        return Ok(Amount::Part(part));
    }
    let quantity = quantity(text)?;
    if quantity.is_negative() {
        return Err(ThresholdError::NegativeReclaim(signal));
    }
    Ok(Amount::Units(quantity.value()))
}

fn part(text: &str) -> Result<f64, ThresholdError> {
    let number = text.trim_end_matches('%').parse::<f64>().ok().filter(|part| part.is_finite());
    Ok(number.ok_or_else(|| ThresholdError::Percentage(text.trim_end_matches('%').to_owned()))?
        / 100.0)
}

fn quantity(text: &str) -> Result<Quantity, ThresholdError> {
    Quantity::parse(text).map_err(|error| ThresholdError::Quantity(error.to_string()))
}

/// A time as Go writes it: `1m30s`, `1.5h`, `500ms`.
fn grace(text: &str) -> Result<SignedDuration, ThresholdError> {
    let invalid = || ThresholdError::Duration(text.to_owned());
    if text.starts_with('-') {
        return Err(ThresholdError::NegativeGrace(text.to_owned()));
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let number: f64 = rest[..end].parse().map_err(|_| invalid())?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(invalid()),
        };
        seconds += number * unit;
        rest = &rest[end..];
    }
    if text.is_empty() {
        return Err(invalid());
    }
    SignedDuration::try_from_secs_f64(seconds).map_err(|_| invalid())
}
