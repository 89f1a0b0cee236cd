//! How a reconcile reports: a status and conditions, written once when it ends.

use std::future::ready;
use std::sync::{MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::{Report, Reported};
use super::{Context, ErasedContext};
use crate::client::{Answer, Encoded, Pending, Way, names_an_object};
use crate::clock;
use crate::codec;
use crate::conditions::NewCondition;
use crate::error::{Error, Result};
use crate::merge_diff::merge_diff;
use crate::object::{AnyObject, ErasedObject};

impl<K: AnyObject> Context<K> {
    /// Sets the status that is written when this reconcile ends, whether it succeeds or not,
    /// if it differs from what the object has.
    pub fn status(&self, status: impl Serialize) {
        match codec::to_document(&status) {
            Ok(status) => self.erased.report().set_status(status),
            Err(error) => tracing::error!(%error, "status cannot be encoded"),
        }
    }

    /// Changes the status, from what it is in this reconcile so far or, before anything was
    /// set, from what the object has. Fields that `S` does not know stay as they are.
    pub fn change_status<S>(&self, change: impl FnOnce(&mut S)) -> Result<()>
    where
        S: Serialize + DeserializeOwned + Default,
    {
        let current = self.current_status()?;
        let base = self.erased.report().status().unwrap_or(&current).clone();
        let mut status: S = match &base {
            Value::Null => S::default(),
            base => codec::from_document(base)?,
        };
        let before = codec::to_document(&status)?;
        change(&mut status);
        let after = codec::to_document(&status)?;
        self.erased.change_status(&current, before, &after);
        Ok(())
    }

    /// Sets a condition in the status that is written when this reconcile ends. Conditions of
    /// other types stay, `lastTransitionTime` changes only with its status, and
    /// `observedGeneration` is that of the object being reconciled.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use steersman::conditions::ConditionType;
    ///
    /// const READY: ConditionType = ConditionType::new("Ready");
    /// # fn example(ctx: &steersman::Context<ConfigMap>) {
    /// ctx.condition(READY.is(true, "AllReplicasUp", "3 of 3 replicas are up"));
    /// # }
    /// ```
    pub fn condition(&self, condition: NewCondition) {
        self.erased.condition(condition);
    }

    /// Removes the condition of a type from the status.
    pub fn remove_condition(&self, type_: &str) {
        self.erased.report().remove_condition(type_);
    }

    /// Writes what was reported so far now, not only when this reconcile ends: for one that goes on
    /// for a while. What is reported afterwards is written at the end.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use steersman::Result;
    /// # use serde_json::json;
    /// # async fn restore() -> Result<()> { Ok(()) }
    /// # async fn example(ctx: steersman::Context<Pod>) -> Result<()> {
    /// ctx.status(json!({"phase": "Restoring"}));
    /// ctx.write_status().await?;
    /// restore().await?; // takes minutes
    /// ctx.status(json!({"phase": "Restored"}));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn write_status(&self) -> Result<()> {
        let encode = |_: &dyn ErasedObject| codec::encode(&*self.object);
        let mut unwritten = Unwritten { ctx: &self.erased, report: self.erased.report().clone() };
        self.erased.write_taken(&encode, Base::Remembered).await?;
        unwritten.report = Report::default();
        Ok(())
    }

    fn current_status(&self) -> Result<Value> {
        match self.erased.written().clone() {
            Some(written) => Ok(written),
            None => status_of(&codec::encode(&*self.object)?),
        }
    }
}

