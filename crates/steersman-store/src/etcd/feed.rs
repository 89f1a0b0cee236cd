//! Feeds the index: everything at one revision, then every change after it, for ever.
//!
//! One watch covers all keys of etcd, so that every revision is heard of, also those that are
//! none of the store's. A watch that is lost is resumed right after the index's revision, at
//! another member. If that is compacted, or if the cluster has become another one, everything is
//! read anew: the only time that watches of the store miss something, and they are told.
//! Nobody else writes to the index.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::client::{Client, RANGE, Watching};
use super::compaction;
use super::error::Failure;
use super::keys::{KeyRange, Keys, number, revision};
use super::load::{load, oldest};
use super::progress::{Progress, STALL};
use super::wire::{
    Event, EventType, Header, KeyValue, RangeRequest, RangeResponse, WatchCreateRequest,
    WatchRequest, WatchResponse,
};
use crate::Revision;
use crate::index::{Change, Index};

/// The wait after a loss; it doubles from the first to the second until something is heard.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How long the question where etcd is may take before a watch is opened.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to open a watch.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// For how long a watch may be silent while somebody waits for it: it doubles from [`STALL`] to
/// this as long as nothing is heard, for there may be much to read before anything is.
const PATIENCE_MAX: Duration = Duration::from_secs(24);
/// How many revisions' changes are read at start, at most. etcd reads what a late watch has missed
/// a thousand revisions at a time and from the beginning of it to the end each time: ten thousand
/// take a second, a hundred thousand half a minute.
const START_HISTORY: u64 = 10_000;
/// The history may grow by this share beyond its limit before it is cut, so that cutting is rare.
const HISTORY_SLACK: u64 = 10;
/// History that is kept in any case: watches that keep up must find their next change.
const HISTORY_MIN: u64 = 10_000;

/// What follows etcd.
pub(super) struct Feed {
    pub(super) client: Arc<Client>,
    pub(super) index: Arc<Index>,
    pub(super) progress: Arc<Progress>,
    pub(super) keys: Keys,
    /// How many revisions to keep the changes of.
    pub(super) history: u64,
    /// By which to know the history again after a loss.
    pub(super) landmark: Option<Landmark>,
    /// How long the watch may be silent while somebody waits for it.
    pub(super) patience: Duration,
}

/// A key and the revision that it was last put at, if nobody has changed it since. In another
/// history, such as that of a backup that was put back, it is hardly the same.
pub(super) struct Landmark {
    key: Bytes,
    modified: Revision,
}

/// Why a watch ended.
#[derive(Debug)]
enum Ended {
    /// It can be resumed.
    Lost(String),
    /// What comes next is compacted.
    Compacted,
}

impl Feed {
    /// Reads everything as of some time ago, so that watches can resume from there, and gives
    /// where etcd is now.
    pub(super) async fn start(&mut self) -> Result<Header, Failure> {
        loop {
            let head = self.client.head(Instant::now() + HEAD_TIMEOUT).await?;
            let history = self.history.min(START_HISTORY);
            let from = oldest(&self.client, revision(head.revision), history).await?;
            match self.reload(head, from).await {
                // Compacted just now.
                Err(Failure::Compacted) => {}
                loaded => return loaded.map(|()| head),
            }
        }
    }

