//! What must be in the directory: every write that was acknowledged, and those that were found
//! there although the child died before it could say so.

use std::collections::BTreeMap;
use std::sync::Arc;

use steersman_store::disk::DiskStore;
use steersman_store::{Entry, Event, RangeRequest, Revision, Store, WatchRequest};

use super::{child, value};

/// What a key holds: the value's name, and the revision that wrote it.
type State = BTreeMap<String, (Revision, String)>;

/// Everything that is known to have been written.
#[derive(Default)]
pub(super) struct Ledger {
    /// By revision: the key, and the name of the value unless it was deleted.
    writes: BTreeMap<Revision, (String, Option<String>)>,
    /// The oldest revision that somebody asked to keep.
    oldest: Revision,
    /// The latest revision that was ever seen.
    latest: Revision,
    /// How many children died since the last check.
    children: usize,
}

impl Ledger {
    /// Takes in what a child said until it died.
    pub(super) fn hear(&mut self, lines: &[String]) {
        self.children += 1;
        lines.iter().for_each(|line| self.hear_line(line));
    }

    fn hear_line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let revision = |word: &str| Revision(word.parse().unwrap());
        match words[..] {
            ["wrote", at, key, name] => {
                self.wrote(revision(at), key, Some(name).filter(|it| *it != "-"));
            }
            ["forgetting", oldest] => self.oldest = self.oldest.max(revision(oldest)),
            // What the test harness says.
            _ => {}
        }
    }

    /// A write was acknowledged.
    pub(super) fn wrote(&mut self, revision: Revision, key: &str, name: Option<&str>) {
        let write = (key.to_owned(), name.map(str::to_owned));
        let before = self.writes.insert(revision, write);
        assert!(before.is_none(), "{revision} was given twice: {before:?}");
        self.latest = self.latest.max(revision);
    }

    /// How many writes are known.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Checks all that a store holds, and takes in what the last child could not say.
    pub(super) async fn check(&mut self, store: &DiskStore) -> Result<(), String> {
        let stats = store.stats();
        if stats.revision < self.latest {
            return Err(format!("at {}, but {} was seen", stats.revision, self.latest));
        }
        if stats.oldest > self.oldest.max(Revision(1)) {
            return Err(format!("{} forgotten, asked for {}", stats.oldest, self.oldest));
        }
        self.latest = stats.revision;
        let base = range(store, Some(stats.oldest)).await?;
        let events = events(store, stats.oldest, stats.revision).await?;
        let mut unsaid = self.check_base(&base, stats.oldest)?;
        unsaid += self.check_events(&events, stats.oldest, stats.revision)?;
        if unsaid > child::TASKS * std::mem::take(&mut self.children) {
            return Err(format!("{unsaid} writes were never acknowledged"));
        }
        let found = range(store, None).await?;
        let expected = replay(base, &events)?;
        (found == expected).then_some(()).ok_or(format!("{found:?}, not {expected:?}"))
    }

    /// The oldest state is what the writes before it lead to. Says how many keys differ because of
    /// a write that nobody could say, and that is forgotten already.
    fn check_base(&self, base: &State, oldest: Revision) -> Result<usize, String> {
        let mut expected = BTreeMap::new();
        for (revision, (key, name)) in self.writes.range(..=oldest) {
            expected.insert(key.clone(), (*revision, name.clone()));
        }
        let mut unsaid = 0;
        for (key, (known, name)) in &expected {
            match (base.get(key), name) {
                (Some((found, value)), Some(name)) if found == known && value == name => {}
                (None, None) => {}
                (Some((found, _)), _) if found > known && !self.writes.contains_key(found) => {
                    unsaid += 1;
                }
                (None, Some(_)) => unsaid += 1,
                (found, _) => return Err(format!("{key} is {found:?}, not {name:?} of {known}")),
            }
        }
        Ok(unsaid + base.keys().filter(|key| !expected.contains_key(*key)).count())
    }

    /// The history holds every revision once, and at each what was acknowledged.
    fn check_events(
        &mut self,
        events: &[Arc<Event>],
        oldest: Revision,
        latest: Revision,
    ) -> Result<usize, String> {
        let revisions = events.iter().map(|event| event.revision.0);
        // An empty store is at revision 1, which no write has.
        if !revisions.eq(oldest.0.max(1) + 1..=latest.0) {
            return Err(format!("not every revision from {oldest} to {latest} once: {events:?}"));
        }
        let mut unsaid = 0;
        for event in events {
            let name = event.current.as_ref().map(|entry| value::name(&entry.value)).transpose()?;
            let found = (event.key.to_string(), name);
            match self.writes.get(&event.revision) {
                Some(known) if *known == found => {}
                Some(known) => return Err(format!("{known:?} became {found:?}")),
                None => {
                    unsaid += 1;
                    self.writes.insert(event.revision, found);
                }
            }
        }
        Ok(unsaid)
    }
}

fn held(entry: &Entry) -> Result<(Revision, String), String> {
    Ok((entry.modified, value::name(&entry.value)?))
}

async fn range(store: &DiskStore, at: Option<Revision>) -> Result<State, String> {
    let response = store.range(RangeRequest { at, ..RangeRequest::default() }).await;
    let entries = response.map_err(|error| error.to_string())?.entries;
    entries.iter().map(|entry| Ok((entry.key.to_string(), held(entry)?))).collect()
}

async fn events(
    store: &DiskStore,
    after: Revision,
    until: Revision,
) -> Result<Vec<Arc<Event>>, String> {
    let request = WatchRequest { prefix: String::new(), after };
    let mut watch = store.watch(request).await.map_err(|error| error.to_string())?;
    let mut events = Vec::new();
    while watch.delivered() < until {
        events.extend(watch.next().await.map_err(|error| error.to_string())?);
    }
    Ok(events)
}

/// What changes lead to; each must say truly what it replaced.
fn replay(mut state: State, events: &[Arc<Event>]) -> Result<State, String> {
    for event in events {
        let key = event.key.to_string();
        let replaced = event.previous.as_ref().map(held).transpose()?;
        if state.remove(&key) != replaced {
            return Err(format!("{event:?} did not replace what was there"));
        }
        if let Some(entry) = &event.current {
            state.insert(key, held(entry)?);
        }
    }
    Ok(state)
}
