//! How many different notes similar events have.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::events::EventForm;
use crate::events::identity::Identity;
use crate::events::reference::Reference;

/// So many different notes are written one by one.
const NOTES_MAX: usize = 10;
/// The same of counted events: the tenth is combined.
const COUNTED_NOTES_MAX: usize = 9;
/// After this long without a similar event, they are written one by one again.
const GROUP_MEMORY: Duration = Duration::from_secs(600);

/// What sets similar events apart.
type Detail = (Option<Reference>, Option<Box<str>>);

/// The notes of a group.
pub(super) struct Notes {
    /// At most [`NOTES_MAX`].
    details: HashSet<Detail>,
    /// When a new one came last.
    pub(super) last: Instant,
}

impl Notes {
    pub(super) fn new(now: Instant) -> Self {
        Self { details: HashSet::new(), last: now }
    }

    /// Whether this event is one too many to be written by itself.
    pub(super) fn exceeded_by(&mut self, identity: &Identity, now: Instant) -> bool {
        if now.saturating_duration_since(self.last) > GROUP_MEMORY {
            self.details.clear();
        }
        self.last = now;
        let detail = (identity.related.clone(), identity.note.clone());
        if self.details.contains(&detail) {
            return false;
        }
        let max = match identity.form() {
            EventForm::Series => NOTES_MAX,
            EventForm::Counted => COUNTED_NOTES_MAX,
        };
        if self.details.len() >= max {
            return true;
        }
        self.details.insert(detail);
        false
    }
}
