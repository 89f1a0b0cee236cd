//! Encryption at rest: values of chosen keys are encrypted on their way to a store, and decrypted
//! on their way back.
//!
//! [`EncryptedStore`] stands before any store, so a log, a snapshot, a backup and etcd hold what it
//! made of a value. The format is Kubernetes' own: a kube-apiserver that has the same keys reads
//! it. What a value was encrypted with stands before it, so keys can change: the first
//! [`Provider`] of a [`Rule`] writes, all of them read, and a value that another than the first has
//! written [is stale](crate::Store::is_stale) until it is written again.
//!
//! A store in memory is not at rest anywhere; there is nothing to encrypt.

mod provider;
mod store;
mod watch;

use bytes::Bytes;

pub use self::provider::{InvalidKey, Provider};
pub use self::store::EncryptedStore;
use crate::{Entry, Key, StoreError};

/// How the values of some keys are encrypted.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What these keys begin with.
    pub prefixes: Vec<String>,
    /// The first one encrypts; all of them decrypt.
    pub providers: Vec<Provider>,
}

/// Which values are encrypted, and how. A key follows the first rule that knows what it begins
/// with; the values of others are stored as they are.
#[derive(Clone, Debug, Default)]
pub struct Encryption {
    rules: Vec<Rule>,
}

impl Encryption {
    /// Encryption by these rules. One without a provider does nothing.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules = rules.into_iter().filter(|rule| !rule.providers.is_empty());
        Self { rules: rules.collect() }
    }

    /// Who reads and writes the values of a key.
    fn providers(&self, key: &str) -> &[Provider] {
        let covers = |rule: &&Rule| rule.prefixes.iter().any(|prefix| key.starts_with(prefix));
        self.rules.iter().find(covers).map_or(&[Provider::IDENTITY], |rule| &rule.providers)
    }

    /// The value of a key as it is stored.
    fn seal(&self, key: &str, value: Bytes) -> Result<Bytes, StoreError> {
        let sealed = self.providers(key)[0].seal(key, value);
        sealed.map_err(|reason| StoreError::Refused { reason: reason.to_owned() })
    }

    /// Whether a stored value is what it was before.
    fn leaves(&self, entry: &Entry) -> bool {
        !is_encrypted(&entry.value)
            && self.providers(&entry.key).iter().any(|provider| provider.has_written(&entry.value))
    }

    /// Makes of a stored value what it was before.
    fn open(&self, entry: &mut Entry) -> Result<(), StoreError> {
        let mut failed = None;
        for provider in self.providers(&entry.key) {
            match provider.open(&entry.key, &entry.value) {
                Some(Ok(value)) => {
                    entry.value = value;
                    return Ok(());
                }
                // Two may have the same name while one replaces the other.
                Some(Err(reason)) => failed = Some(reason),
                None => {}
            }
        }
        let reason = failed.unwrap_or_else(|| provider::nobody_reads(&entry.value));
        Err(StoreError::Unreadable { key: Key::clone(&entry.key), reason })
    }

    /// Whether another than the first has written a value.
    fn is_stale(&self, key: &str, value: &[u8]) -> bool {
        !self.providers(key)[0].has_written(value)
    }
}

/// Whether a stored value is encrypted, by whatever provider.
pub fn is_encrypted(value: &[u8]) -> bool {
    value.starts_with(provider::ENCRYPTED)
}

#[cfg(test)]
mod tests;
