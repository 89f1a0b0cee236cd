//! Which of etcd's keys are the store's, and what they are called there.

use bytes::Bytes;

use crate::{Entry, Key, Revision};

use super::wire::KeyValue;

/// Every key of etcd.
const EVERYTHING: Bytes = Bytes::from_static(b"\0");

/// A range of etcd's keys, as its requests name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) key: Bytes,
    pub(super) end: Bytes,
}

impl KeyRange {
    pub(super) fn everything() -> Self {
        Self { key: EVERYTHING, end: EVERYTHING }
    }

    /// All keys that start with this.
    fn of_prefix(prefix: &str) -> Self {
        let mut end = prefix.as_bytes().to_vec();
        // UTF-8 never holds the highest byte, so the last one can be counted up.
        match end.last_mut() {
            Some(last) => *last += 1,
            None => return Self::everything(),
        }
        Self { key: Bytes::copy_from_slice(prefix.as_bytes()), end: end.into() }
    }
}

/// Names the store's keys. Another program may keep keys of its own in the same etcd.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// Stands before every key in etcd, and nowhere else.
    root: String,
    /// What the store's keys begin with.
    prefix: String,
}

impl Keys {
    pub(super) fn new(root: &str, prefix: &str) -> Self {
        Self { root: root.to_owned(), prefix: prefix.to_owned() }
    }

    /// All of the store's keys.
    pub(super) fn range(&self) -> KeyRange {
        KeyRange::of_prefix(&format!("{}{}", self.root, self.prefix))
    }

    /// What a key is called in etcd; nothing if it cannot be the store's.
    pub(super) fn in_etcd(&self, key: &str) -> Option<Bytes> {
        let ours = key.starts_with(&self.prefix) && !(key.is_empty() && self.root.is_empty());
        ours.then(|| [self.root.as_bytes(), key.as_bytes()].concat().into())
    }

    /// What the store calls a key of etcd; nothing if it is not the store's.
    pub(super) fn in_store(&self, key: &[u8]) -> Option<Key> {
        let key = std::str::from_utf8(key.strip_prefix(self.root.as_bytes())?).ok()?;
        key.starts_with(&self.prefix).then(|| key.into())
    }

    /// The store's entry for one of etcd's.
    pub(super) fn entry(&self, kv: KeyValue) -> Option<Entry> {
        Some(Entry {
            key: self.in_store(&kv.key)?,
            value: kv.value.into(),
            created: revision(kv.create_revision),
            modified: revision(kv.mod_revision),
        })
    }
}

/// etcd counts in signed numbers, all of them positive.
pub(super) fn revision(number: i64) -> Revision {
    Revision(number.unsigned_abs())
}

/// The revision as etcd takes it; more than it can count is the highest that it can.
pub(super) fn number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_others_and_keys_that_are_no_text_are_not_the_stores() {
        let keys = Keys::new("", "/registry/");
        assert_eq!(keys.in_store(b"/registry/pods/a").as_deref(), Some("/registry/pods/a"));
        assert_eq!(keys.in_store(b"/registry"), None);
        assert_eq!(keys.in_store(b"compact_rev_key"), None);
        assert_eq!(keys.in_store(b"/registry/\xff"), None);
        assert_eq!(keys.in_etcd("/other"), None);
        assert_eq!(keys.range().key, "/registry/");
        assert_eq!(keys.range().end, "/registry0");
    }

    #[test]
    fn a_root_stands_before_every_key_in_etcd_only() {
        let keys = Keys::new("/suite/7", "");
        assert_eq!(keys.in_etcd("/a").unwrap(), "/suite/7/a");
        assert_eq!(keys.in_store(b"/suite/7/a").as_deref(), Some("/a"));
        assert_eq!(keys.in_store(b"/suite/8/a"), None);
        assert_eq!(Keys::new("", "").range(), KeyRange::everything());
    }
}
