//! What an attacker saw.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::caller::Answer;

/// Answers by status, and whatever must not have happened.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// How often each status was seen; what did not come to one is under a word.
    pub(crate) answers: BTreeMap<String, u64>,
    /// What must not be.
    pub(crate) faults: Vec<String>,
    /// What is worth to be known.
    pub(crate) notes: Vec<String>,
    /// The longest that an answer took, in seconds.
    pub(crate) slowest: f64,
}

impl Seen {
    /// Counts an answer, or what came instead.
    pub(crate) fn count(&mut self, answer: &Result<Answer, String>, took: Duration) {
        let name = match answer {
            Ok(answer) => answer.status.to_string(),
            Err(error) if error == "timeout" => error.clone(),
            Err(_) => "cut off".to_owned(),
        };
        self.count_as(&name);
        self.slowest = self.slowest.max(took.as_secs_f64());
    }

    /// Counts something that has a name.
    pub(crate) fn count_as(&mut self, name: &str) {
        *self.answers.entry(name.to_owned()).or_default() += 1;
    }

    /// Remembers what must not be.
    pub(crate) fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    /// Remembers what must not be, if it is.
    pub(crate) fn fault_if(&mut self, wrong: bool, fault: impl Into<String>) {
        if wrong {
            self.fault(fault);
        }
    }

    /// Remembers something.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// How many answers were good.
    pub(crate) fn good(&self) -> u64 {
        let good = self.answers.iter().filter(|(name, _)| name.starts_with('2'));
        good.map(|(_, count)| count).sum()
    }

    /// Adds what another saw.
    pub(crate) fn merge(&mut self, other: Self) {
        for (name, count) in other.answers {
            *self.answers.entry(name).or_default() += count;
        }
        self.faults.extend(other.faults);
        self.notes.extend(other.notes);
        self.slowest = self.slowest.max(other.slowest);
    }

    /// The answers in one line.
    pub(crate) fn described(&self) -> String {
        let each = self.answers.iter().map(|(name, count)| format!("{count}×{name}"));
        each.collect::<Vec<_>>().join(" ")
    }
}
