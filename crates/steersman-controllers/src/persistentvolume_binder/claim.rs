//! What happens to a claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use steersman::events::NewEvent;
use steersman::volumes::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, Search, annotation, claim_class,
    find_volume, is_bound_to_claim, names_class, unsuitable, volume_name, waits_for_consumer,
};

use super::provision::{Provisioner, provisioner};

/// What a claim is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

impl Note {
    /// Somebody else makes the volume.
    pub(super) fn external(text: String) -> Self {
        Self::normal("ExternalProvisioning", text)
    }

    fn normal(reason: &'static str, text: impl Into<String>) -> Self {
        Self { is_warning: false, reason, text: text.into() }
    }

    pub(super) fn warning(reason: &'static str, text: impl Into<String>) -> Self {
        Self { is_warning: true, reason, text: text.into() }
    }

    pub(super) fn event(&self) -> NewEvent {
        let event = match self.is_warning {
            true => NewEvent::warning(self.reason),
            false => NewEvent::normal(self.reason),
        };
        event.note(self.text.clone())
    }
}

/// What happens next to a claim.
#[derive(Debug, PartialEq)]
pub(super) enum ClaimStep {
    /// It and this volume are bound to each other, as far as they are not yet.
    Bind(Arc<PersistentVolume>),
    /// It gets the default class.
    AssignClass(String),
    /// Somebody is asked for a volume.
    Provision {
        /// Who.
        provisioner: String,
    },
    /// Nobody can be asked for a volume.
    CannotProvision(Note),
    /// It waits.
    Pending(Option<Note>),
    /// It has lost its volume, for good.
    Lost(Note),
    /// It is bound to what belongs to another, by this controller.
    Misbound(Note),
}

/// What there is beside a claim.
pub(super) struct Surroundings<'a> {
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
    /// Names the Pods that use the claim and wait for a node.
    pub(super) waiting_pods: &'a dyn Fn() -> Vec<String>,
}

/// What to do with a claim.
pub(super) fn plan(claim: &PersistentVolumeClaim, around: &Surroundings<'_>) -> ClaimStep {
    let was_bound = annotation(&claim.metadata, BIND_COMPLETED).is_some();
    let named = volume_name(claim);
    let is_named = |volume: &&Arc<PersistentVolume>| volume.metadata.name.as_deref() == Some(named);
    let volume = around.volumes.iter().find(is_named);
    match (was_bound, named.is_empty()) {
        (false, true) => search(claim, around),
        (false, false) => match volume {
            None => ClaimStep::Pending(None),
            Some(volume) => bind_named(claim, volume),
        },
        (true, true) => lost(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        ),
        (true, false) => match volume {
            None => lost(
                "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            ),
            Some(volume) => keep(claim, volume),
        },
    }
}

fn lost(reason: &'static str, text: &str) -> ClaimStep {
    ClaimStep::Lost(Note::warning(reason, text))
}

/// Looks for a volume for a claim that names none.
fn search(claim: &PersistentVolumeClaim, around: &Surroundings<'_>) -> ClaimStep {
    let name = claim_class(claim);
    let class = around.classes.iter().find(|class| class.metadata.name.as_deref() == Some(name));
    let delayed = waits_for_consumer(class.map(AsRef::as_ref));
    if let Some(volume) = find_volume(claim, around.volumes, Search::Binder { delayed }) {
        return ClaimStep::Bind(volume);
    }
    if let Some(default) = default_class(around.classes).filter(|_| !names_class(claim)) {
        return ClaimStep::AssignClass(default);
    }
    if delayed && annotation(&claim.metadata, SELECTED_NODE).is_none() {
        return ClaimStep::Pending(Some(waiting(&(around.waiting_pods)())));
    }
    if name.is_empty() {
        let text = "no persistent volumes available for this claim and no storage class is set";
        return ClaimStep::Pending(Some(Note::normal("FailedBinding", text)));
    }
    match class.map(|class| provisioner(&class.provisioner)) {
        Some(Provisioner::External(provisioner)) => ClaimStep::Provision { provisioner },
        Some(Provisioner::Unknown(why)) => {
            ClaimStep::CannotProvision(Note::warning("ProvisioningFailed", why))
        }
        None => {
            let text = format!("storageclass.storage.k8s.io {name:?} not found");
            ClaimStep::CannotProvision(Note::warning("ProvisioningFailed", text))
        }
    }
}

/// Why a claim waits whose volume is chosen when a Pod is scheduled.
fn waiting(pods: &[String]) -> Note {
    match pods {
        [] => Note::normal(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        [pod] => {
            Note::normal("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled"))
        }
        pods => Note::normal(
            "WaitForPodScheduled",
            format!("waiting for pods {} to be scheduled", pods.join(",")),
        ),
    }
}

/// The default class: of several the newest, of equally new ones the first by name.
fn default_class(classes: &[Arc<StorageClass>]) -> Option<String> {
    let says_so = |class: &StorageClass| {
        [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ]
        .into_iter()
        .any(|name| annotation(&class.metadata, name) == Some("true"))
    };
    let defaults = classes.iter().filter(|class| says_so(class));
    let age = |class: &Arc<StorageClass>| class.metadata.creation_timestamp.as_ref().map(|at| at.0);
    let newest = defaults.min_by(|one, other| {
        age(other).cmp(&age(one)).then_with(|| one.metadata.name.cmp(&other.metadata.name))
    });
    newest.and_then(|class| class.metadata.name.clone())
}

/// A claim that is not bound yet names this volume.
fn bind_named(claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> ClaimStep {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let is_free = volume.spec.as_ref().is_none_or(|spec| spec.claim_ref.is_none());
    if is_free {
        return match unsuitable(volume, claim) {
            None => ClaimStep::Bind(Arc::clone(volume)),
            Some(why) => {
                let text = format!("Cannot bind to requested volume {name:?}: {why}");
                ClaimStep::Pending(Some(Note::warning("VolumeMismatch", text)))
            }
        };
    }
    if is_bound_to_claim(volume, claim) {
        return ClaimStep::Bind(Arc::clone(volume));
    }
    let text = format!("volume {name:?} already bound to a different claim.");
    let note = Note::warning("FailedBinding", text);
    match annotation(&claim.metadata, BOUND_BY_CONTROLLER) {
        None => ClaimStep::Pending(Some(note)),
        Some(_) => ClaimStep::Misbound(note),
    }
}

/// A claim is bound to this volume, if the volume says so too.
fn keep(claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> ClaimStep {
    let claimant = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_ours = claimant.is_none_or(|claimant| claimant.uid == claim.metadata.uid);
    if is_ours {
        return ClaimStep::Bind(Arc::clone(volume));
    }
    lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}
