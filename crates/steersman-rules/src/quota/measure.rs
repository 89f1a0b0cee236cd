//! What one object uses, measured once for all quotas.

use jiff::Timestamp;

use super::amounts::Amounts;
use super::scopes::Traits;

/// What one object uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// What it uses for as long as it is stored.
    pub(super) stored: Amounts,
    /// What it uses besides while it is at work.
    pub(super) at_work: Amounts,
    /// When it counts as no longer at work, if its end has begun.
    pub(super) ends: Option<Timestamp>,
    /// What scopes ask about.
    pub(super) traits: Traits,
}

impl Measure {
    /// What is used for as long as an object is stored, whatever becomes of it.
    pub(super) fn stored(stored: Amounts) -> Self {
        Self { stored, ..Self::default() }
    }

    /// All that it uses at a time.
    pub fn usage(&self, now: Timestamp) -> Amounts {
        let mut usage = self.stored.clone();
        if self.ends.is_none_or(|end| now <= end) {
            usage.add(&self.at_work);
        }
        usage
    }
}
