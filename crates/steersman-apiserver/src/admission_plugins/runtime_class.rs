//! `RuntimeClass` gives a pod what running it in its class takes: the overhead, and nodes that can.

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use steersman_rules::quantity::Quantity;

use super::fields::{items, set, text};
use super::{stored, tolerations};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Fills in overhead and scheduling of a class.
pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.creates("", "pods")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Some(class) = class_of(&write, new).await? else { return Ok(false) };
            let mut changed = false;
            if class["overhead"].is_object() {
                let overhead = &class["overhead"]["podFixed"];
                let given = &new["spec"]["overhead"];
                if given.as_object().is_some_and(|given| !given.is_empty())
                    && !is_same(given, overhead)
                {
                    return Err(write.forbidden(new, OTHER_OVERHEAD));
                }
                changed |=
                    !overhead.is_null() && set(&mut new["spec"], "overhead", overhead.clone());
            }
            if class["scheduling"].is_object() {
                let placed = place(&mut new["spec"], &class["scheduling"]);
                changed |= placed.map_err(|why| write.forbidden(new, &why))?;
            }
            Ok(changed)
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(pod) = new else { return Ok(()) };
            let class = class_of(&write, pod).await?.unwrap_or_default();
            let given = &pod["spec"]["overhead"];
            if class["overhead"].is_object() {
                let is_same = is_same(given, &class["overhead"]["podFixed"]);
                return if is_same { Ok(()) } else { Err(write.forbidden(pod, OTHER_OVERHEAD)) };
            }
            if given.is_null() {
                return Ok(());
            }
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                       Overhead";
            Err(write.forbidden(pod, why))
        })
    }
}

/// The class that a pod names, if it names one.
async fn class_of(write: &Attributes<'_>, pod: &Value) -> Result<Option<Value>> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else { return Ok(None) };
    let key = format!("/registry/runtimeclasses/{name}");
    let class: Option<Value> = stored::object(write.server, &key).await?;
    let missing = || format!("pod rejected: RuntimeClass {name:?} not found");
    class.map(Some).ok_or_else(|| write.forbidden(pod, &missing()))
}

/// Whether two lists of resources say the same, however it is written.
fn is_same(one: &Value, other: &Value) -> bool {
    let empty = Map::new();
    let [one, other] = [one, other].map(|list| list.as_object().unwrap_or(&empty));
    one.len() == other.len()
        && one.iter().all(|(name, amount)| {
            let found = other.get(name);
            found.is_some_and(|found| Quantity::of(found) == Quantity::of(amount))
        })
}

/// Sends a pod to the nodes of a class; says whether anything changed, or what contradicts.
fn place(spec: &mut Value, scheduling: &Value) -> Result<bool, String> {
    let mut selector = spec["nodeSelector"].as_object().cloned().unwrap_or_default();
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let [wanted, given] = [value, given].map(text);
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; \
                 pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let [own, classes] = [&spec["tolerations"], &scheduling["tolerations"]].map(items);
    let merged = tolerations::merged(own, classes);
    let mut changed = !selector.is_empty() && set(spec, "nodeSelector", selector);
    changed |= merged != items(&spec["tolerations"]) && set(spec, "tolerations", merged);
    Ok(changed)
}
