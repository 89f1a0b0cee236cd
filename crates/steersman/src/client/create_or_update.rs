//! Bringing an object to a state whether it exists or not.
//!
//! Reads, lets the author change what was read, and writes only a difference. A conflict is the
//! caller's: in a reconcile it goes back to the queue, which reads again.

use super::answer::found;
use super::merge::{Lock, Step};
use super::{Answer, Client, KindClient, Pending, Requests};
use crate::codec::encode;
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

/// How an object that differs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As a whole, if nobody changed it meanwhile.
    Update,
    /// Only what differs.
    Patch,
}

/// The state that an object is to be brought to, whose type has been forgotten.
pub(crate) struct Target {
    is_new: bool,
    /// The key after the author changed the object.
    key: ObjectKey,
    step: serde_json::Result<Step>,
}

/// What came of bringing an object to a state: the answer, if something was written.
pub(crate) type Brought<'a> = (Option<Answer<'a>>, Change);

impl Target {
    /// What `mutate` makes of an object, from what was read or else from `initial`; beside it,
    /// what it was before.
    pub(crate) fn new<K: AnyObject>(
        existing: Option<K>,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Self)> {
        let is_new = existing.is_none();
        let old = existing.unwrap_or(initial);
        let mut new = old.clone();
        mutate(&mut new)?;
        let read = if is_new { Ok(Vec::new()) } else { encode(&old) };
        let step = Step::new(old.meta(), read, encode(&new));
        Ok((old, Self { is_new, key: ObjectKey::of(&new), step }))
    }
}

impl<'a> Requests<'a> {
    /// Brings an object to a state.
    pub(crate) fn bring(self, target: Target, way: Way) -> Pending<'a, Brought<'a>> {
        Box::pin(async move {
            let step = target.step?;
            if target.key != step.key {
                return Err(Error::terminal(format!(
                    "what brings {} {} to a state must not rename it",
                    self.kind.names().name,
                    step.key
                )));
            }
            if target.is_new {
                let created = self.create(step.key, Ok(step.new)).await?;
                return Ok((Some(created), Change::Created));
            }
            let Some(difference) = self.difference(&step, Lock::Open)? else {
                return Ok((None, Change::Unchanged));
            };
            let written = match way {
                Way::Update => self.update(step.key, Ok(step.new)).await?,
                Way::Patch => self.merge_patch(&step.key, difference).await?,
            };
            Ok((Some(written), Change::Updated))
        })
    }
}

/// The object as it is after it was brought to a state.
pub(crate) fn brought<K: AnyObject>((answer, change): Brought<'_>, old: K) -> Result<(K, Change)> {
    match answer {
        Some(answer) => Ok((answer.object()?, change)),
        None => Ok((old, change)),
    }
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
        self.bring(initial, mutate, Way::Update).await
    }

    /// The same, but patches what differs, so that what others change meanwhile is kept.
    pub async fn create_or_patch(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        self.bring(initial, mutate, Way::Patch).await
    }

    async fn bring(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
        way: Way,
    ) -> Result<(K, Change)> {
        let existing = found(self.requests().get(ObjectKey::of(&initial)).await?)?;
        let (old, target) = Target::new(existing, initial, mutate)?;
        brought(self.requests().bring(target, way).await?, old)
    }
}

impl Client {
    /// Brings an object to a state; see [`KindClient::create_or_update`].
    pub async fn create_or_update<K: Object>(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        self.typed().bring(initial, mutate, Way::Update).await
    }

    /// Brings an object to a state by a patch; see [`KindClient::create_or_patch`].
    pub async fn create_or_patch<K: Object>(
        &self,
        initial: K,
        mutate: impl FnOnce(&mut K) -> Result<()>,
    ) -> Result<(K, Change)> {
        self.typed().bring(initial, mutate, Way::Patch).await
    }
}
