//! Counts how often servers started over a store.
//!
//! Everything random follows from a seed. Two servers that share a store, or one that starts
//! again, may have the same seed, and would give two objects the same uid; so the count goes into
//! the seed as well. A cluster that is made anew and does the same gets the same all the same.

use steersman_store::{Expected, Store, StoreError, WriteRequest};

/// Where the count is. Resources are stored in folders, and this is none.
const KEY: &str = "/registry/steersman.dev/starts";

/// How often others may be faster, or the store may not say whether it counted.
const ATTEMPTS: usize = 100;

/// A start of a server over a store, by how many there were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start(u64);

impl Start {
    /// What becomes of a seed at this start; the first leaves it as it is.
    pub(crate) fn seed(self, seed: u64) -> u64 {
        // An odd number far from zero, so that hardly another seed of someone's choice is met.
        seed.wrapping_add(self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Counts this start.
pub(crate) async fn count(store: &dyn Store) -> Result<Start, StoreError> {
    let mut attempts = 0;
    loop {
        let entry = store.get(KEY).await?;
        let text = entry.as_ref().and_then(|entry| std::str::from_utf8(&entry.value).ok());
        let before: u64 = text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let expected = entry.map_or(Expected::Absent, |entry| Expected::Modified(entry.modified));
        let request = WriteRequest::put(KEY, (before + 1).to_string(), expected);
        attempts += 1;
        match store.write(request).await {
            Ok(_) => return Ok(Start(before)),
            // A start that is counted twice does no harm.
            Err(StoreError::Conflict { .. } | StoreError::Unknown { .. })
                if attempts < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use steersman_store::memory::MemoryStore;

    use super::{Start, count};

    #[tokio::test]
    async fn every_start_has_its_own_number() {
        let store = MemoryStore::new();
        assert_eq!(count(&store).await.unwrap(), Start(0));
        let (one, other) = tokio::join!(count(&store), count(&store));
        let mut both = [one.unwrap(), other.unwrap()];
        both.sort_unstable();
        assert_eq!(both, [Start(1), Start(2)]);
        assert_eq!(Start(0).seed(7), 7);
        assert_ne!(Start(1).seed(7), Start(2).seed(7));
    }
}
