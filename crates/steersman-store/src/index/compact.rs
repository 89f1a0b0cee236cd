//! Folders whose values are held compressed: what is long there, and read seldom.
//!
//! Values are compressed before they come under the lock of the state and restored behind it, so
//! that nobody waits for either. Each reader gets a copy of its own.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::{Entry, Event};

/// A shorter value stays as it is.
const LENGTH_MIN: usize = 16 * 1024;

/// The fastest level.
const LEVEL: i32 = 1;

/// What a compressed value begins with, before its length and the rest. A value that is not
/// compressed and begins so is compressed, however short it is.
const MARK: &[u8] = b"\0compact";

/// The bytes of a length.
const LENGTH: usize = size_of::<u32>();

/// The folders whose values are held compressed.
#[derive(Debug, Default)]
pub(super) struct Compact {
    folders: RwLock<Vec<Box<str>>>,
}

impl Compact {
    /// Adds a folder; false if it lies in one that is there.
    pub(super) fn add(&self, folder: &str) -> bool {
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !folders.iter().any(|known| folder.starts_with(&**known));
        if is_new {
            folders.push(folder.into());
        }
        is_new
    }

    pub(super) fn fork(&self) -> Self {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self { folders: RwLock::new(folders) }
    }

    fn concerns(&self, key: &str) -> bool {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        folders.iter().any(|folder| key.starts_with(&**folder))
    }

    /// A value as it is held.
    pub(super) fn held(&self, key: &str, value: Bytes) -> Bytes {
        let looks_held = value.starts_with(MARK);
        if (value.len() < LENGTH_MIN && !looks_held) || !self.concerns(key) {
            return value;
        }
        match compressed(&value) {
            Some(held) if held.len() < value.len() || looks_held => held,
            _ => value,
        }
    }

    /// An entry as it was written.
    pub(super) fn restored(&self, mut entry: Entry) -> Entry {
        if self.is_held(&entry) {
            entry.value = decompressed(&entry.value).unwrap_or(entry.value);
        }
        entry
    }

    /// A change as it was written.
    pub(super) fn restored_event(&self, event: Arc<Event>) -> Arc<Event> {
        let entries = [&event.current, &event.previous];
        if !entries.into_iter().flatten().any(|entry| self.is_held(entry)) {
            return event;
        }
        let restored = |entry: &Option<Entry>| entry.clone().map(|entry| self.restored(entry));
        Arc::new(Event {
            revision: event.revision,
            key: Arc::clone(&event.key),
            current: restored(&event.current),
            previous: restored(&event.previous),
        })
    }

    fn is_held(&self, entry: &Entry) -> bool {
        entry.value.starts_with(MARK) && self.concerns(&entry.key)
    }
}

fn compressed(value: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(value.len()).ok()?;
    let bytes = zstd::bulk::compress(value, LEVEL).ok()?;
    Some([MARK, &length.to_le_bytes(), &bytes].concat().into())
}

fn decompressed(held: &[u8]) -> Option<Bytes> {
    let (length, bytes) = held.strip_prefix(MARK)?.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    zstd::bulk::decompress(bytes, length).ok().map(Bytes::from)
}
