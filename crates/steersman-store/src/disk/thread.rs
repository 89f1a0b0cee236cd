//! The committer's thread: takes what waits, and starts snapshots beside it.
//!
//! It ends when the last handle of the store is gone, when it is told to, or by a panic; in each
//! case whoever still waits is told, and the directory is free for the next to open it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::commit::Committer;
use super::lock::Lock;
use super::request::Request;
use super::snapshot::{self, Snapshotter};

/// How many requests the committer takes at once.
const TAKEN_MAX: usize = 1024;

/// How long it waits for writers to come back, at most: after a disk that hung they may not.
const GATHER_MAX: Duration = Duration::from_millis(10);

/// Starts the thread. The receiver's sender is dropped when the directory is free again.
pub(super) fn start(
    committer: Committer,
    requests: mpsc::Receiver<Request>,
    lock: Lock,
) -> io::Result<watch::Receiver<()>> {
    let (ended, end) = watch::channel(());
    let run = move || {
        // Dropped in reverse, also by a panic: first the lock, then the news of it.
        let _ended = ended;
        let _lock = lock;
        run(committer, requests);
    };
    thread::Builder::new().name("store".to_owned()).spawn(run)?;
    Ok(end)
}

fn run(mut committer: Committer, mut requests: mpsc::Receiver<Request>) {
    let mut snapshots = Snapshots::default();
    let mut gathering = Gathering::default();
    let mut taken = Vec::with_capacity(TAKEN_MAX);
    loop {
        let nobody_waited = requests.is_empty();
        if requests.blocking_recv_many(&mut taken, TAKEN_MAX) == 0 {
            return;
        }
        // A writer on its own may be back already; nobody would come to join it.
        if !nobody_waited && taken.len() > 1 {
            gathering.gather(&mut requests, &mut taken);
        }
        if taken.iter().any(|request| matches!(request, Request::Close)) {
            // What was sent before is still received, and then the loop ends.
            requests.close();
        }
        gathering.last = taken.len();
        let began = Instant::now();
        let mut waiting = VecDeque::from(std::mem::take(&mut taken));
        while !waiting.is_empty() {
            committer.commit(&mut waiting);
        }
        gathering.taken = began.elapsed();
        taken = waiting.into();
        snapshots.start_if_due(&committer);
    }
}

/// Waits a moment for writers who were just answered. Without, those whom a sync serves and those
/// who wait meanwhile take turns, and each sync serves half of them.
#[derive(Default)]
struct Gathering {
    /// How many were answered last.
    last: usize,
    /// How long that took.
    taken: Duration,
}

impl Gathering {
    /// Waits for as many as were answered, and for a fraction of the time that it would save.
    fn gather(&self, requests: &mut mpsc::Receiver<Request>, taken: &mut Vec<Request>) {
        let wanted = (taken.len() + self.last).min(TAKEN_MAX);
        let until = Instant::now() + (self.taken / 8).min(GATHER_MAX);
        while taken.len() < wanted {
            match requests.try_recv() {
                Ok(request) => taken.push(request),
                Err(TryRecvError::Empty) if Instant::now() < until => thread::yield_now(),
                Err(_) => return,
            }
        }
    }
}

/// The snapshot that is being written beside the committer, if any.
#[derive(Default)]
struct Snapshots {
    running: Option<JoinHandle<bool>>,
    stop: Arc<AtomicBool>,
    /// After a snapshot that failed, so much of the log must be superfluous before the next.
    not_below: u64,
}

impl Snapshots {
    fn start_if_due(&mut self, committer: &Committer) {
        if self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        let superseded = snapshot::superseded(committer);
        if let Some(finished) = self.running.take() {
            let failed = !finished.join().unwrap_or(false);
            self.not_below = if failed { superseded + superseded / 8 } else { 0 };
        }
        if superseded < self.not_below || !snapshot::is_due(committer) {
            return;
        }
        let snapshotter = Snapshotter::new(committer, Arc::clone(&self.stop));
        let run = move || snapshotter.run();
        match thread::Builder::new().name("store-snapshot".to_owned()).spawn(run) {
            Ok(running) => self.running = Some(running),
            Err(error) => tracing::warn!(%error, "snapshot could not be started"),
        }
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            // A panic there has been reported, and has no one else to go to.
            let _ = running.join();
        }
    }
}
