//! What is noted of a token while it is judged.

use std::collections::BTreeMap;

use crate::audit::Trail;

/// What is noted of a token that is good.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// What the client is told.
    pub(super) warnings: Vec<String>,
    pub(super) remarks: Remarks,
}

/// What those are told who audit, by its key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks(BTreeMap<&'static str, String>);

impl Remarks {
    pub(super) fn add(&mut self, key: &'static str, text: impl Into<String>) {
        self.0.insert(key, text.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds them to what is audited of a request.
    pub(crate) fn tell(&self, trail: &Trail) {
        self.0.iter().for_each(|(key, text)| trail.annotate(*key, text.as_str()));
    }
}
