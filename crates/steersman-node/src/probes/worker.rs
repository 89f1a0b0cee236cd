//! When a probe looks at its container, and what follows from what it saw.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Probe;

use super::{Answer, Kind};

/// A container that started so long before the agent is taken to have been probed by the agent
/// before it.
const ADOPTED_BEFORE: SignedDuration = SignedDuration::from_secs(10);

/// What is known of a container by a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Success,
    Failure,
    Unknown,
}

/// How far a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Running {
        since: Timestamp,
        /// Whether it has started, by [`ContainerProbes::started`](super::ContainerProbes::started).
        started: bool,
    },
    /// It does not run now.
    Waiting,
    Ended {
        /// Whether it will be started again.
        restarts: bool,
    },
}

/// What is observed of a Pod and one of its containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observed<'a> {
    /// The runtime's name for the container; none as long as there is none.
    pub(crate) container: Option<(&'a str, Phase)>,
    /// Whether the Pod is being deleted.
    pub(crate) deleting: bool,
    /// Whether the Pod has succeeded or failed.
    pub(crate) over: bool,
}

/// What a worker does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until the next period.
    Wait,
    /// Looks at the container.
    Probe,
    /// It is not needed any more.
    Stop,
}

/// One probe of one container, which may be restarted meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    kind: Kind,
    initial_delay: SignedDuration,
    period: SignedDuration,
    success_threshold: i32,
    failure_threshold: i32,
    agent_started: Timestamp,
    /// The container that is probed.
    container: Option<String>,
    /// What is known of it; nothing if another agent knew it.
    verdict: Option<Verdict>,
    /// What was seen last, and how often in a row. It goes on through a restart, as a kubelet's.
    run: Option<(Verdict, i32)>,
    /// Whether nothing is looked at until there is another container.
    on_hold: bool,
}

impl Worker {
    /// A worker of an agent that was started at a time.
    pub(crate) fn new(kind: Kind, probe: &Probe, agent_started: Timestamp) -> Self {
        let seconds = |seconds: Option<i32>, default| {
            SignedDuration::from_secs(i64::from(seconds.unwrap_or(default)))
        };
        Self {
            kind,
            initial_delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds.filter(|period| *period > 0), 10),
            success_threshold: probe.success_threshold.unwrap_or(1),
            failure_threshold: probe.failure_threshold.unwrap_or(3),
            agent_started,
            container: None,
            verdict: None,
            run: None,
            on_hold: false,
        }
    }

    /// How often it is to [`look`](Self::look), beginning at once.
    pub(crate) fn period(&self) -> SignedDuration {
        self.period
    }

    /// What is known of this container; nothing if it was not looked at, or only by another agent.
    pub(crate) fn verdict(&self, container: &str) -> Option<Verdict> {
        self.verdict.filter(|_| self.container.as_deref() == Some(container))
    }

    /// Decides what to do now.
    pub(crate) fn look(&mut self, observed: &Observed<'_>, now: Timestamp) -> Step {
        if observed.over {
            return Step::Stop;
        }
        let Some((container, phase)) = observed.container else { return Step::Wait };
        if self.container.as_deref() != Some(container) {
            self.begin(container, phase);
        }
        if self.on_hold {
            return Step::Wait;
        }
        let (since, started) = match phase {
            Phase::Running { since, started } => (since, started),
            Phase::Waiting | Phase::Ended { restarts: true } => {
                self.verdict = Some(Verdict::Failure);
                return Step::Wait;
            }
            Phase::Ended { restarts: false } => {
                self.verdict = Some(Verdict::Failure);
                return Step::Stop;
            }
        };
        if observed.deleting && self.kind != Kind::Readiness {
            // It ends anyhow; nobody is to restart it.
            self.verdict = Some(Verdict::Success);
            return Step::Stop;
        }
        if now.duration_since(since).as_secs() < self.initial_delay.as_secs() {
            return Step::Wait;
        }
        if started == (self.kind == Kind::Startup) { Step::Wait } else { Step::Probe }
    }

    /// Takes an answer; says whether what is known has changed.
    pub(crate) fn answered(&mut self, container: &str, answer: &Answer) -> bool {
        // Somebody restarted it meanwhile.
        if self.container.as_deref() != Some(container) || self.on_hold {
            return false;
        }
        let seen = match answer {
            Answer::Success | Answer::Warning(_) => Verdict::Success,
            Answer::Failure(_) => Verdict::Failure,
            Answer::Unknown(_) | Answer::Broken(_) => return false,
        };
        let times = match self.run {
            Some((last, times)) if last == seen => times.saturating_add(1),
            _ => 1,
        };
        self.run = Some((seen, times));
        let threshold = match seen {
            Verdict::Success => self.success_threshold,
            _ => self.failure_threshold,
        };
        if times < threshold {
            return false;
        }
        let before = self.verdict.replace(seen);
        if self.kind == Kind::Startup || (self.kind == Kind::Liveness && seen == Verdict::Failure) {
            // A command in a container that is being stopped could do harm.
            self.on_hold = true;
            self.run = Some((seen, 0));
        }
        before != Some(seen)
    }

    /// There is a new container.
    fn begin(&mut self, container: &str, phase: Phase) {
        let adopted = match phase {
            Phase::Running { since, .. } => since < self.agent_started - ADOPTED_BEFORE,
            _ => false,
        };
        self.container = Some(container.to_owned());
        self.verdict = (!adopted).then_some(match self.kind {
            Kind::Readiness => Verdict::Failure,
            Kind::Liveness => Verdict::Success,
            Kind::Startup => Verdict::Unknown,
        });
        // What had started before the agent did need not start again.
        if adopted
            && self.kind == Kind::Startup
            && matches!(phase, Phase::Running { started: true, .. })
        {
            self.verdict = Some(Verdict::Success);
        }
        self.on_hold = false;
    }
}
