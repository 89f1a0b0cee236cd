//! The parent: it starts children, kills them, and looks at what they left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use steersman_store::disk::{DiskStore, Options};
use steersman_store::memory::Stats;
use steersman_store::{Expected, Store, WriteRequest};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;

use super::child::{self, Orders};
use super::ledger::Ledger;
use super::value;
use crate::directory::Directory;
use crate::seed;

/// When to kill a child.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after it was started, whatever it does then.
    After(Duration),
    /// So long after it began to open the directory.
    Opening(Duration),
    /// When it has said so many lines, and a little later.
    Said(usize, Duration),
    /// So long after it began to write a snapshot.
    Snapshot(Duration),
}

impl Moment {
    fn random(random: &mut StdRng) -> Self {
        let mut micros = |max| Duration::from_micros(random.random_range(0..max));
        let little = micros(3_000);
        match random.random_range(0..10) {
            0 => Self::After(Duration::from_micros(random.random_range(0..60_000))),
            1 => Self::Opening(little),
            _ => Self::Said(random.random_range(3..120), little),
        }
    }
}

/// A child, and what it says.
struct Running {
    process: Child,
    said: BufReader<ChildStdout>,
    lines: Vec<String>,
    directory: PathBuf,
}

/// Whether a directory has a file whose name ends so.
fn is_written(directory: &Path, end: &str) -> bool {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    names.map(|file| file.file_name()).any(|name| name.to_string_lossy().ends_with(end))
}

impl Running {
    fn start(orders: &Orders) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child::child", "--ignored", "--nocapture"])
            .envs(orders.environment())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said, lines: Vec::new(), directory: orders.directory.clone() }
    }

    /// Hears the next line; false when there is none. A line without an end is not a line.
    async fn hear(&mut self) -> bool {
        let mut line = String::new();
        let heard = self.said.read_line(&mut line).await.unwrap() > 0;
        if let Some(line) = line.strip_suffix('\n') {
            self.lines.push(line.to_owned());
        }
        heard
    }

    /// Hears what is said for so long.
    async fn listen(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        // A line that is cut off by the deadline would be lost: what is buffered is looked at.
        loop {
            match tokio::time::timeout_at(deadline, self.said.fill_buf()).await {
                Ok(Ok([])) | Err(_) => return,
                Ok(_) => _ = self.hear().await,
            }
        }
    }

    /// Kills the child at a moment, and gives all that it said.
    async fn kill_at(mut self, moment: Moment) -> Vec<String> {
        match moment {
            Moment::Snapshot(time) => {
                while !is_written(&self.directory, ".snapshot.tmp") && self.hear().await {}
                self.listen(time).await;
            }
            Moment::After(time) => self.listen(time).await,
            Moment::Opening(time) => {
                while !self.lines.iter().any(|line| line == "opening") && self.hear().await {}
                self.listen(time).await;
            }
            Moment::Said(count, time) => {
                while self.lines.len() < count && self.hear().await {}
                self.listen(time).await;
            }
        }
        let _ = self.process.start_kill();
        while self.hear().await {}
        let output = self.process.wait_with_output().await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let killed = output.status.signal() == Some(9);
        assert!(killed, "the child died by itself: {:#?} {error}", self.lines);
        self.lines
    }
}

/// Opens the directory, compares it with the ledger, and writes something, too.
async fn look(directory: &Path, sync: bool, ledger: &mut Ledger, round: usize) -> Stats {
    let (store, _) = DiskStore::open(directory, child::options(sync)).await.unwrap();
    ledger.check(&store).await.unwrap();
    let name = format!("parent-{round}");
    let request = WriteRequest::put("/parent", value::new(&name, 100), Expected::Any);
    let written = store.write(request).await.unwrap();
    ledger.wrote(written.revision, "/parent", Some(&name));
    let stats = store.stats();
    store.close().await;
    stats
}

