//! Carries out one action of a plan, and tells people of it in Kubernetes' words.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use steersman::events::NewEvent;
use steersman::{Context, Error, Result};

use super::claims;
use super::identity::{identify, is_identified, name_of, ordinal_of};
use super::plan::Action;
use crate::pod_control;

/// Who acts.
pub(super) struct Actor<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) ctx: &'a Context<StatefulSet>,
}

impl Actor<'_> {
    /// Does it.
    pub(super) async fn act(&self, action: Action) -> Result<()> {
        match action {
            Action::Create(pod) => self.create(*pod).await,
            Action::Provide(pod) => self.provide(&pod).await,
            Action::Reassign(pod) => self.reassign(&pod).await,
            Action::Repair(pod) => self.repair(Pod::clone(&pod)).await,
            Action::Delete(pod) => self.delete(&pod).await,
        }
    }

    async fn create(&self, pod: Pod) -> Result<()> {
        let provided = self.provide_claims(&pod).await;
        self.told_of_failure("Create", &pod, provided)?;
        match self.ctx.create_unread(pod.clone()).await {
            Err(error) if error.is_already_exists() => Err(error),
            created => {
                // Whoever has no uid owns nothing yet: what can be done now concerns the set.
                let reassigned = self.reassign(&pod).await;
                self.told_of_failure("Update", &pod, reassigned)?;
                self.told("Create", &pod, created.map(drop))
            }
        }
    }

    /// Creates what lacks of a Pod's claims.
    async fn provide(&self, pod: &Arc<Pod>) -> Result<()> {
        self.provide_claims(pod).await?;
        let reassigned = self.reassign(pod).await;
        self.told_of_failure("Update", pod, reassigned)
    }

    /// The same, all of them even if some cannot be created.
    async fn provide_claims(&self, pod: &Pod) -> Result<()> {
        let mut failures = Vec::new();
        for claim in self.claims_of(pod) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            match self.ctx.get::<PersistentVolumeClaim>(&name)? {
                None => {
                    let created = self.ctx.live().create(&claim).await.map(drop);
                    self.tell_of_claim(pod, &name, &created);
                    if let Err(error) = created {
                        failures.push(format!("failed to create PVC {name}: {error}"));
                    }
                }
                Some(found) if found.metadata.deletion_timestamp.is_some() => {
                    failures.push(format!("pvc {name} is being deleted"));
                }
                Some(_) => {}
            }
        }
        together(&failures)
    }

    fn claims_of(&self, pod: &Pod) -> Vec<PersistentVolumeClaim> {
        let ordinal = ordinal_of(self.set, pod);
        let claims = ordinal.map(|ordinal| claims::claims_of(self.set, ordinal));
        claims.into_iter().flatten().map(|(_, claim)| claim).collect()
    }

    /// Lets the claims that exist have the owners that they should have.
    async fn reassign(&self, pod: &Pod) -> Result<()> {
        for claim in self.claims_of(pod) {
            let name = claim.metadata.name.unwrap_or_default();
            let Some(found) = self.ctx.get::<PersistentVolumeClaim>(&name)? else { continue };
            let ownership = claims::ownership(&found, self.set, pod);
            if ownership.conflict {
                let note = format!(
                    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a \
                     manging controller, the retention policy is ignored for this claim"
                );
                let event = NewEvent::warning("ConflictingController");
                self.ctx.event(event.action("Update").note(note));
            }
            let Some(owners) = ownership.owners else { continue };
            let mut claim = PersistentVolumeClaim::clone(&found);
            claim.metadata.owner_references = (!owners.is_empty()).then_some(owners);
            let what = format!("could not update claim {name} for delete policy ownerRefs");
            self.ctx.update(&claim).await.map_err(|error| because(&what, &error))?;
        }
        Ok(())
    }

    async fn repair(&self, mut pod: Pod) -> Result<()> {
        let repaired = self.repaired(&mut pod).await;
        self.told("Update", &pod, repaired)
    }

    async fn repaired(&self, pod: &mut Pod) -> Result<()> {
        let Some(ordinal) = ordinal_of(self.set, pod) else { return Ok(()) };
        if !is_identified(pod) {
            identify(pod, ordinal);
        }
        if !claims::is_mounted(self.set, pod, ordinal) {
            claims::mount(self.set, pod, ordinal);
            self.provide_claims(pod).await?;
        }
        self.reassign(pod).await?;
        self.ctx.update(&*pod).await.map(drop)
    }

    async fn delete(&self, pod: &Arc<Pod>) -> Result<()> {
        let deleted = self.ctx.delete(pod).await.map(drop);
        self.told("Delete", pod, deleted)
    }

    /// Tells what became of a Pod, and passes that on.
    fn told(&self, verb: &str, pod: &Pod, result: Result<()>) -> Result<()> {
        let name = pod_control::name_of(pod);
        let what = format!("{verb} Pod {name} in StatefulSet {}", name_of(self.set));
        let event = match &result {
            Ok(()) => {
                NewEvent::normal(format!("Successful{verb}")).note(format!("{what} successful"))
            }
            Err(error) => NewEvent::warning(format!("Failed{verb}"))
                .note(format!("{what} failed error: {error}")),
        };
        self.ctx.event(event.action(verb));
        result
    }

    fn told_of_failure(&self, verb: &str, pod: &Pod, result: Result<()>) -> Result<()> {
        match result {
            Ok(()) => Ok(()),
            failed => self.told(verb, pod, failed),
        }
    }

    fn tell_of_claim(&self, pod: &Pod, claim: &str, result: &Result<()>) {
        let (pod, set) = (pod_control::name_of(pod), name_of(self.set));
        let event = match result {
            Ok(()) => NewEvent::normal("SuccessfulCreate")
                .note(format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success")),
            Err(error) if error.is_already_exists() => return,
            Err(error) => NewEvent::warning("FailedCreate").note(format!(
                "Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
            )),
        };
        self.ctx.event(event.action("Create"));
    }
}

/// An error with what was tried before it.
fn because(what: &str, error: &Error) -> Error {
    Error::message(format!("{what}: {error}"))
}

/// One error of all failures, if there are any.
fn together(failures: &[String]) -> Result<()> {
    match failures {
        [] => Ok(()),
        [failure] => Err(Error::message(failure.clone())),
        failures => Err(Error::message(format!("[{}]", failures.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn one_error_tells_of_all_failures() {
        let told = |failures: &[&str]| {
            let failures: Vec<String> = failures.iter().map(|&failure| failure.into()).collect();
            together(&failures).err().map(|error| error.to_string())
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["a"]), Some("a".into()));
        assert_eq!(told(&["a", "b"]), Some("[a, b]".into()));
    }
}
