//! Probes: whether a container has started, lives and is ready.
//!
//! A [`Worker`] decides for one probe of one container when to look and what follows from it (pure);
//! [`ContainerProbes`] has those of a container, and what its status and its Pod's worker ask of
//! them. [`probe`] looks once, by [HTTP](http), [TCP](tcp), [gRPC](grpc) or a command in the container.
//! Who runs probes, for each worker, every period:
//!
//! 1. [`Worker::look`] at what is observed of the container;
//! 2. if it says [`Step::Probe`], [`probe`] beside everything else, tell people of [`Answer::event`],
//!    and hand the answer to [`Worker::answered`];
//! 3. write status anew if that says that the [`Verdict`] changed, and restart the container if
//!    [`ContainerProbes::failed`].

mod container;
mod grpc;
mod http;
mod run;
mod target;
mod tcp;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt::{self, Display};

pub(crate) use container::ContainerProbes;
pub(crate) use http::{Called, call};
pub(crate) use run::{Exec, ExecError, ExecOutput, Target, probe};
pub(crate) use worker::{Observed, Phase, Step, Verdict, Worker};

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Whether the container has started; until then the others wait.
    Startup,
    /// Whether it has to be restarted.
    Liveness,
    /// Whether it can be used.
    Readiness,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        })
    }
}

/// What a single look at a container showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Success,
    /// It went well, but people should know something.
    Warning(String),
    Failure(String),
    /// Nothing is known: the probe itself went wrong. Counts as nothing.
    Unknown(String),
    /// The probe itself went wrong while it read an answer. Counts as nothing.
    Broken(String),
}

/// What people are told of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeEvent {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Answer {
    /// The Event about the container, always a warning, if there is one.
    pub(crate) fn event(&self, kind: Kind) -> Option<ProbeEvent> {
        let errored = |state: &str, why: &String| {
            format!("{kind} probe errored and resulted in {state} state: {why}")
        };
        let (reason, message) = match self {
            Self::Success => return None,
            Self::Warning(why) => ("ProbeWarning", format!("{kind} probe warning: {why}")),
            Self::Failure(why) => ("Unhealthy", format!("{kind} probe failed: {why}")),
            Self::Unknown(why) => ("Unhealthy", errored("unknown", why)),
            Self::Broken(why) => ("Unhealthy", errored("failure", why)),
        };
        Some(ProbeEvent { reason, message })
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Broken(_))
    }
}
