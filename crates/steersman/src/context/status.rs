//! How a reconcile reports: a status and conditions, written once when it ends.

use std::sync::{MutexGuard, PoisonError};

use kube::api::Patch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Context;
use super::report::{Report, Reported};
use crate::client::names_an_object;
use crate::clock;
use crate::conditions::NewCondition;
use crate::error::{Error, Result};
use crate::merge_diff::merge_diff;
use crate::object::AnyObject;

impl<K: AnyObject> Context<K> {
    /// Sets the status that is written when this reconcile ends, whether it succeeds or not,
    /// if it differs from what the object has.
    pub fn status(&self, status: impl Serialize) {
        match serde_json::to_value(status) {
            Ok(status) => self.report().set_status(status),
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
        let base = self.report().status().unwrap_or(&current).clone();
        let mut status: S = match base {
            Value::Null => S::default(),
            base => serde_json::from_value(base)?,
        };
        let before = serde_json::to_value(&status)?;
        change(&mut status);
        let after = serde_json::to_value(&status)?;
        // Where there was no status, what a default has is new as well.
        let none = self.report().status().is_none() && current.is_null();
        let before = if none { Value::Null } else { before };
        self.report().change_status(&current, &before, &after);
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
        self.report().set_condition(condition);
    }

    /// Removes the condition of a type from the status.
    pub fn remove_condition(&self, type_: &str) {
        self.report().remove_condition(type_);
    }

    /// Writes what was reported, if anything was and it changes anything.
    pub(crate) async fn flush_status(&self) -> Result<()> {
        let report = std::mem::take(&mut *self.report());
        if report.is_empty() {
            return Ok(());
        }
        let current = self.current_status()?;
        let generation = self.object.meta().generation;
        let about = Reported { status: &current, generation, now: clock::now_time() };
        let difference = report.wanted(&about).and_then(|wanted| merge_diff(&current, &wanted));
        let Some(difference) = difference else {
            return Ok(());
        };
        let patch = Patch::Merge(self.status_patch(&difference));
        match self.of_kind(&self.kind).patch_status(&self.key, &patch).await {
            Err(error) if error.status().is_some_and(names_an_object) => Ok(()), // nobody to report to
            Err(error) if error.is_not_found() => Err(Error::terminal(format!(
                "{} has no status to write: its definition lacks the status subresource",
                self.kind.name()
            ))),
            result => result.map(drop),
        }
    }

    /// The patch is for this object and no other of its name. A list is replaced whole, so with
    /// one in it, nobody may have changed the object since it was read.
    fn status_patch(&self, difference: &Value) -> Value {
        let mut metadata = json!({"uid": self.object.meta().uid});
        if has_list(difference) {
            let own = self.notes().own_version();
            let version = own.as_ref().or(self.object.meta().resource_version.as_ref());
            metadata["resourceVersion"] = json!(version);
        }
        json!({"metadata": metadata, "status": difference})
    }

    fn current_status(&self) -> Result<Value> {
        let mut object = serde_json::to_value(&*self.object)?;
        Ok(object.get_mut("status").map(Value::take).unwrap_or_default())
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.inner.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}
