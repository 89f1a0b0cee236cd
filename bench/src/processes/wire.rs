//! What a measured process and the benchmark say to each other: one JSON object a line.
//!
//! A subject (a child process, in Rust or Go) tells [`Line`]s on its standard output; the
//! server takes one command a line and answers each with a [`Line`]. Times are nanoseconds of
//! the system's clock, the only one that all processes on a machine share.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The subject has measured something.
    Figure {
        /// What.
        metric: String,
        /// How much.
        value: f64,
    },
    /// What the subject has measured so far.
    Figures(BTreeMap<String, f64>),
    /// The subject is ready to hear of a phase; the benchmark makes the writes.
    Await(Phase),
    /// The subject has heard of every write of a phase.
    Heard {
        /// The phase.
        phase: Phase,
        /// When it heard of the last.
        at: u64,
    },
    /// The server listens; a client finds what it needs in this file.
    Serving {
        /// The path of the kubeconfig.
        kubeconfig: String,
    },
    /// The server has written directly to its store.
    Begun {
        /// When the first was written.
        at: u64,
    },
}

/// What is written while the handlers listen; the annotation [`WRITTEN`] of an object carries the
/// phase and the time of its last write.
///
/// [`WRITTEN`]: steersman_bench_server::WRITTEN
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Patches over HTTPS.
    Patches,
    /// Writes made at once inside the server, so that only the client bounds the rate.
    Burst,
    /// Writes made at once, after each of which a controller asks for the object again and again.
    Spin,
}

impl Phase {
    /// The value of the annotation for a write at this time.
    pub(crate) fn mark(self, at: u64) -> String {
        format!("{}/{at}", self.name())
    }

    /// The phase and time of an annotation's value; `None` before the first write.
    pub(crate) fn parse(mark: &str) -> Option<(Self, u64)> {
        let (name, at) = mark.split_once('/')?;
        Some((Self::named(name)?, at.parse().ok()?))
    }

    /// The phase of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let phases = [Self::Patches, Self::Burst, Self::Spin];
        phases.into_iter().find(|phase| phase.name() == name)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Patches => "patches",
            Self::Burst => "burst",
            Self::Spin => "spin",
        }
    }
}

/// Tells the benchmark something.
pub(crate) fn tell(line: &Line) -> Result<(), String> {
    let text = serde_json::to_string(line).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Tells the benchmark a figure.
pub(crate) fn figure(metric: &str, value: f64) -> Result<(), String> {
    tell(&Line::Figure { metric: metric.to_owned(), value })
}

/// Nanoseconds of the system's clock.
#[expect(clippy::disallowed_methods, reason = "processes compare times, which tokio's cannot")]
pub(crate) fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_its_phase_and_time() {
        assert_eq!(Phase::parse(&Phase::Burst.mark(17)), Some((Phase::Burst, 17)));
        assert_eq!(Phase::parse("0"), None);
    }
}
