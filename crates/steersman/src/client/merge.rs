//! Merge patches from two states of an object: what it was when it was read, and what it is to
//! be. Only what the author changed is sent, so that what others changed meanwhile stays.

use kube::api::Patch;
use serde_json::{Value, json};

use super::{Client, KindClient};
use crate::error::Result;
use crate::merge_diff::merge_diff;
use crate::object::{AnyObject, Object, ObjectKey};

/// Whether a patch may be applied to an object that has changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// It may: what it does not name stays as it is.
    Open,
    /// It may not: that is a conflict.
    Optimistic,
}

impl<K: AnyObject> KindClient<'_, K> {
    /// Patches what differs between the two states, apart from the status. If nothing does,
    /// there is no request. An object that replaced the one that was read is a conflict.
    ///
    /// A list is replaced as a whole: with lists, or to be sure that nobody changed the object
    /// since `old` was read, use [`merge_locked`](Self::merge_locked).
    pub async fn merge(&self, old: &K, new: &K) -> Result<K> {
        match self.difference(old, new, Lock::Open)? {
            Some(patch) => self.patch(ObjectKey::of(old), &patch).await,
            None => Ok(new.clone()),
        }
    }

    /// The same, but if somebody changed the object since `old` was read, that is a conflict.
    pub async fn merge_locked(&self, old: &K, new: &K) -> Result<K> {
        match self.difference(old, new, Lock::Optimistic)? {
            Some(patch) => self.patch(ObjectKey::of(old), &patch).await,
            None => Ok(new.clone()),
        }
    }

    /// The patch between two states; `None` if they are equal but for their status.
    pub(crate) fn difference(&self, old: &K, new: &K, lock: Lock) -> Result<Option<Patch<Value>>> {
        let mut old_state = self.document(old)?;
        let mut new_state = self.document(new)?;
        // Status is a subresource, and the other two differ in every version of an object.
        for state in [&mut old_state, &mut new_state] {
            state["status"] = Value::Null;
            state["metadata"]["managedFields"] = Value::Null;
            state["metadata"]["resourceVersion"] = Value::Null;
        }
        let Some(mut patch) = merge_diff(&old_state, &new_state) else {
            return Ok(None);
        };
        // What merely stands there is compared by the server, not changed.
        if !patch["metadata"].is_object() {
            patch["metadata"] = json!({});
        }
        patch["metadata"]["uid"] = json!(old.meta().uid);
        if lock == Lock::Optimistic {
            patch["metadata"]["resourceVersion"] = json!(old.meta().resource_version);
        }
        Ok(Some(Patch::Merge(patch)))
    }
}

impl Client {
    /// Patches what differs between the two states; see [`KindClient::merge`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # async fn pause(client: &steersman::Client, old: &Secret) -> steersman::Result<()> {
    /// let mut new = old.clone();
    /// new.immutable = Some(true);
    /// client.merge(old, &new).await?; // sends {"immutable": true} and the uid
    /// # Ok(()) }
    /// ```
    pub async fn merge<K: Object>(&self, old: &K, new: &K) -> Result<K> {
        self.typed().merge(old, new).await
    }

    /// The same, but if somebody changed the object since `old` was read, that is a conflict.
    pub async fn merge_locked<K: Object>(&self, old: &K, new: &K) -> Result<K> {
        self.typed().merge_locked(old, new).await
    }
}
