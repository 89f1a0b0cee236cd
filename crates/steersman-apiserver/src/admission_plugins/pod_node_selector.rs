//! `PodNodeSelector` sends the pods of a namespace to the nodes that an annotation of it names.
//!
//! Kubernetes also reads selectors for all namespaces from a file; here there is none.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::{metadata, names};

use super::fields::set;
use super::stored::{self, Annotated};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

/// Adds the node selector of a namespace to its pods.
pub(super) struct PodNodeSelector;

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "scheduler.alpha.kubernetes.io/node-selector")]
    selector: Option<String>,
}

impl Plugin for PodNodeSelector {
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
            let selector = selector_of_namespace(&write).await?;
            check(&write, new, &selector)?;
            if selector.is_empty() {
                return Ok(false);
            }
            let mut all = new["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
            all.extend(selector.into_iter().map(|(key, value)| (key, value.into())));
            Ok(set(&mut new["spec"], "nodeSelector", all))
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let selector = selector_of_namespace(&write).await?;
            new.map_or(Ok(()), |pod| check(&write, pod, &selector))
        })
    }
}

/// Refuses a pod that wants to be elsewhere.
fn check(write: &Attributes<'_>, pod: &Value, selector: &BTreeMap<String, String>) -> Result<()> {
    let wanted = &pod["spec"]["nodeSelector"];
    let contradicts =
        |(key, value): (&String, &String)| wanted.get(key).is_some_and(|wanted| wanted != value);
    if !selector.iter().any(contradicts) {
        return Ok(());
    }
    let why = "pod node label selector conflicts with its namespace node label selector";
    let named = write.resource.named(metadata::text(pod, "name"));
    Err(Status::forbidden(named, why, Vec::new()))
}

async fn selector_of_namespace(write: &Attributes<'_>) -> Result<BTreeMap<String, String>> {
    let namespace: Annotated<Annotations> = stored::namespace(write).await?;
    let selector = namespace.metadata.annotations.selector.unwrap_or_default();
    read(&selector).map_err(Status::failure)
}

/// The labels of a selector such as `zone=a,disk=fast`.
fn read(selector: &str) -> Result<BTreeMap<String, String>, String> {
    if selector.is_empty() {
        return Ok(BTreeMap::new());
    }
    let one = |label: &str| {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else {
            return Err(format!("invalid selector: [{}]", parts.join(" ")));
        };
        let [key, value] = [key, value].map(str::trim);
        let mistakes = [names::qualified_name(key), names::label_value(value)].concat();
        match mistakes.is_empty() {
            true => Ok((key.to_owned(), value.to_owned())),
            false => Err(format!("invalid selector: {label}: {}", mistakes.join("; "))),
        }
    };
    selector.split(',').map(one).collect()
}
