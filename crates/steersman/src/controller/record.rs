//! The record of a reconcile: why it happened, when, and how it ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::cause::Causes;
use crate::error::Error;
use crate::object::ObjectKey;

/// One reconcile, as it happened. Serialises as an object of texts and numbers, for people.
#[derive(Clone, Debug)]
pub struct ReconcileRecord {
    /// The controller's name.
    pub controller: Arc<str>,
    /// Which object.
    pub key: ObjectKey,
    /// Tells this reconcile from the others of this controller: they are counted.
    pub id: u64,
    /// Why it happened.
    pub causes: Causes,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    pub duration: Duration,
}

impl Serialize for ReconcileRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("ReconcileRecord", 7)?;
        record.serialize_field("controller", &*self.controller)?;
        record.serialize_field("key", &self.key)?;
        record.serialize_field("id", &self.id)?;
        record.serialize_field("causes", &self.causes)?;
        record.serialize_field("outcome", &self.outcome.to_string())?;
        record.serialize_field("started", &self.started.to_string())?;
        record.serialize_field("seconds", &self.duration.as_secs_f64())?;
        record.end()
    }
}

/// How a reconcile ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well; the next one comes when something changes.
    Settled,
    /// Well; the next one comes after this time at the latest.
    After(Duration),
    /// With an error; it will be retried.
    Failed(String),
    /// With an error that retrying cannot mend.
    Terminal(String),
    /// With a panic; it will be retried.
    Panicked(String),
    /// It took too long and was aborted; it will be retried.
    TimedOut,
}

impl Outcome {
    /// Whether the reconcile did not do what it was for.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Settled | Self::After(_))
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        if error.is_terminal() { Self::Terminal(text) } else { Self::Failed(text) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled => f.write_str("settled"),
            Self::After(delay) => write!(f, "again in {delay:.1?}"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Terminal(error) => write!(f, "failed for good: {error}"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}
