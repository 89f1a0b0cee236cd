//! What labels say: mostly words that are known when the program is built.

use std::fmt::{self, Write};
use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// What Kubernetes calls an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventName {
    /// To which kind something happened,
    pub(crate) resource: &'static str,
    /// and what.
    pub(crate) action: &'static str,
}

impl fmt::Display for EventName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.resource, self.action)
    }
}

/// The value of a label, which costs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Label {
    Word(&'static str),
    Text(Arc<str>),
    Event(EventName),
}

impl From<&'static str> for Label {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => encoder.write_str(word),
            Self::Text(text) => encoder.write_str(text),
            Self::Event(event) => write!(encoder, "{event}"),
        }
    }
}
