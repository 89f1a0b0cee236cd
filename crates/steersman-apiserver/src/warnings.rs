//! What a client is told although its request succeeds.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many characters of warnings an answer carries before each is cut to [`WARNING_MAX`].
const WARNINGS_MAX: usize = 4096;
const WARNING_MAX: usize = 256;

/// How many warnings are kept: more would not fit into headers anyway.
const KEPT_MAX: usize = 1000;

/// The warnings of one request.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Kept>);

/// Warnings in their order, each once.
#[derive(Debug, Default)]
struct Kept {
    list: Vec<String>,
    known: HashSet<String>,
}

impl Warnings {
    /// Warnings that begin with these.
    pub(crate) fn of(first: impl IntoIterator<Item = String>) -> Self {
        let warnings = Self::default();
        first.into_iter().for_each(|warning| warnings.warn(warning));
        warnings
    }

    /// Tells the client something that did not stop its request, once.
    pub(crate) fn warn(&self, warning: String) {
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = warnings.list.len() >= KEPT_MAX;
        // A write that is tried again finds the same again.
        if !warning.is_empty() && !enough && warnings.known.insert(warning.clone()) {
            warnings.list.push(warning);
        }
    }

    /// The warnings, each on one line, cut where all together would be too long for headers.
    pub(crate) fn texts(&self) -> Vec<String> {
        let warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let clean = |text: &String| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let mut texts: Vec<String> = warnings.list.iter().map(clean).collect();
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

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, Warnings};

    #[test]
    fn warnings_are_told_once_and_not_without_end() {
        let warnings = Warnings::of(["first".to_owned()]);
        for n in 0..100_000 {
            warnings.warn(format!("warning {n}"));
            warnings.warn("first".to_owned());
        }
        assert_eq!(warnings.0.lock().unwrap().list.len(), KEPT_MAX);
        let texts = warnings.texts();
        assert!(texts[0] == "first" && texts[1] == "warning 0" && texts.len() < 1000);
    }
}