impl ErasedContext {
    /// Writes what was reported, if anything was and it changes anything. `encode` gives the
    /// object as JSON, which few need.
    pub(crate) fn flush_status<'a>(
        &'a self,
        encode: &dyn Fn(&dyn ErasedObject) -> serde_json::Result<Vec<u8>>,
    ) -> Pending<'a, ()> {
        self.write_taken(encode, Base::Forgotten)
    }

    fn write_taken<'a>(
        &'a self,
        encode: &dyn Fn(&dyn ErasedObject) -> serde_json::Result<Vec<u8>>,
        base: Base,
    ) -> Pending<'a, ()> {
        let Some(report) = self.take_report() else { return Box::pin(ready(Ok(()))) };
        let object = encode(self.object());
        let written = self.written().clone();
        let with_status = |object: Vec<u8>| match written {
            Some(written) => Ok((written, object)),
            None => Ok((status_of(&object)?, object)),
        };
        match object.map_err(Error::from).and_then(with_status) {
            Ok((current, object)) => self.write_reported(report, base, current, object),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn written(&self) -> MutexGuard<'_, Option<Value>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the status as the step from one state of it to another does.
    fn change_status(&self, current: &Value, before: Value, after: &Value) {
        let mut report = self.report();
        // Where there was no status, what a default has is new as well.
        let none = report.status().is_none() && current.is_null();
        let before = if none { Value::Null } else { before };
        report.change_status(current, &before, after);
    }

    /// What was reported, if anything was. From here on nothing was.
    fn take_report(&self) -> Option<Report> {
        let report = std::mem::take(&mut *self.report());
        (!report.is_empty()).then_some(report)
    }

    /// Writes what was reported of an object that has this status, if it changes anything.
    fn write_reported(
        &self,
        report: Report,
        base: Base,
        current: Value,
        object: Vec<u8>,
    ) -> Pending<'_, ()> {
        Box::pin(async move {
            let generation = self.meta().generation;
            let about = Reported { status: &current, generation, now: clock::now_time() };
            let Some(wanted) = report.wanted(&about) else { return Ok(()) };
            let Some(difference) = merge_diff(&current, &wanted) else { return Ok(()) };
            let written = match self.equipment.status_way {
                Way::Patch => self.patch_status(&current, &difference).await,
                Way::Update => self.update_status(&current, wanted, &object).await,
            };
            match written {
                Ok(answer) => {
                    self.look_at_fields(&difference, &answer);
                    if base == Base::Remembered {
                        *self.written() = Some(answer.status());
                    }
                    answer.metadata().map(drop)
                }
                // There is nobody to report to.
                Err(error) if error.status().is_some_and(names_an_object) => Ok(()),
                Err(error) if error.is_not_found() => Err(Error::terminal(format!(
                    "{} has no status to write: its definition lacks the status subresource",
                    self.kind.names().name
                ))),
                Err(error) => Err(error),
            }
        })
    }

    /// Reports the fields that the server did not keep.
    fn look_at_fields(&self, written: &Value, answer: &Answer<'_>) {
        let looked_at = &self.equipment.status_fields;
        if looked_at.all_of(written) {
            return;
        }
        for field in looked_at.missing(written, &answer.status()) {
            let kind = &*self.kind.names().name;
            tracing::error!(
                kind,
                field,
                "status.{field} is not kept by the server: the schema of {kind} lacks the field, \
                 so it is pruned; add it to the status type and install the definition anew"
            );
        }
    }

    /// Patches the status of the object that was read, `current`.
    async fn patch_status(&self, current: &Value, difference: &Value) -> Result<Answer<'_>> {
        let own = self.notes().own_version().clone();
        let version = own.as_ref().or(self.meta().resource_version.as_ref());
        let patch = |version| {
            let patch = self.status_patch(difference, version);
            self.own_requests().merge_patch_status(&self.key, patch)
        };
        match patch(version.map(String::as_str)).await {
            Err(refused) if refused.is_conflict() => {
                let live = self.with_same_status(current, refused).await?;
                patch(live["metadata"]["resourceVersion"].as_str()).await
            }
            written => written,
        }
    }

    /// Replaces the status of the object that was read, `current`, by an update of the whole.
    async fn update_status(
        &self,
        current: &Value,
        wanted: Value,
        object: &[u8],
    ) -> Result<Answer<'_>> {
        let replace = |whole: &Value| {
            let whole: Encoded = serde_json::to_vec(whole);
            self.own_requests().replace_subresource("status", self.key.clone(), whole)
        };
        match replace(&self.with_status(object, wanted.clone()).await?).await {
            Err(refused) if refused.is_conflict() => {
                let mut live = self.with_same_status(current, refused).await?;
                live["status"] = wanted;
                replace(&live).await
            }
            written => written,
        }
    }

    /// What the object has become, if others have changed it but not its status: then the status
    /// can be written nevertheless, and the next reconcile looks at the rest.
    async fn with_same_status(&self, current: &Value, refused: Error) -> Result<Value> {
        let live = self.own_requests().get(self.key.clone()).await?;
        let live: Option<Value> = live.map(Answer::other).transpose()?;
        let is_same = |live: &Value| {
            live["metadata"]["uid"].as_str() == self.meta().uid.as_deref()
                && live["status"] == *current
        };
        live.filter(is_same).ok_or(refused)
    }

    /// The whole object with another status. If this reconcile wrote it, what it wrote is read
    /// again: what was read before would undo it.
    async fn with_status(&self, object: &[u8], status: Value) -> Result<Value> {
        let own = self.notes().own_version().clone();
        let mut whole: Value = match &own {
            None => serde_json::from_slice(object)?,
            Some(_) => match self.own_requests().get(self.key.clone()).await? {
                Some(live) => live.other()?,
                // Writing what is gone tells so.
                None => serde_json::from_slice(object)?,
            },
        };
        if let Some(own) = own {
            // Whatever somebody else wrote since then is a conflict.
            whole["metadata"]["resourceVersion"] = own.into();
        }
        whole["status"] = status;
        Ok(whole)
    }

    /// The patch is for this object and no other of its name. A list is replaced whole, so with
    /// one in it, nobody may have changed the object since it was read.
    fn status_patch(&self, difference: &Value, version: Option<&str>) -> Value {
        let mut metadata = json!({"uid": self.meta().uid});
        if has_list(difference) {
            metadata["resourceVersion"] = json!(version);
        }
        json!({"metadata": metadata, "status": difference})
    }
}

/// Whether what is written is what the next step begins at. At the end of a reconcile there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Remembered,
    Forgotten,
}

/// A report that is being written; if that fails, or is given up, it is written at the end.
struct Unwritten<'a> {
    ctx: &'a ErasedContext,
    report: Report,
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        let earlier = std::mem::take(&mut self.report);
        self.ctx.report().come_after(earlier);
    }
}

/// The status of an encoded object.
fn status_of(object: &[u8]) -> Result<Value> {
    #[derive(Deserialize)]
    struct Reporting {
        #[serde(default)]
        status: Value,
    }
    let Reporting { status } = codec::decode(codec::text_of(object)?)?;
    Ok(status)
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}
