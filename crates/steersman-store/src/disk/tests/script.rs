//! A script of random writes against a store on a simulated disk, and what must come of it.
//!
//! [`Model`] says what the state is at every revision, from the requests alone. [`Run`] drives a
//! committer step by step, without threads, and writes snapshots when they are due. After a crash
//! the store must be as the model was after some whole batch that is no older than anything
//! that was acknowledged or seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::simulated::{Disk, Image};
use crate::disk::commit::{Committer, Space};
use crate::disk::files::Files;
use crate::disk::open::{Opened, Recovered, recover};
use crate::disk::request::Request;
use crate::disk::snapshot::{self, Snapshotter};
use crate::disk::ttl::Ttls;
use crate::disk::{OpenError, Options};
use crate::index::Index;
use crate::{Expected, RangeRequest, Revision, StoreError, WriteRequest};

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    value: Vec<u8>,
    created: u64,
    modified: u64,
    ttl: Option<Duration>,
}

/// What all keys hold.
type State = BTreeMap<String, Held>;

/// The states that follow each other.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The state at each revision; zero and one are empty.
    states: Vec<Arc<State>>,
    /// The revisions after each batch.
    batches: Vec<u64>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { states: vec![Arc::default(); 2], batches: vec![1] }
    }

    pub(super) fn revision(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn last(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// Decides about a write; says whether it happens.
    fn write(&mut self, request: &WriteRequest) -> bool {
        let mut state = State::clone(self.last());
        let found = state.get(&*request.key);
        let as_expected = match request.expected {
            Expected::Any => request.value.is_some() || found.is_some(),
            Expected::Absent => found.is_none() && request.value.is_some(),
            Expected::Modified(revision) => found.is_some_and(|held| held.modified == revision.0),
        };
        if !as_expected {
            return false;
        }
        let modified = self.revision() + 1;
        let created = found.map_or(modified, |held| held.created);
        match &request.value {
            Some(value) => {
                let held = Held { value: value.to_vec(), created, modified, ttl: request.ttl };
                state.insert(request.key.to_string(), held);
            }
            None => drop(state.remove(&*request.key)),
        }
        self.states.push(Arc::new(state));
        true
    }

    /// Forgets what came after a revision.
    pub(super) fn go_back(&mut self, revision: u64) {
        self.states.truncate(revision as usize + 1);
        self.batches.retain(|batch| *batch <= revision);
    }
}

/// What has been promised, and what has been asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The last revision that was acknowledged or seen.
    pub(super) acknowledged: u64,
    /// The last compaction that was acknowledged.
    pub(super) oldest: u64,
    /// The last compaction that was asked for.
    pub(super) oldest_asked: u64,
}

/// The power can go here.
pub(super) struct Moment {
    pub(super) image: Image,
    pub(super) progress: Progress,
}

pub(super) fn options() -> Options {
    Options { sync: true, segment_bytes: 700, snapshot_bytes: 1500, ..Options::default() }
}

/// A store on a simulated disk, with the model beside it.
pub(super) struct Run {
    pub(super) disk: Disk,
    pub(super) committer: Committer,
    pub(super) model: Model,
    pub(super) progress: Arc<Mutex<Progress>>,
    pub(super) opened: Opened,
    pub(super) snapshots: usize,
}

/// What came of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Full,
    Failed,
}

impl Run {
    /// Opens what is on the disk, which must be as the model allows.
    pub(super) fn open(
        disk: &Disk,
        mut model: Model,
        progress: Progress,
    ) -> Result<Self, OpenError> {
        let files: Arc<dyn Files> = Arc::new(disk.clone());
        let recovered = recover(&files, &options(), 7)?;
        let revision = recovered.index.revision().0;
        check(&recovered, &model, progress);
        model.go_back(revision);
        let oldest = recovered.index.stats().oldest.0;
        let progress = Progress { acknowledged: revision, oldest, oldest_asked: oldest };
        let (requests, _) = mpsc::channel(1);
        let ttls = Ttls::new(Arc::default(), Handle::current(), requests.downgrade());
        for (key, revision, ttl) in &recovered.ttls {
            ttls.written(key, *revision, Some(*ttl));
        }
        let space =
            Space { live_bytes: recovered.live_bytes, snapshot_bytes: options().snapshot_bytes };
        let committer = Committer::new(recovered.log, Arc::new(recovered.index), ttls, space);
        let (progress, opened) = (Arc::new(Mutex::new(progress)), recovered.opened);
        Ok(Self { disk: disk.clone(), committer, model, progress, opened, snapshots: 0 })
    }

