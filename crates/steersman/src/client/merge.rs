//! Merge patches from two states of an object: what it was when it was read, and what it is to
//! be. Only what the author changed is sent, so that what others changed meanwhile stays.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::requests::Encoded;
use super::{Answer, Client, KindClient, Pending, Requests};
use crate::codec::encode;
use crate::error::{Error, Result};
use crate::merge_diff::merge_diff;
use crate::object::{AnyObject, AsObject, Object, ObjectKey};

/// Whether a patch may be applied to an object that has changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// It may: what it does not name stays as it is.
    Open,
    /// It may not: that is a conflict.
    Optimistic,
}

/// Two states of an object, whose type has been forgotten.
pub(crate) struct Step {
    /// Which object it was when it was read.
    pub(super) key: ObjectKey,
    uid: Option<String>,
    version: Option<String>,
    old: Vec<u8>,
    pub(super) new: Vec<u8>,
}

impl Step {
    /// From what was read, with this metadata, to what it is to be.
    pub(super) fn new(meta: &ObjectMeta, old: Encoded, new: Encoded) -> serde_json::Result<Self> {
        Ok(Self {
            key: ObjectKey::of_meta(meta),
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
            old: old?,
            new: new?,
        })
    }

    fn between<K: AnyObject>(old: &K, new: &K) -> serde_json::Result<Self> {
        Self::new(old.meta(), encode(old), encode(new))
    }
}

impl<'a> Requests<'a> {
    /// Patches what differs between the two states, apart from the status; `None` if nothing does.
    fn merge(self, step: serde_json::Result<Step>, lock: Lock) -> Pending<'a, Option<Answer<'a>>> {
        Box::pin(async move {
            let step = step?;
            match self.difference(&step, lock)? {
                Some(patch) => self.merge_patch(&step.key, patch).await.map(Some),
                None => Ok(None),
            }
        })
    }

    /// The patch between two states; `None` if they are equal but for their status.
    pub(super) fn difference(&self, step: &Step, lock: Lock) -> Result<Option<Value>> {
        let mut old = self.document(&step.old)?;
        let mut new = self.document(&step.new)?;
        // Status is a subresource, and the other two differ in every version of an object.
        for state in [&mut old, &mut new] {
            state["status"] = Value::Null;
            state["metadata"]["managedFields"] = Value::Null;
            state["metadata"]["resourceVersion"] = Value::Null;
        }
        let Some(mut patch) = merge_diff(&old, &new) else {
            return Ok(None);
        };
        // What merely stands there is compared by the server, not changed.
        if !patch["metadata"].is_object() {
            patch["metadata"] = json!({});
        }
        patch["metadata"]["uid"] = json!(step.uid);
        if lock == Lock::Optimistic {
            patch["metadata"]["resourceVersion"] = json!(self.locked_version(step)?);
        }
        Ok(Some(patch))
    }

    /// The version that must not have changed. Without one in it, a patch would not be locked at all.
    fn locked_version<'s>(&self, step: &'s Step) -> Result<&'s str> {
        let version = step.version.as_deref().filter(|version| !version.is_empty());
        version.ok_or_else(|| {
            Error::terminal(format!(
                "{} {} cannot be locked: what was read of it has no resourceVersion",
                self.kind.names().name,
                step.key
            ))
        })
    }
}

impl<K: AnyObject> KindClient<'_, K> {
    /// Patches what differs between the two states, apart from the status. If nothing does,
    /// there is no request. An object that replaced the one that was read is a conflict.
    ///
    /// A list is replaced as a whole: with lists, or to be sure that nobody changed the object
    /// since `old` was read, use [`merge_locked`](Self::merge_locked).
    pub async fn merge(&self, old: &K, new: &K) -> Result<K> {
        merged(self.requests().merge(Step::between(old, new), Lock::Open).await?, new)
    }

    /// The same, but if somebody changed the object since `old` was read, that is a conflict. What
    /// has no version, because it was not read, is an error.
    pub async fn merge_locked(&self, old: &K, new: &K) -> Result<K> {
        merged(self.requests().merge(Step::between(old, new), Lock::Optimistic).await?, new)
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
    pub async fn merge<K: Object>(&self, old: &impl AsObject<K>, new: &K) -> Result<K> {
        let step = Step::between(old.as_object(), new);
        merged(self.requests::<K>().merge(step, Lock::Open).await?, new)
    }

    /// The same, but if somebody changed the object since `old` was read, that is a conflict. What
    /// has no version, because it was not read, is an error.
    pub async fn merge_locked<K: Object>(&self, old: &impl AsObject<K>, new: &K) -> Result<K> {
        let step = Step::between(old.as_object(), new);
        merged(self.requests::<K>().merge(step, Lock::Optimistic).await?, new)
    }
}

/// The object as it is after a merge.
fn merged<K: AnyObject>(answer: Option<Answer<'_>>, new: &K) -> Result<K> {
    match answer {
        Some(answer) => answer.object(),
        None => Ok(new.clone()),
    }
}
