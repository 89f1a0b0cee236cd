//! The state of a store and its history: plain data, no locks, no waiting.
//!
//! Two views of the same writes are kept. `keys` answers "what was there at revision r",
//! `log` answers "what changed after revision r". Compaction shortens both by walking the
//! part of the log that it drops, so it costs what it frees, not what is kept.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::folders::Folders;
use super::topics::{Topic, Topics};
use super::versions::{Versions, shrink_if_sparse};
use super::{Change, Stats};
use crate::{Entry, Event, Key, RangeRequest, RangeResponse, Revision, StoreError};

/// Changes that one look at the log returns at most.
pub(super) const BATCH_MAX: usize = 512;
/// Changes that one look at the log passes over at most, matching or not: bounds the time
/// under the lock.
const SCAN_MAX: usize = 8 * BATCH_MAX;
/// Bytes of values that one look at the log returns, unless a single change has more. A reader that
/// takes its time keeps them alive after history has let go of them.
const BATCH_BYTES: usize = 256 * 1024;
/// Changes that one step of compaction drops at most, for the same reason.
const COMPACT_MAX: usize = 1024;
/// What a change takes beside the value that it replaced: an event, its place in the log, and a
/// version of its key.
const CHANGE_BYTES: usize = 256;

/// Everything a store holds.
#[derive(Debug)]
pub(super) struct State {
    /// Every key that exists at some readable revision. Keys deleted since the last
    /// compaction are still here, and ranges step over them.
    keys: BTreeMap<Key, Versions>,
    /// How many keys of each folder exist at the latest revision; none is zero.
    folders: Folders,
    /// Every change after `oldest`, ordered by revision.
    log: VecDeque<Arc<Event>>,
    /// Who watches what.
    topics: Topics,
    /// What the log keeps alive that the latest state does not need, in bytes.
    history: usize,
    /// How large that may become. What is older then goes, however young it is: a writer of large
    /// values must not fill the memory before the next compaction.
    history_max: usize,
    /// How many of `keys` exist at the latest revision.
    live: usize,
    /// The oldest revision that can be read, and watched after.
    oldest: Revision,
    /// The revision of the last write.
    revision: Revision,
    /// How often everything was replaced by something else. Watches of before have no place in
    /// what came after.
    epoch: u64,
}

/// What a look at the log found.
#[derive(Debug)]
pub(super) struct Scan {
    /// The matching changes.
    pub(super) events: Vec<Arc<Event>>,
    /// Every change up to here has been looked at.
    pub(super) scanned: Revision,
    /// Whether there was more to look at.
    pub(super) more: bool,
}

impl State {
    pub(super) fn new(history_max: usize) -> Self {
        Self {
            keys: BTreeMap::new(),
            folders: Folders::default(),
            log: VecDeque::new(),
            topics: Topics::default(),
            history: 0,
            history_max,
            live: 0,
            oldest: Revision(0),
            revision: Revision(1),
            epoch: 0,
        }
    }

