//! A look into a queue: what waits, runs and backs off, and why.

use serde::Serialize;

use super::core::{Running, Wanted};
use super::time::Tick;
use super::{Key, Priority, WorkQueue};

/// A queue at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dump<T> {
    /// The queue's name.
    pub name: String,
    /// Its keys: those that run, then those that wait in the order in which they were added,
    /// then those that are due later in the order in which they are due.
    pub keys: Vec<KeyDump<T>>,
}

/// A key at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyDump<T> {
    /// The key.
    pub key: T,
    /// What is happening to it.
    pub state: KeyState,
    /// Whether it runs and is wanted once more: at once, or when it is due.
    pub again: bool,
    /// How urgent it is.
    pub priority: Priority,
    /// For how long it has been running or waiting; a queue without metrics does not always
    /// know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// In how many seconds it is due, if that is later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_in_seconds: Option<f64>,
    /// How often it has failed since it was forgotten.
    pub failures: u32,
    /// Why it is here, if somebody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is happening to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyState {
    /// A worker works on it.
    Running,
    /// It waits for a worker.
    Waiting,
    /// It is wanted later.
    Delayed,
    /// It is wanted later because it failed.
    BackingOff,
}

impl<T: Key> WorkQueue<T> {
    /// What waits, runs and backs off.
    ///
    /// The queue stands still while its keys are copied, each with its `clone`: for as long as
    /// that takes, nobody adds or gets a key.
    pub fn dump(&self) -> Dump<T> {
        self.dump_with(|_| None)
    }

    /// What waits, runs and backs off; `reason` knows why, because causes live outside of the
    /// queue. The queue stands still for a [copy](Self::dump), not while `reason` is asked.
    pub(crate) fn dump_with(&self, reason: impl Fn(&T) -> Option<String>) -> Dump<T> {
        let now = self.shared.clock.now();
        // Only copied under the lock: limiter and `reason` are not called there.
        let mut found: Vec<_> = self.shared.step(|state| {
            self.shared.catch_up(&mut state.core);
            let copied = |(key, wanted, running): (&T, _, _)| (key.clone(), wanted, running);
            state.core.keys().map(copied).collect()
        });
        found.sort_by_key(|(_, wanted, running)| place(*wanted, *running));
        let keys = found.into_iter().map(|(key, wanted, running)| KeyDump {
            state: self.state_of(&key, wanted, running),
            again: running.is_some() && wanted.is_some(),
            priority: priority(wanted, running),
            seconds: since(wanted, running).map(|then| now.since(then).as_secs_f64()),
            due_in_seconds: due(wanted).map(|due| due.since(now).as_secs_f64()),
            failures: self.num_requeues(&key),
            reason: reason(&key),
            key,
        });
        Dump { name: self.shared.name.to_string(), keys: keys.collect() }
    }

    fn state_of(&self, key: &T, wanted: Option<Wanted>, running: Option<Running>) -> KeyState {
        match (running, due(wanted)) {
            (Some(_), _) => KeyState::Running,
            (None, None) => KeyState::Waiting,
            (None, Some(_)) if self.shared.retries.contains(key) => KeyState::BackingOff,
            (None, Some(_)) => KeyState::Delayed,
        }
    }
}

/// Orders the keys of a dump.
fn place(wanted: Option<Wanted>, running: Option<Running>) -> (u8, Tick, u64) {
    match (running, wanted) {
        (Some(running), _) => (0, running.since, 0),
        (None, Some(wanted)) if !wanted.later => (1, Tick(0), wanted.order()),
        (None, Some(wanted)) => (2, wanted.at, wanted.order()),
        (None, None) => (3, Tick(0), 0),
    }
}

fn priority(wanted: Option<Wanted>, running: Option<Running>) -> Priority {
    let running = running.map(|running| running.priority);
    running.or(wanted.map(|wanted| wanted.priority)).unwrap_or_default()
}

fn since(wanted: Option<Wanted>, running: Option<Running>) -> Option<Tick> {
    let waiting = wanted.filter(|wanted| !wanted.later).map(|wanted| wanted.at);
    running.map(|running| running.since).or(waiting).and_then(Tick::known)
}

fn due(wanted: Option<Wanted>) -> Option<Tick> {
    wanted.filter(|wanted| wanted.later).map(|wanted| wanted.at)
}
