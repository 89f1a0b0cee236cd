//! `PodTolerationRestriction` gives the pods of a namespace the tolerations that an annotation of it
//! names, and lets them have no others than another one allows.
//!
//! Kubernetes also reads both for all namespaces from a file; here there is none.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman_rules::kinds;

use super::fields::{items, set};
use super::stored::{self, Annotated};
use super::tolerations;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

/// Adds the tolerations of a namespace to its pods, and refuses others.
pub(super) struct PodTolerationRestriction;

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "scheduler.alpha.kubernetes.io/defaultTolerations")]
    defaults: Option<String>,
    #[serde(rename = "scheduler.alpha.kubernetes.io/tolerationsWhitelist")]
    allowed: Option<String>,
}

impl Plugin for PodTolerationRestriction {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let namespace = annotations(&write).await?;
            let mut extra = match write.operation {
                Operation::Create => read(namespace.defaults.as_deref())?,
                _ => Vec::new(),
            };
            // A pod that asks for memory is not the first to go when it runs short.
            if kinds::qos_class(&new["spec"]) != "BestEffort" {
                extra.push(json!({
                    "key": "node.kubernetes.io/memory-pressure", "operator": "Exists",
                    "effect": "NoSchedule",
                }));
            }
            let own = items(&new["spec"]["tolerations"]);
            let merged = tolerations::merged(own, &extra);
            let changed =
                !extra.is_empty() && merged != own && set(&mut new["spec"], "tolerations", merged);
            check(new, namespace.allowed.as_deref()).map(|()| changed)
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let allowed = annotations(&write).await?.allowed;
            new.map_or(Ok(()), |pod| check(pod, allowed.as_deref()))
        })
    }
}

async fn annotations(write: &Attributes<'_>) -> Result<Annotations> {
    let namespace: Annotated<Annotations> = stored::namespace(write).await?;
    Ok(namespace.metadata.annotations)
}

/// The tolerations in an annotation.
fn read(annotation: Option<&str>) -> Result<Vec<Value>> {
    match annotation {
        None | Some("") => Ok(Vec::new()),
        Some(text) => {
            serde_json::from_str(text).map_err(|error| Status::failure(error.to_string()))
        }
    }
}

fn check(pod: &Value, allowed: Option<&str>) -> Result<()> {
    let own = items(&pod["spec"]["tolerations"]);
    if own.is_empty() || tolerations::are_allowed(own, &read(allowed)?) {
        return Ok(());
    }
    // In Kubernetes this is no refusal, but an error of the server.
    Err(Status::failure(
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its \
         namespace whitelist",
    ))
}
