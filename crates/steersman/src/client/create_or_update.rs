//! Bringing an object to a state whether it exists or not.
//!
//! Reads, lets the author change what was read, and writes only a difference. A conflict is the
//! caller's: in a reconcile it goes back to the queue, which reads again.

use super::merge::Lock;
use super::{Client, KindClient};
use crate::error::{Error, Result};
use crate::object::{AnyObject, Object, ObjectKey};

/// What was done to bring an object to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It did not exist.
    Created,
    /// It differed.
    Updated,
    /// Nothing: it was so already.
    Unchanged,
}

impl<K: AnyObject> KindClient<'_, K> {
    /// Brings the object to the state that `mutate` gives it, from what it is on the server or,
    /// if it does not exist, from `initial`, which names it. Replaces it, if nobody changed it
    /// meanwhile.
    pub async fn create_or_update(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        let existing = self.get(ObjectKey::of(&initial)).await?;
        self.bring(existing, initial, mutate, false).await
    }

    /// The same, but patches what differs, so that what others change meanwhile is kept.
    pub async fn create_or_patch(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        let existing = self.get(ObjectKey::of(&initial)).await?;
        self.bring(existing, initial, mutate, true).await
    }

    /// Brings an object from what was read to what `mutate` makes of it.
    pub(crate) async fn bring(
        &self,
        existing: Option<K>,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
        patch: bool,
    ) -> Result<(K, Change)> {
        let is_new = existing.is_none();
        let old = existing.unwrap_or(initial);
        let mut new = old.clone();
        mutate(&mut new)?;
        if ObjectKey::of(&new) != ObjectKey::of(&old) {
            return Err(Error::terminal(format!(
                "what brings {} {} to a state must not rename it",
                self.kind.name(),
                ObjectKey::of(&old)
            )));
        }
        if is_new {
            return Ok((self.create(&new).await?, Change::Created));
        }
        let Some(difference) = self.difference(&old, &new, Lock::Open)? else {
            return Ok((old, Change::Unchanged));
        };
        let written = if patch {
            self.patch(ObjectKey::of(&old), &difference).await?
        } else {
            self.update(&new).await?
        };
        Ok((written, Change::Updated))
    }
}

impl Client {
    /// Brings an object to a state; see [`KindClient::create_or_update`].
    pub async fn create_or_update<K: Object>(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        self.typed().create_or_update(initial, mutate).await
    }

    /// Brings an object to a state by a patch; see [`KindClient::create_or_patch`].
    pub async fn create_or_patch<K: Object>(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        self.typed().create_or_patch(initial, mutate).await
    }
}