    /// Remembers every moment from here on.
    pub(super) fn record(&self) -> Arc<Mutex<Vec<Moment>>> {
        let moments = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&moments);
        let (progress, index) = (Arc::clone(&self.progress), Arc::clone(&self.committer.index));
        self.disk.observe(Box::new(move |image| {
            let mut progress = *progress.lock().unwrap();
            progress.acknowledged = progress.acknowledged.max(index.revision().0);
            recorded.lock().unwrap().push(Moment { image: image.clone(), progress });
        }));
        moments
    }

    /// Writes a random batch, and sometimes compacts and writes a snapshot.
    pub(super) async fn step(&mut self, random: &mut StdRng) -> Outcome {
        let outcome = self.write_batch(random);
        if outcome == Outcome::Failed {
            return outcome;
        }
        if random.random_ratio(1, 12) {
            let compacted = self.compact(random).await;
            if compacted == Outcome::Failed {
                return compacted;
            }
        }
        if snapshot::is_due(&self.committer) {
            Snapshotter::new(&self.committer, Arc::new(AtomicBool::new(false))).run();
            self.snapshots += 1;
        }
        outcome
    }

    fn write_batch(&mut self, random: &mut StdRng) -> Outcome {
        let before = self.model.revision();
        let (mut waiting, mut answers) = (VecDeque::new(), Vec::new());
        for _ in 0..random.random_range(1..4) {
            let request = random_write(random, &self.model);
            let (answer, answered) = oneshot::channel();
            answers.push((answered, self.model.write(&request)));
            waiting.push_back(Request::Write(request, answer));
        }
        self.model.batches.push(self.model.revision());
        self.committer.commit(&mut waiting);
        let answers = answers.into_iter().map(|(mut answered, happens)| {
            match (answered.try_recv().unwrap(), happens) {
                (Ok(_), true) | (Err(StoreError::Conflict { .. }), false) => Outcome::Done,
                (Err(StoreError::Full { .. }), _) => Outcome::Full,
                (Err(StoreError::Failed { .. }), _) => Outcome::Failed,
                (other, happens) => panic!("{other:?}, but the model says {happens}"),
            }
        });
        let outcome = answers.reduce(|one, other| {
            assert_eq!(one, other, "a batch happens or does not");
            other
        });
        match outcome.unwrap() {
            Outcome::Done => {
                assert_eq!(self.committer.index.revision().0, self.model.revision());
                self.progress.lock().unwrap().acknowledged = self.model.revision();
                Outcome::Done
            }
            Outcome::Full => {
                self.model.go_back(before);
                Outcome::Full
            }
            // The model keeps what may be there.
            Outcome::Failed => Outcome::Failed,
        }
    }

    async fn compact(&mut self, random: &mut StdRng) -> Outcome {
        let kept = self.committer.index.stats();
        let oldest = random.random_range(kept.oldest.0..=kept.revision.0);
        {
            let mut progress = self.progress.lock().unwrap();
            progress.oldest_asked = progress.oldest_asked.max(oldest);
        }
        let (answer, mut answered) = oneshot::channel();
        self.committer.commit(&mut VecDeque::from([Request::Compact(Revision(oldest), answer)]));
        match answered.try_recv().unwrap() {
            Ok(()) => {
                self.progress.lock().unwrap().oldest = oldest;
                self.committer.index.compact(Revision(oldest)).await.unwrap();
                Outcome::Done
            }
            Err(StoreError::Full { .. }) => Outcome::Full,
            Err(StoreError::Failed { .. }) => Outcome::Failed,
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn random_write(random: &mut StdRng, model: &Model) -> WriteRequest {
    let key = format!("/registry/things/{}", random.random_range(0..12));
    let found = model.last().get(&key).map(|held| Revision(held.modified));
    let expected = match (random.random_range(0..8), found) {
        (0, _) => Expected::Absent,
        (1, _) => Expected::Modified(Revision(random.random_range(1..40))),
        (2, Some(found)) => Expected::Modified(found),
        _ => Expected::Any,
    };
    if random.random_ratio(1, 5) {
        return WriteRequest::delete(key, expected);
    }
    let value = vec![random.random::<u8>(); random.random_range(0..100)];
    let ttl = random.random_ratio(1, 6).then(|| Duration::from_secs(random.random_range(60..999)));
    WriteRequest { ttl, ..WriteRequest::put(key, value, expected) }
}

/// Whether what was found is what may be found.
fn check(found: &Recovered, model: &Model, progress: Progress) {
    let stats = found.index.stats();
    let (revision, oldest) = (stats.revision.0, stats.oldest.0);
    assert!(revision >= progress.acknowledged, "{revision} is before {progress:?}");
    assert!(model.batches.contains(&revision), "{revision} is in the middle of a batch");
    assert!(oldest >= progress.oldest, "compacted revisions came back: {oldest}, {progress:?}");
    assert!(oldest <= progress.oldest_asked, "history was lost: {oldest}, {progress:?}");
    for at in oldest..=revision {
        assert_eq!(state(&found.index, at), without_ttls(&model.states[at as usize]), "at {at}");
    }
    let ttls = found.ttls.iter().map(|(key, at, ttl)| (key.to_string(), at.0, *ttl));
    let ttls: BTreeMap<_, _> = ttls.map(|(key, at, ttl)| (key, (at, ttl))).collect();
    let expected = model.states[revision as usize].iter();
    let expected =
        expected.filter_map(|(key, held)| Some((key.clone(), (held.modified, held.ttl?))));
    assert_eq!(ttls, expected.collect());
}

fn without_ttls(state: &State) -> State {
    let without = |(key, held): (&String, &Held)| (key.clone(), Held { ttl: None, ..held.clone() });
    state.iter().map(without).collect()
}

fn state(index: &Index, at: u64) -> State {
    let request = RangeRequest { at: Some(Revision(at)), ..RangeRequest::default() };
    let entries = index.range(&request).unwrap().entries.into_iter();
    let held = entries.map(|entry| {
        let (created, modified) = (entry.created.0, entry.modified.0);
        let held = Held { value: entry.value.to_vec(), created, modified, ttl: None };
        (entry.key.to_string(), held)
    });
    held.collect()
}
