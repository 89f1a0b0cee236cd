//! Going back to an earlier revision by annotation, as clients of a long time ago ask for it. (Today's
//! kubectl writes the earlier template itself.)

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::plan::Rollout;
use super::revision::{self, ROLLBACK_TO, revision_of};
use super::template;

/// What becomes of it. In any case the annotation goes.
#[derive(Debug)]
pub(super) struct Rollback {
    /// The Deployment without the annotation, with the earlier template if there is one.
    pub(super) deployment: Deployment,
    /// Whether that is what was asked for.
    pub(super) done: bool,
    /// What people are told: a reason, and the rest.
    pub(super) told: (&'static str, String),
}

/// What is to be done about a Deployment that asks to go back, if it does. It waits while the
/// Deployment is paused, and until there is a ReplicaSet of the present template.
pub(super) fn rollback(rollout: &Rollout) -> Option<Rollback> {
    let deployment = &rollout.deployment;
    let wanted = deployment.metadata.annotations.as_ref()?.get(ROLLBACK_TO)?;
    let wanted: i64 = wanted.parse().ok()?;
    if deployment.metadata.deletion_timestamp.is_some() || rollout.paused() {
        return None;
    }
    rollout.new.as_ref()?;
    let mut deployment = Deployment::clone(deployment);
    deployment.metadata.annotations.as_mut()?.remove(ROLLBACK_TO);
    let name = deployment.metadata.name.clone().unwrap_or_default();
    let wanted = if wanted == 0 { last_revision(rollout) } else { Some(wanted) };
    let (done, told) = match wanted.map(|wanted| (wanted, of_revision(rollout, wanted))) {
        None => {
            (false, ("DeploymentRollbackRevisionNotFound", "Unable to find last revision.".into()))
        }
        Some((_, None)) => {
            let note = "Unable to find the revision to rollback to.";
            (false, ("DeploymentRollbackRevisionNotFound", note.into()))
        }
        Some((_, Some(set)))
            if template::has_template(set, &deployment.spec.as_ref()?.template) =>
        {
            let note = format!(
                "The rollback revision contains the same template as current deployment {name:?}"
            );
            (false, ("DeploymentRollbackTemplateUnchanged", note))
        }
        Some((wanted, Some(set))) => {
            go_back(&mut deployment, set);
            let note = format!("Rolled back deployment {name:?} to revision {wanted}");
            (true, ("DeploymentRollback", note))
        }
    };
    Some(Rollback { deployment, done, told })
}

/// The revision before the latest.
fn last_revision(rollout: &Rollout) -> Option<i64> {
    let mut revisions: Vec<i64> = rollout.all().map(|set| revision_of(set)).collect();
    revisions.sort_unstable_by(|one, other| other.cmp(one));
    revisions.get(1).copied().filter(|revision| *revision > 0)
}

fn of_revision(rollout: &Rollout, revision: i64) -> Option<&ReplicaSet> {
    rollout.all().find(|set| revision_of(set) == revision).map(|set| &**set)
}

/// Gives a Deployment the template and the annotations that a ReplicaSet has from it.
fn go_back(deployment: &mut Deployment, set: &ReplicaSet) {
    if let Some((spec, earlier)) = deployment.spec.as_mut().zip(set.spec.as_ref()) {
        spec.template = template::without_hash(&earlier.template.clone().unwrap_or_default());
    }
    let own = deployment.metadata.annotations.take().unwrap_or_default();
    let own = own.into_iter().filter(|(name, _)| !revision::is_inherited(name));
    let inherited = set.metadata.annotations.clone().unwrap_or_default().into_iter();
    let inherited = inherited.filter(|(name, _)| revision::is_inherited(name));
    deployment.metadata.annotations = Some(own.chain(inherited).collect());
}