    /// Follows etcd for ever.
    pub(super) async fn run(mut self) {
        let mut backoff = BACKOFF.0;
        loop {
            let before = self.index.revision();
            let ended = self.follow().await;
            if self.index.revision() > before {
                backoff = BACKOFF.0;
            }
            match ended {
                Ok(Ended::Lost(reason)) => {
                    tracing::warn!(reason, "etcd watch lost; resuming it");
                }
                Ok(Ended::Compacted) => {
                    tracing::warn!("etcd watch expired: its revision is compacted; relisting");
                    match self.start_over().await {
                        Ok(()) => continue,
                        Err(failure) => tracing::warn!(?failure, "etcd relist failed; retrying"),
                    }
                }
                Err(failure) => tracing::warn!(?failure, "etcd watch failed; retrying"),
            }
            sleep(backoff).await;
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }

    /// Follows etcd until the watch ends.
    async fn follow(&mut self) -> Result<Ended, Failure> {
        let head = self.client.head(Instant::now() + HEAD_TIMEOUT).await?;
        if !self.is_same_history(head).await? {
            let was = self.index.revision();
            let is = head.revision;
            tracing::error!(%was, is, "etcd history replaced; relisting");
            self.start_over().await?;
        }
        let deadline = Instant::now() + OPEN_TIMEOUT;
        let (place, watch) = self.client.watch(self.next_changes(), deadline).await;
        let ended = match watch {
            Ok(watch) => self.take_all(watch).await,
            Err(Failure::Compacted) => return Ok(Ended::Compacted),
            Err(failure) => Err(failure),
        };
        if !matches!(ended, Ok(Ended::Compacted)) {
            self.client.avoid(place);
        }
        ended
    }

    /// Whether etcd's history goes on from where the index is.
    async fn is_same_history(&self, head: Header) -> Result<bool, Failure> {
        let position = self.progress.position();
        if head.cluster_id != position.cluster || revision(head.revision) < position.revision {
            return Ok(false);
        }
        let Some(Landmark { key, modified }) = &self.landmark else { return Ok(true) };
        let key = Bytes::clone(key);
        let revision = number(position.revision);
        let request = RangeRequest { key, revision, keys_only: true, ..RangeRequest::default() };
        let deadline = Instant::now() + HEAD_TIMEOUT;
        match self.client.call::<_, RangeResponse>(RANGE, &request, deadline).await {
            Ok(found) => Ok(found.kvs.iter().any(|kv| kv.mod_revision == number(*modified))),
            // Nobody can tell, and the watch will be told the same.
            Err(Failure::Compacted) => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    fn next_changes(&self) -> WatchRequest {
        let KeyRange { key, end } = KeyRange::everything();
        let next = Revision(self.index.revision().0 + 1);
        let range_end = end;
        let start_revision = number(next);
        let create = WatchCreateRequest { key, range_end, start_revision, fragment: true };
        WatchRequest { create: Some(create) }
    }

    /// Takes whatever comes, until nothing does any more.
    async fn take_all(&mut self, mut watch: Watching) -> Result<Ended, Failure> {
        let mut events = Vec::new();
        let mut heard = Instant::now();
        loop {
            let response = tokio::select! {
                biased;
                response = watch.next() => response?,
                () = self.progress.suspected() => {
                    // It has just been opened, or much is coming in of which nothing is seen yet.
                    if heard.elapsed() < self.patience {
                        continue;
                    }
                    self.patience = (self.patience * 2).min(PATIENCE_MAX);
                    return Ok(Ended::Lost("it stands still".into()));
                }
            };
            (heard, self.patience) = (Instant::now(), STALL);
            if let Some(ended) = self.look(&response).await {
                return Ok(ended);
            }
            events.extend(response.events);
            let complete = if response.fragment { complete(&events) } else { events.len() };
            if complete > 0 {
                let rest = events.split_off(complete);
                self.apply(std::mem::replace(&mut events, rest)).await;
            }
        }
    }

    /// Whether a response says that the watch has ended.
    async fn look(&self, response: &WatchResponse) -> Option<Ended> {
        let cluster = response.header.map(|header| header.cluster_id);
        if cluster.is_some_and(|cluster| cluster != self.progress.position().cluster) {
            return Some(Ended::Lost("it is another cluster's".into()));
        }
        if response.compact_revision > 0 {
            return Some(Ended::Compacted);
        }
        if response.canceled {
            // 3.4 does not tell an unknown token from one that may not watch.
            self.client.forget_token(None).await;
            return Some(Ended::Lost(response.cancel_reason.clone()));
        }
        None
    }

    /// Shows changes to readers and watches. They end with the last one of a revision.
    async fn apply(&mut self, events: Vec<Event>) {
        let heard = self.index.revision();
        let mut changes = Vec::with_capacity(events.len());
        let mut last = heard;
        let mut compacted = None;
        for event in events {
            let is_put = event.r#type == EventType::Put as i32;
            let Some(kv) = event.kv else { continue };
            let revision = revision(kv.mod_revision);
            if revision <= heard {
                continue;
            }
            last = revision;
            self.mark(&kv, is_put);
            if is_put && let Some(told) = compaction::told(&kv) {
                compacted = Some(told);
            }
            if let Some(key) = self.keys.in_store(&kv.key) {
                changes.push(Change { revision, key, value: is_put.then(|| kv.value.into()) });
            }
        }
        self.index.apply(changes);
        self.index.advance(last);
        self.progress.advance(last);
        self.forget(compacted).await;
    }

    /// Keeps the landmark up to date.
    fn mark(&mut self, kv: &KeyValue, is_put: bool) {
        if is_put {
            let key = Bytes::copy_from_slice(&kv.key);
            let modified = revision(kv.mod_revision);
            self.landmark = Some(Landmark { key, modified });
        } else if self.landmark.as_ref().is_some_and(|landmark| landmark.key == kv.key) {
            self.landmark = None;
        }
    }

    /// Forgets what another process, or this one, has compacted, and what is too much.
    async fn forget(&self, compacted: Option<Revision>) {
        let oldest = self.index.stats().oldest;
        let latest = self.index.revision();
        let mut until = compacted.unwrap_or_default();
        let kept = self.history.max(HISTORY_MIN);
        if latest.0.saturating_sub(oldest.0) > kept + kept / HISTORY_SLACK {
            until = until.max(Revision(latest.0 - kept));
        }
        if until > oldest && until <= latest {
            let done = self.index.compact(until).await;
            tracing::debug!(%until, ?done, "history compacted");
        }
    }

    /// Reads everything as of now.
    async fn start_over(&mut self) -> Result<(), Failure> {
        loop {
            let head = self.client.head(Instant::now() + HEAD_TIMEOUT).await?;
            match self.reload(head, revision(head.revision)).await {
                Err(Failure::Compacted) => {}
                done => return done,
            }
        }
    }

    async fn reload(&mut self, head: Header, at: Revision) -> Result<(), Failure> {
        let entries = load(&self.client, &self.keys, at).await?;
        tracing::info!(keys = entries.len(), revision = %at, "listed everything from etcd");
        self.landmark = None;
        self.index.reset(entries, at);
        self.progress.start_over(head.cluster_id, at);
        Ok(())
    }
}

/// How many changes of a response that goes on are complete: those of one revision must be seen
/// together, and the last one may have more. The rest of a long response is not waited for, since
/// after a loss that may be a thousand large values.
fn complete(events: &[Event]) -> usize {
    let at = |event: &Event| event.kv.as_ref().map(|kv| kv.mod_revision);
    let last = events.last().and_then(at);
    events.iter().position(|event| at(event) == last).unwrap_or(0)
}
