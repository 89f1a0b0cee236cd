//! `PodTolerationRestriction` gives the pods of a namespace the tolerations that an annotation of it
//! names, and lets them have no others than another one allows. Its configuration says both for all
//! namespaces that have no such annotation.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use steersman_rules::kinds;

use super::configuration;
use super::fields::{items, set};
use super::stored::{self, Annotated, absent};
use super::tolerations;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

const KINDS: &[(&str, &str)] =
    &[("podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration")];

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(told: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let document = told.map(|told| configuration::read::<Document>(told, KINDS)).transpose()?;
    let Document { default, whitelist } = document.unwrap_or_default();
    let [defaults, allowed] =
        [default, whitelist].map(|list| list.into_iter().map(Value::from).collect());
    Ok(Box::new(PodTolerationRestriction { defaults, allowed }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    default: Vec<Toleration>,
    whitelist: Vec<Toleration>,
}

/// Adds the tolerations of a namespace to its pods, and refuses others.
struct PodTolerationRestriction {
    /// What pods get in namespaces that do not say.
    defaults: Vec<Value>,
    /// What pods may have in namespaces that do not say; anything, if this is nothing.
    allowed: Vec<Value>,
}

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
                Operation::Create => match namespace.defaults.as_deref() {
                    Some(defaults) => read(defaults)?,
                    None => self.defaults.clone(),
                },
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
            self.check(new, namespace.allowed.as_deref()).map(|()| changed)
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
            new.map_or(Ok(()), |pod| self.check(pod, allowed.as_deref()))
        })
    }
}

async fn annotations(write: &Attributes<'_>) -> Result<Annotations> {
    let namespace: Annotated<Annotations> = stored::namespace(write).await?;
    Ok(namespace.annotations)
}

/// A toleration in an annotation. What else stands there is no part of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Toleration {
    #[serde(deserialize_with = "absent")]
    key: String,
    #[serde(deserialize_with = "absent")]
    operator: String,
    #[serde(deserialize_with = "absent")]
    value: String,
    #[serde(deserialize_with = "absent")]
    effect: String,
    toleration_seconds: Option<i64>,
}

impl From<Toleration> for Value {
    fn from(toleration: Toleration) -> Self {
        let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
        let texts = [("key", key), ("operator", operator), ("value", value), ("effect", effect)];
        let said = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let said = said.map(|(name, text)| (name.to_owned(), text.into()));
        let seconds = toleration_seconds.map(|it| ("tolerationSeconds".to_owned(), it.into()));
        Self::Object(said.chain(seconds).collect())
    }
}

/// The tolerations in an annotation.
fn read(text: &str) -> Result<Vec<Value>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let read: Option<Vec<Toleration>> =
        serde_json::from_str(text).map_err(|error| Status::failure(error.to_string()))?;
    Ok(read.into_iter().flatten().map(Value::from).collect())
}

impl PodTolerationRestriction {
    fn check(&self, pod: &Value, of_namespace: Option<&str>) -> Result<()> {
        let own = items(&pod["spec"]["tolerations"]);
        if own.is_empty() {
            return Ok(());
        }
        let (allowed, whose) = match of_namespace {
            Some(allowed) => (read(allowed)?, "namespace"),
            None => (self.allowed.clone(), "cluster"),
        };
        if tolerations::are_allowed(own, &allowed) {
            return Ok(());
        }
        // In Kubernetes this is no refusal, but an error of the server.
        Err(Status::failure(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with \
             its {whose} whitelist"
        )))
    }
}
