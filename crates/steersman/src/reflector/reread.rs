//! Objects that are read by themselves, beside the watch.
//!
//! A change that cannot be decoded is skipped, and is not sent again: the receivers would keep the
//! state before it until the object changes once more, which it may never do, because whoever
//! would change it does not see what it is. So such an object is read again, later each time,
//! until it can be decoded. Others may ask for the same: a conflict, or a write that does not come
//! to be seen, says that what is known of an object is old.
//!
//! What is read this way may be ahead of the watch. It is delivered with its version, and is no
//! progress of the whole; receivers leave the events alone that it has overtaken.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::decode::Decode;
use super::machine::{Following, State, StateOf};
use super::trouble::Trouble;
use super::wire::{Page, WatchStream};
use super::{Delta, Reflector};
use crate::object::ObjectKey;

/// How long after it came an object is read again that cannot be decoded: this, then twice as
/// long each time up to the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// So many objects at most wait to be read. Where more cannot be decoded, the type is wrong, and
/// reading them again is of no use.
const MAX: usize = 256;

/// The objects that are to be read by themselves.
pub(super) struct Rereads {
    waiting: BTreeMap<ObjectKey, Wait>,
    requests: Option<mpsc::Receiver<ObjectKey>>,
    /// The one that is being read.
    reading: Option<(ObjectKey, BoxFuture<'static, Answer>)>,
}

#[derive(Clone, Copy)]
struct Wait {
    due: Instant,
    /// How long the next one is, if this one is in vain.
    next: Duration,
}

/// The text of a list of one object.
pub(super) type Answer = Result<Vec<u8>, Trouble>;

/// What is to be done next about such objects.
pub(super) enum Reread {
    /// It is time to read this one.
    Due(ObjectKey),
    /// This one was read.
    Answered(ObjectKey, Answer),
}

impl Rereads {
    pub(super) fn new() -> Self {
        Self { waiting: BTreeMap::new(), requests: None, reading: None }
    }

    /// Lets others ask for objects.
    pub(super) fn take_requests(&mut self, requests: mpsc::Receiver<ObjectKey>) {
        self.requests = Some(requests);
    }

    /// The whole state was delivered, without these: they exist and cannot be decoded.
    pub(super) fn replaced<'a>(&mut self, skipped: impl Iterator<Item = &'a ObjectKey>) {
        self.waiting.clear();
        skipped.for_each(|key| self.add(key, FIRST));
    }

    /// An object could not be decoded.
    pub(super) fn undecodable(&mut self, key: &ObjectKey) {
        self.add(key, FIRST);
    }

    fn add(&mut self, key: &ObjectKey, after: Duration) {
        if self.waiting.len() < MAX && !self.waiting.contains_key(key) {
            let wait = Wait { due: Instant::now() + after, next: FIRST };
            self.waiting.insert(key.clone(), wait);
        }
    }

    /// The object could not be read, or still not be decoded: it waits for longer.
    fn in_vain(&mut self, key: ObjectKey) {
        let next = self.waiting.get(&key).map_or(FIRST, |wait| (wait.next * 2).min(LONGEST));
        self.waiting.insert(key, Wait { due: Instant::now() + next, next });
    }

    /// What is to be done next; never ready if there is nothing. Cancel-safe.
    pub(super) async fn next(&mut self) -> Reread {
        loop {
            if let Some((key, answer)) = &mut self.reading {
                let answer = answer.await;
                let key = key.clone();
                self.reading = None;
                return Reread::Answered(key, answer);
            }
            let first = self.waiting.iter().min_by_key(|(_, wait)| wait.due);
            let due = first.map(|(key, wait)| (key.clone(), wait.due));
            let asked = async {
                match &mut self.requests {
                    Some(requests) => requests.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                asked = asked => match asked {
                    Some(key) => self.add(&key, Duration::ZERO),
                    None => self.requests = None,
                },
                key = until(due) => return Reread::Due(key),
            }
        }
    }
}

async fn until(due: Option<(ObjectKey, Instant)>) -> ObjectKey {
    match due {
        Some((key, due)) => {
            tokio::time::sleep_until(due).await;
            key
        }
        None => std::future::pending().await,
    }
}

impl<D: Decode> Reflector<D> {
    /// Goes on with objects that are read by themselves while the watch runs.
    pub(super) async fn reread(
        &mut self,
        reread: Reread,
        following: Following,
        stream: WatchStream,
    ) -> StateOf<D> {
        let watching = State::Watching { following, stream };
        let (key, answer) = match reread {
            Reread::Due(key) => {
                let answer = self.collection.read_one(&key).boxed();
                self.rereads.reading = Some((key, answer));
                return watching;
            }
            Reread::Answered(key, answer) => (key, answer),
        };
        match answer.ok().and_then(|text| self.decode_one(&text)) {
            None => self.rereads.in_vain(key),
            Some(None) => _ = self.rereads.waiting.remove(&key), // the watch tells of its end
            Some(Some(object)) => {
                self.rereads.waiting.remove(&key);
                return self.deliver(Delta::Reread(object), watching).await;
            }
        }
        watching
    }

    /// The one object of a list, if there is one; `None` if it cannot be read.
    fn decode_one(&mut self, text: &[u8]) -> Option<Option<D::Output>> {
        let page: Page<'_> = serde_json::from_slice(text).ok()?;
        match page.items.first() {
            Some(raw) => self.decode_change(raw.get()).ok().map(Some),
            None => Some(None),
        }
    }
}
