//! A run of this program, and how much it measures.

use std::time::Duration;

use crate::measured::System;
use crate::place::Place;

/// How much is measured.
pub(crate) struct Extent {
    /// How often puts are measured.
    pub(crate) rounds: usize,
    /// How long puts and gets last.
    pub(crate) lasting: Duration,
    /// How many keys there are.
    pub(crate) keys: usize,
    /// How often each is written before a store is opened again.
    pub(crate) writes_per_key: usize,
    /// How many Pods are held in memory.
    pub(crate) pods: usize,
    /// How often a range is read.
    pub(crate) ranges: usize,
    /// How many writes are watched.
    pub(crate) writes_watched: usize,
}

/// A run of this program.
pub(crate) struct Bench {
    pub(crate) extent: Extent,
    pub(crate) place: Place,
    /// The one system to measure, if not all.
    pub(crate) system: Option<String>,
}

impl Bench {
    pub(crate) fn measures(&self, system: System) -> bool {
        self.system.as_deref().is_none_or(|only| only == system.name())
    }
}

impl Extent {
    /// A tenth of everything if it is to be quick; `rounds` if somebody chose.
    pub(crate) fn new(quick: bool, rounds: Option<usize>) -> Self {
        if quick {
            Self {
                rounds: rounds.unwrap_or(1),
                lasting: Duration::from_millis(700),
                keys: 10_000,
                writes_per_key: 10,
                pods: 15_000,
                ranges: 3,
                writes_watched: 50,
            }
        } else {
            Self {
                rounds: rounds.unwrap_or(3),
                lasting: Duration::from_secs(2),
                keys: 100_000,
                writes_per_key: 10,
                pods: 150_000,
                ranges: 3,
                writes_watched: 200,
            }
        }
    }
}
