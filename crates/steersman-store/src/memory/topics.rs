//! Who wants to hear of which keys: watches grouped by folder.
//!
//! A write wakes only the watches whose folder holds its key, and each folder remembers the
//! revision of its last change. So a watch of something quiet costs a busy store nothing: it is
//! not woken, and knows without reading the log that it has missed nothing.

use std::collections::HashMap;
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
    wake: watch::Sender<()>,
}

impl Topics {
    /// Joins the watches of the folder that a prefix lies in. Until something changes there,
    /// `now` counts as its last change.
    pub(super) fn join(
        &mut self,
        prefix: &str,
        now: Revision,
    ) -> (Arc<Topic>, watch::Receiver<()>) {
        let folder = &prefix[..prefix.rfind('/').map_or(0, |slash| slash + 1)];
        let (topic, watches) = self.folders.entry(folder.into()).or_insert_with(|| {
            let last_change = AtomicU64::new(now.0);
            (Arc::new(Topic { folder: folder.into(), last_change, wake: watch::channel(()).0 }), 0)
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
        let ends = key.match_indices('/').map(|(slash, _)| slash + 1);
        let topics = std::iter::once(0).chain(ends).filter_map(|end| self.folders.get(&key[..end]));
        let note = |(topic, _): &(Arc<Topic>, usize)| {
            topic.last_change.store(revision.0, Ordering::Relaxed);
            Arc::clone(topic)
        };
        topics.map(note).collect()
    }
}

impl Topic {
    /// The revision of the last change in the folder.
    pub(super) fn last_change(&self) -> Revision {
        Revision(self.last_change.load(Ordering::Relaxed))
    }

    /// Wakes everyone who watches the folder.
    pub(super) fn wake(&self) {
        self.wake.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(topics: &Topics, key: &str) -> Vec<String> {
        topics.changed(key, Revision(9)).iter().map(|topic| topic.folder.to_string()).collect()
    }

    #[test]
    fn a_change_concerns_every_folder_around_it_and_no_other() {
        let mut topics = Topics::default();
        let mut kept = Vec::new();
        for prefix in ["", "/registry/pods/", "/registry/pods/default/", "/registry/po"] {
            kept.push(topics.join(prefix, Revision(1)));
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
        let (topic, _) = topics.join("/a/", Revision(1));
        topics.join("/a/", Revision(2));
        assert_eq!(topic.last_change(), Revision(1), "the second watch joins the first");
        topics.leave(&topic);
        assert_eq!(woken(&topics, "/a/b"), ["/a/"]);
        topics.leave(&topic);
        assert!(topics.folders.is_empty());
    }
}
