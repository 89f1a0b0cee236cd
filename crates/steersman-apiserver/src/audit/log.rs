//! The log: events as lines of JSON, in a file or on the standard output.
//!
//! A thread of its own writes what waits; who serves requests only puts events there. It can be so
//! many, and so large: beyond that they are lost, and counted, as are those that cannot be written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;

use super::event::Event;
use super::rotation::{Limits, Rotating};
use super::truncate::Truncation;
use crate::metrics::Counter;

/// How many events wait.
const WAITING_MAX: usize = 10_000;

/// How much memory they take, about.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much is written at once.
const PIECE: usize = 256 * 1024;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where events are written, with kube-apiserver's limits.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// The file; `-` is the standard output.
    pub path: PathBuf,
    /// How many days a file stays that was put aside; for ever if it is zero.
    pub max_age: u32,
    /// How many such files stay; all if it is zero.
    pub max_backups: usize,
    /// How large a file gets, in megabytes; 100 if it is zero.
    pub max_size: u32,
    /// How large an event may be; as large as it is if nothing is said.
    pub truncate: Option<Truncation>,
}

impl LogSettings {
    /// Events go to a file, which is put aside when it has 100 MB. Of those a hundred stay, for a
    /// year.
    pub fn to(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, max_age: 366, max_backups: 100, max_size: 100, truncate: None }
    }
}

/// The file of a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the audit log {}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    /// How large an event may be.
    pub(super) truncate: Option<Truncation>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Told when something waits, or nobody writes any more.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    events: Vec<(Arc<Event>, Arc<Counter>)>,
    bytes: usize,
    is_closed: bool,
    /// Whether somebody was told that events are lost.
    is_full: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    pub(super) fn open(settings: LogSettings) -> Result<Self, LogError> {
        let LogSettings { path, max_age, max_backups, max_size, truncate } = settings;
        let megabytes = if max_size == 0 { 100 } else { u64::from(max_size) };
        let limits =
            Limits { size: megabytes * 1024 * 1024, age: DAY * max_age, backups: max_backups };
        let failed = |source| LogError { path: path.clone(), source };
        let out = if path == Path::new("-") {
            Out::Standard
        } else {
            Out::File(Rotating::open(&path, limits).map_err(failed)?)
        };
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("audit-log".to_owned());
        let writer = thread.spawn(move || write(&theirs, out)).map_err(failed)?;
        Ok(Self { shared, writer: Some(writer), truncate })
    }

    /// Takes an event, unless too many wait.
    pub(super) fn take(&self, event: Arc<Event>, errors: &Arc<Counter>) {
        let size = event.size();
        let mut waiting = self.shared.lock();
        if waiting.events.len() >= WAITING_MAX || waiting.bytes + size > BYTES_MAX {
            errors.increment();
            if !std::mem::replace(&mut waiting.is_full, true) {
                tracing::error!("audit events come faster than they are written; some are lost");
            }
            return;
        }
        waiting.is_full = false;
        waiting.bytes += size;
        waiting.events.push((event, Arc::clone(errors)));
        if waiting.events.len() == 1 {
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Log {
    /// Waits until everything is written that was taken.
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Where lines go.
enum Out {
    Standard,
    File(Rotating),
}

impl Out {
    fn append(&mut self, lines: &[u8], now: Timestamp) -> io::Result<()> {
        match self {
            Self::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(lines)?;
                out.flush()
            }
            Self::File(file) => file.append(lines, now),
        }
    }
}

/// Writes what waits, until nobody puts anything there any more.
fn write(shared: &Shared, mut out: Out) {
    let mut fails = false;
    loop {
        let mut waiting = shared.lock();
        while waiting.events.is_empty() && !waiting.is_closed {
            waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.events.is_empty() {
            return;
        }
        let events = std::mem::take(&mut waiting.events);
        let bytes = waiting.bytes;
        drop(waiting);
        write_all(&events, &mut out, &mut fails);
        drop(events);
        shared.lock().bytes -= bytes;
    }
}

fn write_all(events: &[(Arc<Event>, Arc<Counter>)], out: &mut Out, fails: &mut bool) {
    let mut lines = Vec::new();
    let mut from = 0;
    for (index, (event, _)) in events.iter().enumerate() {
        lines.extend_from_slice(event.to_json().as_bytes());
        lines.push(b'\n');
        if lines.len() < PIECE && index + 1 < events.len() {
            continue;
        }
        let now = event.stage_timestamp.parse().unwrap_or_default();
        match out.append(&lines, now) {
            Ok(()) => *fails = false,
            Err(error) => {
                events[from..=index].iter().for_each(|(_, errors)| errors.increment());
                // Once is enough; how many are lost is counted.
                if !std::mem::replace(fails, true) {
                    tracing::error!(%error, "cannot write the audit log; its events are lost");
                }
            }
        }
        lines.clear();
        from = index + 1;
    }
}
