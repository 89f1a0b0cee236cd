//! What clients asked a store, what they were told, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steersman_store::{Entry, Expected, Revision};

/// A moment. Of two moments of one history the earlier has the smaller number.
pub(super) type Moment = u64;

/// A value; no two writes write the same.
pub(super) type Value = u64;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) value: Value,
    pub(super) modified: Revision,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Get { key: usize },
    Write { key: usize, value: Option<Value>, expected: Expected },
    Range,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// To a get.
    Held(Option<Held>),
    /// To a write that happened.
    Written { revision: Revision, previous: Option<Held> },
    /// To a write that did not, with what was found instead of the expected.
    Conflict { found: Option<Revision> },
    /// To a range: what each key held at the revision.
    State { revision: Revision, keys: Vec<Option<Held>> },
    /// Certainly nothing was done.
    Nothing,
}

/// An operation of one client.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) question: Question,
    pub(super) asked: Moment,
    /// Nothing when the client never heard whether it was done.
    pub(super) answer: Option<(Moment, Answer)>,
}

/// The record of all clients.
#[derive(Clone, Default)]
pub(super) struct History {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    clock: AtomicU64,
    values: AtomicU64,
    closed: AtomicBool,
    operations: Mutex<Vec<Operation>>,
}

impl History {
    /// Notes a question, just before it is asked.
    pub(super) fn ask(&self, question: Question) -> usize {
        let mut operations = self.shared.operations.lock().unwrap();
        let asked = self.now();
        operations.push(Operation { question, asked, answer: None });
        operations.len() - 1
    }

    /// Notes an answer, just after it came.
    pub(super) fn answer(&self, operation: usize, answer: Answer) {
        let answered = self.now();
        let mut operations = self.shared.operations.lock().unwrap();
        operations[operation].answer = Some((answered, answer));
    }

    /// A value that nobody has written yet.
    pub(super) fn new_value(&self) -> Value {
        self.shared.values.fetch_add(1, Ordering::SeqCst)
    }

    /// Waits until clients have been told the answers to so many more questions.
    pub(super) async fn grown_by(&self, answers: usize) {
        let answered = || {
            let operations = self.shared.operations.lock().unwrap();
            operations
                .iter()
                .filter(|it| !matches!(it.answer, None | Some((_, Answer::Nothing))))
                .count()
        };
        let enough = answered() + answers;
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while answered() < enough {
            tick.tick().await;
        }
    }

    /// Tells clients to stop.
    pub(super) fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::SeqCst)
    }

    pub(super) fn operations(&self) -> Vec<Operation> {
        self.shared.operations.lock().unwrap().clone()
    }

    fn now(&self) -> Moment {
        self.shared.clock.fetch_add(1, Ordering::SeqCst)
    }
}

impl Operation {
    /// When it was over; a question without an answer may be done at any later time.
    pub(super) fn answered(&self) -> Moment {
        self.answer.as_ref().map_or(Moment::MAX, |(answered, _)| *answered)
    }
}

/// What an entry holds.
pub(super) fn held(entry: &Entry) -> Held {
    let value = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
    Held { value, modified: entry.modified }
}
