//! `PodSecurity`: namespaces say by labels which of the [Pod Security Standards][standards] their
//! Pods must meet.
//!
//! A [`Policy`] is what the labels say. [`evaluate`](evaluate::evaluate) judges a Pod by the
//! [checks] of a level, and [`Decision`] is what comes of it: a Pod that violates what is enforced
//! is refused; of Pods that violate other levels, and of workloads whose Pods would, people are
//! told. All of that is pure; this file reads what it needs and answers. When more is asked of a
//! namespace than before, [existing] looks at the Pods that are there.
//!
//! What [`Decision::audit`] has is told to those who [audit](crate::audit).
//!
//! [standards]: https://kubernetes.io/docs/concepts/security/pod-security-standards/

mod checks;
mod configuration;
mod counts;
mod decision;
mod evaluate;
mod existing;
mod policy;
mod subject;
#[cfg(test)]
mod tests;
mod violation;
mod wording;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_store::StoreError;

use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};
use configuration::Configuration;
use decision::{Decision, annotation};
use policy::{Level, Policy};
use subject::Pod;

/// Ways to write to a Pod that do not change what is judged of it.
const IGNORED: [&str; 8] =
    ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(told: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let config = told.map(Configuration::read).transpose()?.unwrap_or_default();
    Ok(Box::new(PodSecurity { config }))
}

#[derive(Default)]
struct PodSecurity {
    config: Configuration,
}

/// What is judged of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concern {
    /// The labels of a namespace.
    Labels,
    Pod,
    /// The template of a Pod, at this place.
    Template(&'static str),
}

impl Concern {
    fn of(write: &Attributes<'_>) -> Option<Self> {
        let concern = match (&*write.resource.group, &*write.resource.plural) {
            ("", "pods") if IGNORED.contains(&write.subresource) => return None,
            ("", "pods") => return Some(Self::Pod),
            ("", "namespaces") => Self::Labels,
            ("", "podtemplates") => Self::Template("/template"),
            ("", "replicationcontrollers")
            | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
            | ("batch", "jobs") => Self::Template("/spec/template"),
            ("batch", "cronjobs") => Self::Template("/spec/jobTemplate/spec/template"),
            _ => return None,
        };
        write.subresource.is_empty().then_some(concern)
    }
}

impl Plugin for PodSecurity {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation != Operation::Delete && Concern::of(write).is_some()
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (Some(new), Some(concern)) = (new, Concern::of(&write)) else { return Ok(()) };
            match concern {
                Concern::Labels => self.labels(write, new, old).await,
                Concern::Pod => answer(write, self.pod(write, new, old).await?),
                Concern::Template(place) => {
                    let template = new.pointer(place).filter(|template| template.is_object());
                    let Some(template) = template else { return Ok(()) };
                    answer(write, self.template(write, Pod::of(template)).await)
                }
            }
        })
    }
}

impl PodSecurity {
    /// Refuses labels that mean nothing, unless they were there before, and tells which Pods
    /// violate what is newly enforced.
    async fn labels(&self, write: Attributes<'_>, new: &Value, old: Option<&Value>) -> Result<()> {
        let name = write.place.name;
        let labels = &new["metadata"]["labels"];
        let defaults = &self.config.defaults;
        let (policy, mistakes) = Policy::of_labels(labels, defaults);
        let before = old.map(|old| Policy::of_labels(&old["metadata"]["labels"], defaults));
        let unchanged = before.as_ref().is_some_and(|(_, before)| *before == mistakes);
        if !mistakes.is_empty() && !unchanged {
            return Err(Status::invalid(write.resource.named_kind(name), &mistakes));
        }
        if before.is_some_and(|(before, _)| !asks_more(&policy, &before)) {
            return Ok(());
        }
        if self.config.exempts_namespace(name) {
            let in_vain = policy.set_in_vain(labels, defaults);
            in_vain.into_iter().for_each(|policy| {
                write.warnings.warn(format!(
                    "namespace {name:?} is exempt from Pod Security, and the policy ({policy}) \
                     will be ignored"
                ));
            });
        } else if old.is_some() {
            let warnings = existing::warnings(write.server, &self.config, name, policy.enforce);
            warnings.await.into_iter().for_each(|warning| write.warnings.warn(warning));
        }
        Ok(())
    }