    /// A copy that nobody watches. Values and events are shared.
    pub(super) fn fork(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            folders: self.folders.clone(),
            log: self.log.clone(),
            topics: Topics::default(),
            ..*self
        }
    }

    /// Becomes what is given, as of a revision, without any history. Entries come ordered by
    /// key. Every watch is told that history has passed it by: what lies between is not known.
    pub(super) fn reset(&mut self, entries: Vec<Entry>, revision: Revision) {
        self.folders = Folders::default();
        entries.iter().for_each(|entry| self.folders.add(&entry.key));
        self.live = entries.len();
        let versions =
            |entry: Entry| (entry.key.clone(), Versions::new(entry.modified, Some(entry)));
        self.keys = entries.into_iter().map(versions).collect();
        self.log = VecDeque::new();
        self.history = 0;
        self.topics.reset(revision);
        self.oldest = revision;
        self.revision = revision;
        self.epoch += 1;
    }

    /// The revision of the last write.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// How often everything was replaced.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Everyone who watches.
    pub(super) fn watched(&self) -> Vec<Arc<Topic>> {
        self.topics.all()
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            keys: self.live,
            history: self.log.len(),
            history_bytes: self.history,
            oldest: self.oldest,
            revision: self.revision,
        }
    }

    /// Replaces the values of a folder by others that mean the same, history included.
    pub(super) fn replace_values(&mut self, folder: &str, value: impl Fn(Entry) -> Bytes) {
        let replace = |entry: &mut Entry| entry.value = value(entry.clone());
        let keys = self.keys.range_mut::<str, _>((Bound::Included(folder), Bound::Unbounded));
        let keys = keys.take_while(|(key, _)| key.starts_with(folder));
        keys.flat_map(|(_, versions)| versions.entries_mut()).for_each(replace);
        for event in self.log.iter_mut().filter(|event| event.key.starts_with(folder)) {
            self.history -= size(event);
            let mut replaced = Event::clone(event);
            [&mut replaced.current, &mut replaced.previous].into_iter().flatten().for_each(replace);
            self.history += size(&replaced);
            *event = Arc::new(replaced);
        }
    }

    /// Whether the state at a revision, and the changes after it, can be read.
    pub(super) fn check_kept(&self, requested: Revision) -> Result<(), StoreError> {
        if requested > self.revision {
            return Err(StoreError::Future { requested, current: self.revision });
        }
        if requested < self.oldest {
            return Err(StoreError::Compacted { requested, oldest: self.oldest });
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry> {
        self.keys.get(key)?.latest().cloned()
    }

    /// The entry of a key as it was at a revision.
    pub(super) fn at(&self, key: &str, revision: Revision) -> Result<Option<Entry>, StoreError> {
        self.check_kept(revision)?;
        Ok(self.keys.get(key).and_then(|versions| versions.at(revision)).cloned())
    }

    pub(super) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, StoreError> {
        let revision = request.at.unwrap_or(self.revision);
        self.check_kept(revision)?;
        let prefix = request.prefix.as_str();
        if revision == self.revision && self.folders.is_empty(prefix) {
            let remaining = request.count.then_some(0);
            return Ok(RangeResponse { entries: Vec::new(), revision, more: false, remaining });
        }
        let start = request.start.as_deref().map_or(prefix, |start| start.max(prefix));
        let mut matching = self
            .keys
            .range::<str, _>((Bound::Included(start), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(_, versions)| versions.at(revision));
        let limit = if request.limit == 0 { usize::MAX } else { request.limit };
        let wanted = |entry: &Entry| match request.keys_only {
            true => Entry { key: Key::clone(&entry.key), value: Bytes::new(), ..*entry },
            false => entry.clone(),
        };
        let entries: Vec<Entry> = matching.by_ref().take(limit).map(wanted).collect();
        let more = matching.next().is_some();
        let first_page = request.start.is_none() && revision == self.revision;
        let remaining = request.count.then(|| match self.folders.count(prefix) {
            _ if !more => 0,
            Some(all) if first_page => all - entries.len(),
            _ => 1 + matching.count(),
        });
        Ok(RangeResponse { entries, revision, more, remaining })
    }

    /// Takes the next change, and gives what was there before and whom it concerns. Changes come
    /// ordered by revision. A deletion of what does not exist changes nothing but the revision.
    pub(super) fn apply(&mut self, change: Change) -> (Option<Entry>, Vec<Arc<Topic>>) {
        let Change { revision, key, value } = change;
        debug_assert!(revision >= self.revision, "changes come in order");
        self.revision = revision;
        // Looked up once: in a large store this is most of what a write costs.
        let mut versions = self.keys.get_mut(&key);
        let previous = versions.as_ref().and_then(|versions| versions.latest()).cloned();
        if previous.is_none() && value.is_none() {
            return (None, Vec::new());
        }
        // All versions of a key share the key's memory.
        let key = previous.as_ref().map_or(key, |previous| Key::clone(&previous.key));
        let current = value.map(|value| Entry {
            key: Key::clone(&key),
            value,
            created: previous.as_ref().map_or(revision, |previous| previous.created),
            modified: revision,
        });
        match &mut versions {
            Some(versions) => versions.push(revision, current.clone()),
            None => {
                let versions = Versions::new(revision, current.clone());
                self.keys.insert(Key::clone(&key), versions);
            }
        }
        self.live = self.live + usize::from(current.is_some()) - usize::from(previous.is_some());
        match (&previous, &current) {
            (None, Some(_)) => self.folders.add(&key),
            (Some(_), None) => self.folders.remove(&key),
            _ => {}
        }
        let concerned = self.topics.changed(&key, revision);
        self.remember(Event { revision, key, current, previous: previous.clone() });
        (previous, concerned)
    }

    /// Nothing changed until this revision.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }

    /// Adds the newest change to the log, which must not become too large.
    fn remember(&mut self, event: Event) {
        self.history += size(&event);
        self.log.push_back(Arc::new(event));
        while self.history > self.history_max && self.log.len() > 1 {
            let oldest = self.log[0].revision;
            self.forget(1, oldest);
        }
    }

    /// Begins a watch of the changes after a revision.
    pub(super) fn watch(
        &mut self,
        prefix: &str,
        after: Revision,
    ) -> Result<(Arc<Topic>, watch::Receiver<()>), StoreError> {
        self.check_kept(after)?;
        Ok(self.topics.join(prefix, &(self.oldest..self.revision)))
    }

    /// Ends a watch.
    pub(super) fn unwatch(&mut self, topic: &Topic) {
        self.topics.leave(topic);
    }

    /// Looks at the changes after a revision, as many as one look may take, or one however large;
    /// those of one revision stay together. A watch may lie behind the log as long as nothing of its folder was dropped
    /// from it: it has missed nothing.
    pub(super) fn scan(
        &self,
        after: Revision,
        prefix: &str,
        topic: &Topic,
    ) -> Result<Scan, StoreError> {
        if topic.last_change() <= after {
            return Ok(Scan { events: Vec::new(), scanned: self.revision, more: false });
        }
        if topic.last_dropped() > after {
            return Err(StoreError::Compacted { requested: after, oldest: self.oldest });
        }
        let mut scan = Scan { events: Vec::new(), scanned: after, more: true };
        let mut bytes = 0;
        for (seen, event) in self.log.range(self.position_after(after)..).enumerate() {
            let enough = scan.events.len() >= BATCH_MAX || bytes >= BATCH_BYTES;
            let full = enough || seen >= SCAN_MAX;
            if full && event.revision > scan.scanned {
                return Ok(scan);
            }
            scan.scanned = event.revision;
            if event.key.starts_with(prefix) {
                bytes += length(&event.current) + length(&event.previous);
                scan.events.push(Arc::clone(event));
            }
        }
        Ok(Scan { scanned: self.revision, more: false, ..scan })
    }

    /// The last revision up to which nothing under the prefix changed after `after`.
    pub(super) fn unchanged_until(&self, after: Revision, prefix: &str, topic: &Topic) -> Revision {
        if topic.last_change() <= after {
            return self.revision;
        }
        if topic.last_dropped() > after {
            return after;
        }
        let changed = self
            .log
            .range(self.position_after(after)..)
            .find(|event| event.key.starts_with(prefix));
        changed.map_or(self.revision, |event| Revision(event.revision.0 - 1))
    }

    /// Forgets some of the history before `oldest`; true once all of it is forgotten.
    pub(super) fn compact_step(&mut self, oldest: Revision) -> Result<bool, StoreError> {
        if oldest > self.revision {
            return Err(StoreError::Future { requested: oldest, current: self.revision });
        }
        if oldest <= self.oldest {
            return Ok(true);
        }
        let dropped = self.position_after(oldest);
        let finished = dropped <= COMPACT_MAX;
        let dropped = dropped.min(COMPACT_MAX);
        let oldest = if finished { oldest } else { self.log[dropped - 1].revision };
        self.forget(dropped, oldest);
        shrink_if_sparse(&mut self.log);
        Ok(finished)
    }

    /// Drops so many changes from the log, and what cannot be seen without them.
    fn forget(&mut self, count: usize, oldest: Revision) {
        self.oldest = oldest;
        for event in self.log.drain(..count) {
            self.history -= size(&event);
            self.topics.dropped(&event.key, event.revision);
            // Only a key that was written has versions to lose.
            let left = self.keys.get_mut(&event.key).map(|versions| versions.compact(self.oldest));
            if left == Some(false) {
                self.keys.remove(&event.key);
            }
        }
    }

    /// Where in the log the changes after a revision begin.
    fn position_after(&self, revision: Revision) -> usize {
        self.log.partition_point(|event| event.revision <= revision)
    }
}

/// What a change keeps alive: the value that it replaced or deleted. The one that it wrote belongs
/// to the latest state, or else to the change that replaced it.
fn size(event: &Event) -> usize {
    CHANGE_BYTES + length(&event.previous)
}

fn length(entry: &Option<Entry>) -> usize {
    entry.as_ref().map_or(0, |entry| entry.value.len())
}

#[cfg(test)]
mod tests;
