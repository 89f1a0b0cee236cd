//! What the process does that is killed: it writes from several tasks, forgets history, and says
//! what was acknowledged.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use steersman_store::disk::{DiskStore, Options};
use steersman_store::{Expected, Key, Revision, Store, StoreError, WriteRequest};

use super::value;
use crate::stores::small_files;

/// How many write at the same time.
pub(super) const TASKS: usize = 4;
const KEYS: usize = 12;
/// The largest value; a few of them fill a segment.
const VALUE_MAX: usize = 2_000;
/// How much history is kept, and after how many writes the rest is forgotten.
const KEPT: u64 = 60;
const COMPACT_EVERY: u64 = 25;

/// What the parent wants.
pub(super) struct Orders {
    pub(super) directory: PathBuf,
    /// Which of the children this is; it is in the names of its values.
    pub(super) round: usize,
    pub(super) sync: bool,
    pub(super) seed: u64,
}

const DIRECTORY: &str = "STEERSMAN_CRASH_DIRECTORY";
const ROUND: &str = "STEERSMAN_CRASH_ROUND";
const SYNC: &str = "STEERSMAN_CRASH_SYNC";
const SEED: &str = "STEERSMAN_CRASH_SEED";

impl Orders {
    pub(super) fn environment(&self) -> [(&'static str, String); 4] {
        [
            (DIRECTORY, self.directory.display().to_string()),
            (ROUND, self.round.to_string()),
            (SYNC, self.sync.to_string()),
            (SEED, self.seed.to_string()),
        ]
    }

    fn from_environment() -> Option<Self> {
        let read = |variable| std::env::var(variable).ok();
        Some(Self {
            directory: read(DIRECTORY)?.into(),
            round: read(ROUND)?.parse().ok()?,
            sync: read(SYNC)?.parse().ok()?,
            seed: read(SEED)?.parse().ok()?,
        })
    }
}

/// How a directory is opened here.
pub(super) fn options(sync: bool) -> Options {
    Options { sync, ..small_files() }
}

#[test]
#[ignore = "run by its parent, in a process of its own that is killed"]
fn child() {
    if let Some(orders) = Orders::from_environment() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(work(orders));
    }
}

/// Says a line to the parent.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("{line}\n").as_bytes()).unwrap();
    stdout.flush().unwrap();
}

async fn work(orders: Orders) {
    // The harness has begun a line.
    say("");
    // The harness has begun a line.
    say("");
    say("opening");
    let (store, _) = DiskStore::open(&orders.directory, options(orders.sync)).await.unwrap();
    say("opened");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut random = StdRng::seed_from_u64(orders.seed);
    let writers: Vec<_> = (0..TASKS)
        .map(|task| Writer {
            store: store.clone(),
            name: format!("{}-{task}", orders.round),
            random: StdRng::seed_from_u64(random.random()),
            acknowledged: Arc::clone(&acknowledged),
        })
        .map(|writer| tokio::spawn(writer.run()))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// One of the tasks.
struct Writer {
    store: DiskStore,
    name: String,
    random: StdRng,
    acknowledged: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self) {
        for number in 0_u64.. {
            let key: Key = format!("/crash/{:02}", self.random.random_range(0..KEYS)).into();
            let expected = match self.random.random_range(0..3) {
                0 => self.store.get(&key).await.unwrap().map(|entry| entry.modified),
                _ => None,
            };
            let expected = expected.map_or(Expected::Any, Expected::Modified);
            let name = self.random.random_bool(0.75).then(|| format!("{}-{number}", self.name));
            let size = self.random.random_range(0..VALUE_MAX);
            let value = name.as_ref().map(|name| value::new(name, size));
            let request = WriteRequest { key: Key::clone(&key), value, expected, ttl: None };
            match self.store.write(request).await {
                Ok(written) => {
                    let name = name.as_deref().unwrap_or("-");
                    say(&format!("wrote {} {key} {name}", written.revision));
                    self.forget(written.revision).await;
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Forgets history now and then.
    async fn forget(&self, now: Revision) {
        let writes = self.acknowledged.fetch_add(1, Ordering::SeqCst);
        if writes % COMPACT_EVERY == COMPACT_EVERY - 1 {
            let oldest = Revision(now.0.saturating_sub(KEPT));
            say(&format!("forgetting {oldest}"));
            self.store.compact(oldest).await.unwrap();
        }
    }
}
