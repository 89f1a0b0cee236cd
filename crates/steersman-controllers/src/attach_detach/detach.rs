//! Whether a volume is taken from a node where no Pod needs it any more.
//!
//! As long as the node says that it has the volume mounted, it waits: whoever writes there would lose
//! data. It waits no longer when the node has not been well for too long, or when somebody says that
//! the node is out of service.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use tokio::time::Instant;

use super::wanted::{Wanted, name, name_of};
use crate::node::{readiness, taints};

/// For how long it waits for a node that is not well.
const WAIT_MAX: Duration = Duration::from_secs(6 * 60);
/// What says that nothing runs on a node any more.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What becomes of an attachment that nobody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Detach {
    /// It stays: its volume is mounted.
    Wait(Wanted),
    /// It goes.
    Now,
    /// It goes for this reason, whether that is safe or not.
    Forced(&'static str),
}

/// What becomes of an attachment of this node that nobody has needed for so long.
pub(super) fn detach(node: &Node, attachment: &VolumeAttachment, unneeded: Duration) -> Detach {
    let overdue = unneeded > WAIT_MAX;
    let out_of_service = taints(node).iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let waits_no_longer = out_of_service || (overdue && readiness(node) != Some("True"));
    match mounted(node, attachment) {
        Some(volume) if !waits_no_longer => Detach::Wait(volume),
        _ if overdue => Detach::Forced("timeout"),
        _ if out_of_service => Detach::Forced("out-of-service"),
        _ => Detach::Now,
    }
}

/// The volume of an attachment, if the node says that it has it mounted.
fn mounted(node: &Node, attachment: &VolumeAttachment) -> Option<Wanted> {
    let in_use = node.status.as_ref()?.volumes_in_use.as_ref()?;
    in_use.iter().find_map(|unique_name| {
        let volume =
            Wanted::named(attachment.spec.source.persistent_volume_name.as_deref()?, unique_name)?;
        let is_it = attachment.metadata.name == Some(name(&volume, &attachment.spec.node_name));
        is_it.then_some(volume)
    })
}

/// Since when attachments have been needed by nobody. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Unneeded(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// By the node and the name of the attachment.
    since: HashMap<String, BTreeMap<String, Instant>>,
    /// The nodes that are gone, with what they had mounted then.
    gone: HashMap<String, (Instant, Node)>,
}

impl Unneeded {
    /// What becomes of these attachments of a node, by their names. All others are needed.
    pub(super) fn judge(
        &self,
        node: &Node,
        attachments: &[&VolumeAttachment],
    ) -> BTreeMap<String, Detach> {
        let node_name = crate::node::name(node);
        let mut inner = self.locked();
        let before = inner.since.remove(node_name).unwrap_or_default();
        let (mut since, mut judged) = (BTreeMap::new(), BTreeMap::new());
        for attachment in attachments {
            let name = name_of(attachment).to_owned();
            let begin = before.get(&name).copied().unwrap_or_else(Instant::now);
            judged.insert(name.clone(), detach(node, attachment, begin.elapsed()));
            since.insert(name, begin);
        }
        if !since.is_empty() {
            inner.since.insert(node_name.to_owned(), since);
        }
        judged
    }

    /// The same for an attachment of a node that is gone.
    pub(super) fn judge_stranded(&self, attachment: &VolumeAttachment) -> Detach {
        match self.locked().gone.get(&attachment.spec.node_name) {
            Some((since, node)) => detach(node, attachment, since.elapsed()),
            None => Detach::Now,
        }
    }

    /// A node is gone, which last looked like this. If something is mounted there, nobody will say when
    /// that is over.
    pub(super) fn forget(&self, node: &str, last: Option<&Node>) {
        let mut inner = self.locked();
        inner.since.remove(node);
        inner.gone.retain(|other, (since, _)| other != node && since.elapsed() <= WAIT_MAX);
        let in_use = last.and_then(|last| last.status.as_ref()?.volumes_in_use.clone());
        if let Some(in_use) = in_use.filter(|in_use| !in_use.is_empty()) {
            let status = NodeStatus { volumes_in_use: Some(in_use), ..NodeStatus::default() };
            let left = Node { status: Some(status), ..Node::default() };
            inner.gone.insert(node.to_owned(), (Instant::now(), left));
        }
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
