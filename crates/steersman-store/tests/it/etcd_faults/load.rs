//! Writers that remember what they were told of each write, and a watcher beside them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// What a writer was told.
#[derive(Debug)]
enum Told {
    Done(Revision),
    NotDone,
    Unknown,
}

/// Writers under way.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    writers: Vec<JoinHandle<Vec<(String, Told)>>>,
    watcher: JoinHandle<Replay>,
    stop_watching: oneshot::Sender<()>,
}

impl Load {
    /// Starts this many writers on a store, and a watcher.
    pub(super) async fn start(store: &EtcdStore, writers: usize) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop_watching, stopped) = oneshot::channel();
        let watcher = tokio::spawn(Replay::new(store).await.follow(stopped));
        let writers = (0..writers)
            .map(|n| tokio::spawn(write(store.clone(), n, Arc::clone(&stop), Arc::clone(&done))))
            .collect();
        Self { stop, done, writers, watcher, stop_watching }
    }

    /// Waits until this many more writes are done.
    pub(super) async fn more(&self, writes: u64) {
        let goal = self.done.load(Ordering::Relaxed) + writes;
        let reached = tokio::time::timeout(LONG, async {
            while self.done.load(Ordering::Relaxed) < goal {
                tokio::task::yield_now().await;
            }
        });
        reached.await.expect("writes go on");
    }

    /// Ends the writers. That what each was told is true, and what the watcher heard is complete.
    pub(super) async fn assert_true(self, store: &EtcdStore) {
        self.stop.store(true, Ordering::Relaxed);
        let mut told = Vec::new();
        for writer in self.writers {
            told.extend(writer.await.unwrap());
        }
        self.stop_watching.send(()).unwrap();
        let mut replay = self.watcher.await.unwrap();
        replay.assert_complete(store).await;
        let heard: HashMap<&str, Revision> =
            replay.told.iter().map(|(value, revision)| (value.as_str(), *revision)).collect();
        assert_eq!(heard.len(), replay.told.len(), "no write happens twice");
        for (value, told) in &told {
            let heard = heard.get(value.as_str());
            match told {
                Told::Done(revision) => assert_eq!(heard, Some(revision), "{value} was done"),
                Told::NotDone => assert_eq!(heard, None, "{value} was not done"),
                Told::Unknown => {}
            }
        }
    }
}

/// Writes a key of its own over and over; every other time only if it is as it was.
async fn write(
    store: EtcdStore,
    writer: usize,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> Vec<(String, Told)> {
    let key = format!("/registry/load/{writer}");
    let mut expected = Expected::Any;
    let mut all = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let value = format!("{writer}-{}", all.len());
        let request = WriteRequest::put(key.as_str(), value.clone(), expected);
        let told = match store.write(request).await {
            Ok(written) => {
                done.fetch_add(1, Ordering::Relaxed);
                Told::Done(written.revision)
            }
            Err(StoreError::Unknown { .. }) => Told::Unknown,
            Err(StoreError::Unavailable { .. } | StoreError::Conflict { .. }) => Told::NotDone,
            Err(error) => panic!("{error}"),
        };
        expected = match (&told, expected) {
            (Told::Done(revision), Expected::Any) => Expected::Modified(*revision),
            _ => Expected::Any,
        };
        all.push((value, told));
    }
    all
}
