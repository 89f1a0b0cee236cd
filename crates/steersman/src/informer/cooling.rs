//! When compact objects that nobody reads any more are let go.
//!
//! Objects stay decoded while they are recently used. What a burst of changes left decoded is looked
//! at a minute later, and again as long as something of it is used: then an idle cache holds
//! nothing decoded, and costs no timer.

use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Warmth;

/// How long an object is unused at least before it is let go.
const UNUSED: Duration = Duration::from_secs(60);
/// So many objects are looked at without a pause.
const AT_ONCE: usize = 256;

/// The decoded objects of an informer's reflectors, and when they are looked at next.
pub(super) struct Cooling {
    warmth: Vec<Warmth>,
    due: Option<Instant>,
    /// How many are still to be looked at, of each, once it is due.
    left: Vec<usize>,
}

impl Cooling {
    pub(super) fn new(warmth: Vec<Warmth>) -> Self {
        Self { warmth, due: None, left: Vec::new() }
    }

    /// When they are looked at next, if there are any.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Something may have been decoded.
    pub(super) fn begin(&mut self) {
        if self.due.is_none() && self.warmth.iter().any(|warmth| warmth.len() > 0) {
            self.due = Some(Instant::now() + UNUSED);
        }
    }

    /// Looks at some, once they are due.
    pub(super) fn step(&mut self) {
        if self.left.is_empty() {
            self.left = self.warmth.iter().map(Warmth::len).collect();
        }
        for (warmth, left) in self.warmth.iter().zip(&mut self.left) {
            let count = AT_ONCE.min(*left);
            warmth.cool(count);
            *left -= count;
        }
        if self.left.iter().all(|left| *left == 0) {
            self.left.clear();
            self.due = None;
            self.begin();
        }
    }
}
