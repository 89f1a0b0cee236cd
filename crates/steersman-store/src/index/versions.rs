//! The versions of one key, from the oldest readable revision to the latest.
//!
//! Most keys have one version, which needs no allocation here. A deletion is a version
//! without an entry; it is kept until no readable revision lies before it.

use std::collections::VecDeque;

use crate::{Entry, Revision};

/// What a key held from `since` until its next version.
#[derive(Clone, Debug)]
struct Version {
    since: Revision,
    /// `None` after a deletion.
    entry: Option<Entry>,
}

/// Every readable version of one key.
#[derive(Clone, Debug)]
pub(super) struct Versions {
    latest: Version,
    /// Ordered by revision, all before `latest`.
    older: VecDeque<Version>,
}

impl Versions {
    /// A key's first version.
    pub(super) fn new(since: Revision, entry: Option<Entry>) -> Self {
        Self { latest: Version { since, entry }, older: VecDeque::new() }
    }

    /// Adds a version after all others.
    pub(super) fn push(&mut self, since: Revision, entry: Option<Entry>) {
        let before = std::mem::replace(&mut self.latest, Version { since, entry });
        self.older.push_back(before);
    }

    /// What the key holds now.
    pub(super) fn latest(&self) -> Option<&Entry> {
        self.latest.entry.as_ref()
    }

    /// What the key held at a revision.
    pub(super) fn at(&self, revision: Revision) -> Option<&Entry> {
        if self.latest.since <= revision {
            return self.latest();
        }
        let newer = self.older.partition_point(|version| version.since <= revision);
        self.older.get(newer.checked_sub(1)?)?.entry.as_ref()
    }

    /// Every version that has an entry.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let all = self.older.iter_mut().chain([&mut self.latest]);
        all.filter_map(|version| version.entry.as_mut())
    }

    /// Drops what cannot be seen at `oldest` or later. Says whether anything is left: if not,
    /// the key itself can go.
    #[must_use]
    pub(super) fn compact(&mut self, oldest: Revision) -> bool {
        if self.latest.since <= oldest {
            self.older = VecDeque::new();
            return self.latest.entry.is_some();
        }
        let visible = self.older.partition_point(|version| version.since <= oldest);
        self.older.drain(..visible.saturating_sub(1));
        // At the oldest revision, a deletion and no version at all read the same.
        if self.older.front().is_some_and(|first| first.since <= oldest && first.entry.is_none()) {
            self.older.pop_front();
        }
        shrink_if_sparse(&mut self.older);
        true
    }
}

/// Gives memory back once most of the capacity is unused, keeping room to grow again.
pub(super) fn shrink_if_sparse<T>(deque: &mut VecDeque<T>) {
    if deque.capacity() > deque.len() * 4 {
        deque.shrink_to(deque.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(modified: u64) -> Option<Entry> {
        Some(Entry {
            key: "/a".into(),
            value: Bytes::new(),
            created: Revision(1),
            modified: Revision(modified),
        })
    }

    /// Written at 2, deleted at 4, written at 6 and 8.
    fn versions() -> Versions {
        let mut versions = Versions::new(Revision(2), entry(2));
        versions.push(Revision(4), None);
        versions.push(Revision(6), entry(6));
        versions.push(Revision(8), entry(8));
        versions
    }

    fn seen(versions: &Versions) -> Vec<Option<u64>> {
        (1..=9).map(|at| versions.at(Revision(at)).map(|entry| entry.modified.0)).collect()
    }

    #[test]
    fn each_revision_sees_the_last_version_before_it() {
        let expected =
            [None, Some(2), Some(2), None, None, Some(6), Some(6), Some(8), Some(8)].to_vec();
        assert_eq!(seen(&versions()), expected);
    }

    #[test]
    fn compaction_changes_nothing_at_or_after_its_revision() {
        for oldest in 1..=9 {
            let mut compacted = versions();
            assert!(compacted.compact(Revision(oldest)));
            let from = oldest as usize - 1;
            assert_eq!(seen(&compacted)[from..], seen(&versions())[from..], "at {oldest}");
        }
    }

    #[test]
    fn compaction_keeps_only_what_can_be_seen() {
        let older = |oldest| {
            let mut compacted = versions();
            assert!(compacted.compact(Revision(oldest)));
            compacted.older.len()
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(older), [3, 3, 3, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_key_deleted_before_the_oldest_revision_leaves_nothing() {
        let mut versions = Versions::new(Revision(2), entry(2));
        versions.push(Revision(4), None);
        assert!(versions.compact(Revision(3)));
        assert!(!versions.compact(Revision(4)));
    }
}
