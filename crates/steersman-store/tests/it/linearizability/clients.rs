//! Clients that ask at random, few keys and much contention.

use std::sync::Arc;

use rand::RngExt as _;
use rand::rngs::StdRng;
use steersman_store::{
    Expected, RangeRequest, RangeResponse, Revision, Store, StoreError, WatchRequest, WriteRequest,
    Written,
};
use tokio::task::JoinHandle;

use super::history::{Answer, History, Question, held};
use super::revisions::Change;
use crate::seed;

/// How many keys there are.
pub(super) const KEYS: usize = 3;
const CLIENTS: usize = 8;
const PREFIX: &str = "/register/";

fn name(key: usize) -> String {
    format!("{PREFIX}{key}")
}

fn number(key: &str) -> usize {
    key.strip_prefix(PREFIX).unwrap().parse().unwrap()
}

/// One client.
struct Client {
    store: Arc<dyn Store>,
    history: History,
    random: StdRng,
    /// When each key was last modified, as far as this client knows.
    known: [Option<Revision>; KEYS],
}

/// Starts clients, each with the next of these stores, that ask so many questions each, unless the
/// history is closed before.
pub(super) fn start(
    stores: &[Arc<dyn Store>],
    history: &History,
    random: &mut StdRng,
    questions: usize,
) -> Vec<JoinHandle<()>> {
    let client = |number: usize| Client {
        store: Arc::clone(&stores[number % stores.len()]),
        history: history.clone(),
        random: seed::branch(random),
        known: [None; KEYS],
    };
    let clients: Vec<Client> = (0..CLIENTS).map(client).collect();
    clients.into_iter().map(|client| tokio::spawn(client.run(questions))).collect()
}

/// Every change that a watch tells until it has nothing more to tell.
pub(super) async fn log(store: &dyn Store, after: Revision) -> Vec<Change> {
    let end = store.range(RangeRequest::default()).await.unwrap().revision;
    let request = WatchRequest { prefix: PREFIX.into(), after };
    let mut watch = store.watch(request).await.unwrap();
    let mut log = Vec::new();
    while watch.delivered() < end {
        log.extend(watch.next().await.unwrap().iter().map(|event| Change {
            revision: event.revision,
            key: number(&event.key),
            value: event.current.as_ref().map(|entry| held(entry).value),
        }));
    }
    log
}

impl Client {
    async fn run(mut self, questions: usize) {
        for _ in 0..questions {
            if self.history.is_closed() {
                return;
            }
            let question = self.think();
            let asked = self.history.ask(question.clone());
            if let Some(answer) = self.put(question).await {
                self.history.answer(asked, answer);
            }
            if self.random.random_bool(0.3) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn think(&mut self) -> Question {
        let key = self.random.random_range(0..KEYS);
        let expected = match self.random.random_range(0..10) {
            0..4 => Expected::Any,
            4 => Expected::Absent,
            _ => self.known[key].map_or(Expected::Absent, Expected::Modified),
        };
        match self.random.random_range(0..10) {
            0..3 => Question::Get { key },
            3 => Question::Range,
            4..6 => Question::Write { key, value: None, expected },
            _ => Question::Write { key, value: Some(self.history.new_value()), expected },
        }
    }

    /// Puts a question to the store; no answer if nobody knows whether it was done.
    async fn put(&mut self, question: Question) -> Option<Answer> {
        match question {
            Question::Get { key } => {
                let Ok(entry) = self.store.get(&name(key)).await else {
                    return Some(Answer::Nothing);
                };
                self.known[key] = entry.as_ref().map(|entry| entry.modified);
                Some(Answer::Held(entry.as_ref().map(held)))
            }
            Question::Range => {
                let request = RangeRequest { prefix: PREFIX.into(), ..RangeRequest::default() };
                Some(self.store.range(request).await.map_or(Answer::Nothing, |it| state(&it)))
            }
            Question::Write { key, value, expected } => {
                let value = value.map(|value| value.to_string().into());
                let request = WriteRequest { key: name(key).into(), value, expected, ttl: None };
                let written = self.store.write(request).await;
                if let Ok(Written { revision, .. }) = &written {
                    self.known[key] = Some(*revision);
                }
                write_answer(written)
            }
        }
    }
}

fn state(response: &RangeResponse) -> Answer {
    let mut keys = vec![None; KEYS];
    for entry in &response.entries {
        keys[number(&entry.key)] = Some(held(entry));
    }
    Answer::State { revision: response.revision, keys }
}

fn write_answer(written: Result<Written, StoreError>) -> Option<Answer> {
    match written {
        Ok(Written { revision, previous }) => {
            Some(Answer::Written { revision, previous: previous.as_ref().map(held) })
        }
        Err(StoreError::Conflict { found, .. }) => Some(Answer::Conflict { found }),
        // What reached the disk before it failed is there after the next start.
        Err(StoreError::Unknown { .. } | StoreError::Failed { .. }) => None,
        Err(_) => Some(Answer::Nothing),
    }
}
