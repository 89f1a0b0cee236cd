//! What a client is told although its request succeeds.

use std::sync::{Mutex, PoisonError};

/// How many characters of warnings an answer carries before each is cut to [`WARNING_MAX`].
const WARNINGS_MAX: usize = 4096;
const WARNING_MAX: usize = 256;

/// The warnings of one request.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    /// Warnings that begin with these.
    pub(crate) fn of(first: impl IntoIterator<Item = String>) -> Self {
        Self(Mutex::new(first.into_iter().collect()))
    }

    /// Tells the client something that did not stop its request, once.
    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A write that is tried again finds the same again.
        if !warning.is_empty() && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The warnings, each on one line, cut where all together would be too long for headers.
    pub(crate) fn texts(&self) -> Vec<String> {
        let warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let clean = |text: &String| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let mut texts: Vec<String> = warnings.iter().map(clean).collect();
        let length = |text: &String| text.chars().count();
        if texts.iter().map(length).sum::<usize>() > WARNINGS_MAX {
            let cut = |text: &String| text.chars().take(WARNING_MAX).collect();
            let mut left = WARNINGS_MAX;
            texts = texts.iter().map(cut).collect();
            texts.retain(|text: &String| {
                let fits = left > 0;
                left = left.saturating_sub(text.chars().count());
                fits
            });
        }
        texts
    }
}