/// Kills so many children one after the other in one directory.
async fn kill_again_and_again(random: &mut StdRng, sync: bool, rounds: usize) {
    let (directory, mut ledger) = (Directory::new(), Ledger::default());
    for round in 0..rounds {
        let moment = Moment::random(random);
        let seed = random.random();
        let orders = Orders { directory: directory.to_path_buf(), round, sync, seed };
        ledger.hear(&Running::start(&orders).kill_at(moment).await);
        look(&directory, sync, &mut ledger, round).await;
    }
    assert!(ledger.len() > 20 * rounds, "the children hardly wrote: {}", ledger.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kill_at_any_moment() {
    let mut random = seed::random();
    for _ in 0..8 {
        kill_again_and_again(&mut random, true, 40).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_without_sync_survives_kill_as_well() {
    let mut random = seed::random();
    for _ in 0..5 {
        kill_again_and_again(&mut random, false, 30).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_killed_changes_nothing() {
    let mut random = seed::random();
    let directory = Directory::new();
    let mut ledger = Ledger::default();
    let (store, _) = DiskStore::open(&directory, child::options(false)).await.unwrap();
    fill(&store, &mut ledger, Filling { keys: 300, writes: 1_500, size: 300 }).await;
    store.close().await;

    let begun = Instant::now();
    let before = look(&directory, false, &mut ledger, 0).await;
    let taken = begun.elapsed();
    for _ in 0..15 {
        let moment = Moment::Opening(taken.mul_f64(random.random_range(0.0..0.5)));
        let orders = Orders {
            directory: directory.to_path_buf(),
            round: usize::MAX,
            sync: false,
            seed: random.random(),
        };
        ledger.hear(&Running::start(&orders).kill_at(moment).await);
    }
    let after = look(&directory, false, &mut ledger, 1).await;
    assert!(after.revision > before.revision && after.oldest >= before.oldest);
}

/// What each of eight writers writes.
#[derive(Clone, Copy)]
struct Filling {
    keys: usize,
    writes: usize,
    size: usize,
}

async fn fill(store: &DiskStore, ledger: &mut Ledger, filling: Filling) {
    let Filling { keys, writes, size } = filling;
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut written = Vec::new();
            for number in 0..writes {
                let (key, name) = (format!("/{}", number % keys), format!("{writer}-{number}"));
                let request = WriteRequest::put(&*key, value::new(&name, size), Expected::Any);
                written.push((store.write(request).await.unwrap().revision, key, name));
            }
            written
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        for (revision, key, name) in writer.await.unwrap() {
            ledger.wrote(revision, &key, Some(&name));
        }
    }
}

/// The child finds a log that is worth a snapshot, begins one with its first write, and is killed
/// at any moment of it: as soon as there is a file, half-way, or about when it gets its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_killed_loses_nothing_and_leaves_nothing_behind() {
    let mut random = seed::random();
    let mut unfinished = 0;
    for round in 0..12 {
        let (directory, mut ledger) = (Directory::new(), Ledger::default());
        // Without a snapshot of its own.
        let options = Options { snapshot_bytes: u64::MAX, ..child::options(false) };
        let (store, _) = DiskStore::open(&directory, options).await.unwrap();
        fill(&store, &mut ledger, Filling { keys: 600, writes: 600, size: 2_000 }).await;
        let last = store.stats().revision;
        store.compact(last).await.unwrap();
        ledger.hear(&[format!("forgetting {last}")]);
        store.close().await;

        let seed = random.random();
        let orders = Orders { directory: directory.to_path_buf(), round, sync: false, seed };
        let later = Duration::from_micros(random.random_range(0..20_000)) * (round as u32 % 3);
        ledger.hear(&Running::start(&orders).kill_at(Moment::Snapshot(later)).await);
        unfinished += usize::from(is_written(&directory, ".snapshot.tmp"));
        look(&directory, false, &mut ledger, round).await;
        assert!(!is_written(&directory, ".tmp"), "what was never finished takes room");
    }
    assert!(unfinished > 0, "no snapshot was interrupted");
}
