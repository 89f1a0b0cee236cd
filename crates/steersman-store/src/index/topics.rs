//! Who wants to hear of which keys: watches grouped by folder.
//!
//! A write wakes only the watches whose folder holds its key, and each folder remembers the
//! revision of its last change and of the last one that compaction dropped. So a watch of
//! something quiet costs a busy store nothing: it is not woken, knows without reading the log that
//! it has missed nothing, and is not passed by when the store forgets what does not concern it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::Revision;

/// The folders that are watched.
#[derive(Debug, Default)]
pub(super) struct Topics {
    /// With the number of watches of each.
    folders: HashMap<Box<str>, (Arc<Topic>, usize)>,
}

/// One folder that is watched.
#[derive(Debug)]
pub(super) struct Topic {
    folder: Box<str>,
    /// Written only under the lock of the state: whoever reads it there sees every change.
    last_change: AtomicU64,
    /// The last change that the log has lost; likewise.
    last_dropped: AtomicU64,
    wake: watch::Sender<()>,
}

impl Topics {
    /// Joins the watches of the folder that a prefix lies in. What changed there before the first
    /// of them joined is not known: `kept.end` counts as its last change, and `kept.start`, the
    /// oldest revision that is kept, as the last that was dropped.
    pub(super) fn join(
        &mut self,
        prefix: &str,
        kept: &Range<Revision>,
    ) -> (Arc<Topic>, watch::Receiver<()>) {
        let folder = &prefix[..prefix.rfind('/').map_or(0, |slash| slash + 1)];
        let (topic, watches) = self.folders.entry(folder.into()).or_insert_with(|| {
            let topic = Topic {
                folder: folder.into(),
                last_change: AtomicU64::new(kept.end.0),
                last_dropped: AtomicU64::new(kept.start.0),
                wake: watch::channel(()).0,
            };
            (Arc::new(topic), 0)
        });
        *watches += 1;
        (Arc::clone(topic), topic.wake.subscribe())
    }

    /// Forgets a folder when the watch that leaves is its last.
    pub(super) fn leave(&mut self, topic: &Topic) {
        if let Some((_, watches)) = self.folders.get_mut(&topic.folder) {
            *watches -= 1;
            if *watches == 0 {
                self.folders.remove(&topic.folder);
            }
        }
    }

    /// Notes a change, and gives those who want to hear of it.
    pub(super) fn changed(&self, key: &str, revision: Revision) -> Vec<Arc<Topic>> {
        let note = |topic: &Arc<Topic>| {
            topic.last_change.store(revision.0, Ordering::Relaxed);
            Arc::clone(topic)
        };
        self.around(key).map(note).collect()
    }

    /// Everything was replaced: what changed in the folders before a revision counts no more. They
    /// stay, because watches of before have yet to leave them.
    pub(super) fn reset(&self, revision: Revision) {
        for (topic, _) in self.folders.values() {
            topic.last_change.store(revision.0, Ordering::Relaxed);
            topic.last_dropped.store(revision.0, Ordering::Relaxed);
        }
    }

    /// Every folder that is watched.
    pub(super) fn all(&self) -> Vec<Arc<Topic>> {
        self.folders.values().map(|(topic, _)| Arc::clone(topic)).collect()
    }

    /// Notes that the log no longer has a change.
    pub(super) fn dropped(&self, key: &str, revision: Revision) {
        for topic in self.around(key) {
            topic.last_dropped.store(revision.0, Ordering::Relaxed);
        }
    }

    /// The watched folders that a key lies in.
    fn around<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Arc<Topic>> {
        let ends = key.match_indices('/').map(|(slash, _)| slash + 1);
        let ends = std::iter::once(0).chain(ends);
        ends.filter_map(|end| self.folders.get(&key[..end])).map(|(topic, _)| topic)
    }
}

impl Topic {
    /// The revision of the last change in the folder.
    pub(super) fn last_change(&self) -> Revision {
        Revision(self.last_change.load(Ordering::Relaxed))
    }

    /// The revision of the last change in the folder that the log has lost.
    pub(super) fn last_dropped(&self) -> Revision {
        Revision(self.last_dropped.load(Ordering::Relaxed))
    }

    /// Wakes everyone who watches the folder.
    pub(super) fn wake(&self) {
        self.wake.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(now: u64) -> Range<Revision> {
        Revision(0)..Revision(now)
    }

    fn woken(topics: &Topics, key: &str) -> Vec<String> {
        topics.changed(key, Revision(9)).iter().map(|topic| topic.folder.to_string()).collect()
    }

    #[test]
    fn a_change_concerns_every_folder_around_it_and_no_other() {
        let mut topics = Topics::default();
        let mut joined = Vec::new();
        for prefix in ["", "/registry/pods/", "/registry/pods/default/", "/registry/po"] {
            joined.push(topics.join(prefix, &kept(1)));
        }
        assert_eq!(
            woken(&topics, "/registry/pods/default/a"),
            ["", "/registry/", "/registry/pods/", "/registry/pods/default/"]
        );
        assert_eq!(woken(&topics, "/registry/podtemplates/x"), ["", "/registry/"]);
        assert_eq!(woken(&topics, "/other"), [""]);
    }

    #[test]
    fn a_folder_is_forgotten_with_its_last_watch() {
        let mut topics = Topics::default();
        let (topic, _) = topics.join("/a/", &kept(1));
        topics.join("/a/", &kept(2));
        assert_eq!(topic.last_change(), Revision(1), "the second watch joins the first");
        topics.leave(&topic);
        assert_eq!(woken(&topics, "/a/b"), ["/a/"]);
        topics.leave(&topic);
        assert!(topics.folders.is_empty());
    }
}
