//! What simulated containers do: exit, fail, get ready late or never, take their time to end, use
//! more than next to nothing.
//!
//! Unless anybody says otherwise they run for ever and are ready at once; init containers are done
//! at once. A [`Script`] says otherwise. It comes from the [rules](Scripts) of whoever runs the
//! nodes, from annotations of the Pod, or from the name of the image, and of what several say the
//! first in this order counts. See [`annotations`] and [`image`] for how users write them.

mod annotations;
mod image;
mod rules;
#[cfg(test)]
mod tests;

use std::time::Duration;

use steersman_values::Quantity;

pub(crate) use rules::Scripted;
pub use rules::{PodRule, Scripts};

/// What a container does; what is left out follows from where it is in the Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    exits: Option<Exits>,
    /// For how long it runs if it exits.
    after: Option<Duration>,
    /// The reason of its end, unless it follows from the exit code.
    reason: Option<&'static str>,
    ready: Option<Ready>,
    pullable: Option<bool>,
    pre_stop: Option<Duration>,
    termination: Option<Duration>,
    /// How much it uses while it runs.
    cpu: Option<Quantity>,
    memory: Option<Quantity>,
}

/// Whether a container ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exits {
    Never,
    /// With these codes, the first time with the first; the last one repeats.
    With(Vec<i32>),
}

/// When a container that runs is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    After(Duration),
    Never,
}

/// How a container ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    /// For how long it runs.
    pub(crate) after: Duration,
    pub(crate) reason: Option<&'static str>,
}

impl Script {
    /// A container that is done at once, as an init container is.
    pub(crate) fn done_at_once() -> Self {
        Self { exits: Some(Exits::With(vec![0])), ..Self::default() }
    }

    /// What this says, and what `other` says of the rest.
    pub(crate) fn or(self, other: Self) -> Self {
        // How long it runs and why it ends belong to the exit that was asked for.
        let exit_is_open = self.exits.is_none();
        let Self { exits, after, reason, ready, pullable, .. } = other;
        Self {
            after: self.after.or(after.filter(|_| exit_is_open)),
            reason: self.reason.or(reason.filter(|_| exit_is_open)),
            exits: self.exits.or(exits),
            ready: self.ready.or(ready),
            pullable: self.pullable.or(pullable),
            pre_stop: self.pre_stop.or(other.pre_stop),
            termination: self.termination.or(other.termination),
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
        }
    }

    /// How the container ends when it runs for the time with this number, the first being 0.
    pub(crate) fn exit(&self, attempt: i32) -> Option<Exit> {
        let code = match &self.exits {
            Some(Exits::Never) => return None,
            None => self.after.map(|_| 0)?,
            Some(Exits::With(codes)) => {
                let nth = usize::try_from(attempt).unwrap_or(0);
                codes.get(nth).or(codes.last()).copied()?
            }
        };
        Some(Exit { code, after: self.after.unwrap_or_default(), reason: self.reason })
    }

    /// When it is ready.
    pub(crate) fn ready(&self) -> Ready {
        self.ready.unwrap_or(Ready::After(Duration::ZERO))
    }

    /// Whether its image can be pulled.
    pub(crate) fn pullable(&self) -> bool {
        self.pullable.unwrap_or(true)
    }

    /// How long what it does before it stops takes, unless its Pod says how long it sleeps.
    pub(crate) fn pre_stop(&self) -> Duration {
        self.pre_stop.unwrap_or_default()
    }

    /// How long it takes to end when it is told to, if that is its own.
    pub(crate) fn termination(&self) -> Option<Duration> {
        self.termination
    }

    /// How much CPU time it uses while it runs, if anybody says so.
    pub(crate) fn cpu(&self) -> Option<Quantity> {
        self.cpu
    }

    /// How much memory it uses while it runs, if anybody says so.
    pub(crate) fn memory(&self) -> Option<Quantity> {
        self.memory
    }
}