    /// Judges a Pod.
    async fn pod(
        &self,
        write: Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<Decision> {
        if let Some(exempt) = self.exempt(write) {
            return Ok(exempt);
        }
        let Some((policy, mistakes)) = self.policy(write).await.ok().flatten() else {
            counts::failed(write, "true");
            let why = format!("failed to lookup namespace {:?}", write.place.namespace);
            return Err(Status::internal(&why));
        };
        if mistakes.is_empty() && policy.is_privileged() {
            let enforced = Policy::PRIVILEGED.enforce.to_string();
            let decision = Decision::pass(annotation::ENFORCED, enforced);
            counts::evaluated(write, &policy, &decision);
            return Ok(decision);
        }
        let pod = Pod::of(new);
        if old.is_some_and(|old| !pod.differs_from(Pod::of(old))) {
            return Ok(Decision::default());
        }
        if self.exempts_class(write, pod) {
            return Ok(Decision::pass(annotation::EXEMPT, "runtimeClass"));
        }
        let decision = Decision::on_pod(&policy, &mistakes, pod);
        counts::evaluated(write, &policy, &decision);
        Ok(decision)
    }

    /// Judges the template of a workload, which is never refused.
    async fn template(&self, write: Attributes<'_>, pod: Pod<'_>) -> Decision {
        if let Some(exempt) = self.exempt(write) {
            return exempt;
        }
        let Some((policy, mistakes)) = self.policy(write).await.ok().flatten() else {
            counts::failed(write, "true");
            let why = format!("failed to lookup namespace {:?}", write.place.namespace);
            return Decision::pass(annotation::ERROR, why);
        };
        let asks = |level: Level| level != Level::Privileged;
        if mistakes.is_empty() && !asks(policy.warn.level) && !asks(policy.audit.level) {
            return Decision::default();
        }
        if self.exempts_class(write, pod) {
            return Decision::pass(annotation::EXEMPT, "runtimeClass");
        }
        let decision = Decision::on_template(&policy, &mistakes, pod);
        counts::evaluated(write, &policy, &decision);
        decision
    }

    /// Lets those pass who are not asked.
    fn exempt(&self, write: Attributes<'_>) -> Option<Decision> {
        let why = if self.config.exempts_namespace(write.place.namespace) {
            "namespace"
        } else if self.config.exempts_user(&write.user.name) {
            "user"
        } else {
            return None;
        };
        counts::exempted(write);
        Some(Decision::pass(annotation::EXEMPT, why))
    }

    /// Whether the runtime class of a Pod is one whose Pods are not judged, which is counted.
    fn exempts_class(&self, write: Attributes<'_>, pod: Pod<'_>) -> bool {
        let exempt = self.config.exempts_runtime_class(pod.runtime_class());
        if exempt {
            counts::exempted(write);
        }
        exempt
    }

    /// What the namespace of a write asks, and what is wrong with its labels; `None` if it does
    /// not exist, or cannot be read.
    async fn policy(
        &self,
        write: Attributes<'_>,
    ) -> Result<Option<(Policy, Vec<FieldError>)>, StoreError> {
        let key = format!("/registry/namespaces/{}", write.place.namespace);
        let entry = match write.server.known(&key).await? {
            None => write.server.get(&key).await?,
            known => known,
        };
        let Some(entry) = entry else { return Ok(None) };
        let read = serde_json::from_slice(&entry.value);
        let Ok(Namespace { metadata: Metadata { labels } }) = read else { return Ok(None) };
        Ok(Some(Policy::of_labels(&labels, &self.config.defaults)))
    }
}

#[derive(Deserialize)]
struct Namespace {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: Value,
}

/// Whether Pods may violate what is enforced although they met what was.
fn asks_more(policy: &Policy, before: &Policy) -> bool {
    let new = policy.enforce;
    let old = before.enforce;
    let relaxed = new.version == old.version && new.level <= old.level;
    new.level != Level::Privileged && !relaxed
}

/// Tells what was decided to whom it concerns.
fn answer(write: Attributes<'_>, decision: Decision) -> Result<()> {
    let Decision { refusal, warning, audit } = decision;
    if let Some(trail) = write.trail {
        for (name, value) in audit {
            trail.annotate(format!("{}{name}", annotation::PREFIX), value);
        }
    }
    if let Some(warning) = warning {
        write.warnings.warn(warning);
    }
    match refusal {
        Some(why) => {
            Err(Status::forbidden(write.resource.named(write.place.name), &why, Vec::new()))
        }
        None => Ok(()),
    }
}
