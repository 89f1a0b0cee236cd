//! Which node has a volume that only one can have, and which nodes wait for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::storage::v1::VolumeAttachment;

use super::wanted::Wanted;

/// The nodes that have, or want, volumes that only one of them can have.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// The node that has been given a volume, by the volume, as long as no attachment is seen: another
    /// node may be looked at before.
    given: HashMap<String, String>,
    /// The nodes that wait for a volume.
    waiting: HashMap<String, BTreeSet<String>>,
}

/// What becomes of a node's wish for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Granted,
    /// Another has it.
    Waits {
        /// Whether this is said for the first time.
        news: bool,
    },
}

impl Holders {
    /// Takes in what is attached, and what a node still wants.
    pub(super) fn take_in(
        &self,
        node: &str,
        wanted: &[Wanted],
        attachments: &[Arc<VolumeAttachment>],
    ) {
        let mut inner = self.locked();
        let is_wanted = |volume: &String| wanted.iter().any(|it| it.volume == *volume);
        inner.given.retain(|volume, to| {
            let is_seen =
                attachments.iter().any(|it| is_of(it, volume) && it.spec.node_name == *to);
            !is_seen && (to != node || is_wanted(volume))
        });
        inner.waiting.retain(|volume, nodes| {
            if !is_wanted(volume) {
                nodes.remove(node);
            }
            !nodes.is_empty()
        });
    }

    /// Gives a volume to a node unless another has it.
    pub(super) fn ask(&self, node: &str, wanted: &Wanted, elsewhere: bool) -> Wish {
        let mut inner = self.locked();
        let volume = &wanted.volume;
        let given = inner.given.get(volume).is_some_and(|to| to != node);
        if wanted.exclusive && (elsewhere || given) {
            let nodes = inner.waiting.entry(volume.clone()).or_default();
            return Wish::Waits { news: nodes.insert(node.to_owned()) };
        }
        if wanted.exclusive {
            inner.given.insert(volume.clone(), node.to_owned());
        }
        if let Some(nodes) = inner.waiting.get_mut(volume) {
            nodes.remove(node);
        }
        Wish::Granted
    }

    /// A node is gone, and with it what it was given or wanted.
    pub(super) fn forget(&self, node: &str) {
        let mut inner = self.locked();
        inner.given.retain(|_, to| to != node);
        inner.waiting.retain(|_, nodes| {
            nodes.remove(node);
            !nodes.is_empty()
        });
    }

    /// The nodes that wait for the volume of an attachment.
    pub(super) fn waiting_for(&self, attachment: &VolumeAttachment) -> Vec<String> {
        let Some(volume) = &attachment.spec.source.persistent_volume_name else { return vec![] };
        let inner = self.locked();
        inner.waiting.get(volume).into_iter().flatten().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an attachment is one of a volume.
pub(super) fn is_of(attachment: &VolumeAttachment, volume: &str) -> bool {
    attachment.spec.source.persistent_volume_name.as_deref() == Some(volume)
}
