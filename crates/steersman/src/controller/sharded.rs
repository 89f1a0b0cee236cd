//! A controller whose keys are shared by several replicas.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use super::history::Slot;
use super::keys::{KeyTable, Why};
use super::worker::Worker;
use super::{Builder, Queues};
use crate::cache::{Cache, Untyped};
use crate::cause::Cause;
use crate::client::Client;
use crate::object::{AnyObject, ObjectKey};
use crate::shard::{Member, Seat, Sharding};
use crate::workqueue::Priority;

impl<K: AnyObject> Builder<K> {
    /// Shares the objects with all replicas that say the same: each reconciles a part of them,
    /// and no object is reconciled by two at once. See [`shard`](crate::shard). Settings that
    /// cannot work are an error that stops the manager.
    pub fn sharded(mut self, sharding: Sharding) -> Self {
        self.sharding = Some(sharding);
        self
    }
}

/// Makes this replica a member, if its controller is shared. The client that it gives then
/// writes only while it is one; its seat is shown.
pub(super) fn join(
    sharding: Option<Sharding>,
    controller: &str,
    client: Client,
    cache: Cache<Untyped>,
    keys: Arc<KeyTable>,
    seat: &OnceLock<Seat>,
) -> (Client, Option<Member>) {
    let Some(sharding) = sharding else {
        return (client, None);
    };
    let moved = move |gained: &dyn Fn(&ObjectKey) -> bool| {
        for key in cache.snapshot().keys().filter(|key| gained(key)) {
            keys.add(key.clone(), Cause::HandedOver, Priority::LOW);
        }
    };
    let member = Member::join(sharding, controller, client.kube(), Box::new(moved));
    seat.get_or_init(|| member.seat().clone());
    let guarded = member.fence().guard(client.kube());
    (Client::new(guarded, client.field_manager()), Some(member))
}

impl Queues {
    /// The seats by which this replica has a part of the keys, by the name of the controller.
    pub(crate) fn seats(&self) -> Vec<(Arc<str>, Seat)> {
        let views = self.views().into_iter();
        views.filter_map(|view| Some((Arc::clone(&view.name), view.seat.get()?.clone()))).collect()
    }
}

impl Worker {
    /// Attends to a key if it is this replica's, for as long as it is. One that is another's is
    /// forgotten; it is queued again if it becomes this one's.
    pub(super) async fn pass_gate(&self, slot: Slot, key: &ObjectKey, ids: &AtomicU64) {
        let Some(gate) = &self.gate else {
            return self.attend(slot, key, ids).await;
        };
        let Some(pass) = gate.enter(key) else {
            return self.keys.forget(key, Why::LeftToAnotherShard);
        };
        tokio::select! {
            biased;
            () = pass.revoked() => {
                tracing::warn!(controller = &*self.name, %key, "reconcile aborted: the key belongs to another shard now");
                self.keys.forget(key, Why::LeftToAnotherShard);
            }
            () = self.attend(slot, key, ids) => {}
        }
    }
}
