//! `PodNodeSelector` sends the pods of a namespace to the nodes that an annotation of it names, or
//! to those that its configuration names for all namespaces without one. The configuration may
//! also say to which nodes alone the pods of a namespace may want to go.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::{metadata, names};

use super::fields::set;
use super::stored::{self, Annotated};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

/// The key of the configuration under which the selector of all other namespaces is.
const DEFAULT: &str = "clusterDefaultNodeSelector";

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(told: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let document = told.map(|told| Document::deserialize(told).map_err(|error| error.to_string()));
    let selectors = document.transpose()?.unwrap_or_default().selectors;
    Ok(Box::new(PodNodeSelector { selectors }))
}

/// The configuration, which has no version.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, rename = "podNodeSelectorPluginConfig")]
    selectors: BTreeMap<String, String>,
}

/// Adds the node selector of a namespace to its pods.
struct PodNodeSelector {
    /// By namespace, what its pods may select; and what they select by default.
    selectors: BTreeMap<String, String>,
}

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
            let selector = self.selector_of_namespace(&write).await?;
            check(&write, new, &selector)?;
            let mut changed = false;
            if !selector.is_empty() {
                let mut all = new["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
                all.extend(selector.into_iter().map(|(key, value)| (key, value.into())));
                changed = set(&mut new["spec"], "nodeSelector", all);
            }
            self.check_allowed(&write, new).map(|()| changed)
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let selector = self.selector_of_namespace(&write).await?;
            let Some(pod) = new else { return Ok(()) };
            check(&write, pod, &selector)?;
            self.check_allowed(&write, pod)
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
    Err(refusal(write, pod, why))
}

fn refusal(write: &Attributes<'_>, pod: &Value, why: &str) -> Status {
    let named = write.resource.named(metadata::text(pod, "name"));
    Status::forbidden(named, why, Vec::new())
}

impl PodNodeSelector {
    async fn selector_of_namespace(
        &self,
        write: &Attributes<'_>,
    ) -> Result<BTreeMap<String, String>> {
        let namespace: Annotated<Annotations> = stored::namespace(write).await?;
        let selector = namespace.annotations.selector;
        let selector = selector.as_ref().or_else(|| self.selectors.get(DEFAULT));
        read(selector.map_or("", String::as_str)).map_err(Status::failure)
    }

    /// Refuses a pod that wants to go where those of its namespace may not.
    fn check_allowed(&self, write: &Attributes<'_>, pod: &Value) -> Result<()> {
        let allowed = self.selectors.get(write.place.namespace).map_or("", String::as_str);
        let allowed = read(allowed).map_err(Status::failure)?;
        let mut wanted = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
        let is_allowed = |key: &String, value: &Value| {
            allowed.get(key).is_some_and(|allowed| value == allowed.as_str())
        };
        if allowed.is_empty() || wanted.all(|(key, value)| is_allowed(key, value)) {
            return Ok(());
        }
        let why = "pod node label selector labels conflict with its namespace whitelist";
        Err(refusal(write, pod, why))
    }
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
        // Where Kubernetes says where a mistake is, it says that here: nowhere in particular.
        label_part("<nil>", key, names::qualified_name)?;
        label_part(&format!("[{key}]"), value, names::label_value)?;
        Ok((key.to_owned(), value.to_owned()))
    };
    selector.split(',').map(one).collect()
}

/// Refuses the key or the value of a label that is none.
fn label_part(at: &str, part: &str, wrong: fn(&str) -> Vec<String>) -> Result<(), String> {
    let mistakes = wrong(part);
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(FieldError::invalid(at, &part.into(), &mistakes.join("; ")).message()),
    }
}
