//! A member at work: renews its Lease, looks at the others', and moves the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Sharding;
use super::gate::Gate;
use super::lease::{Holder, Sighting, released};
use super::membership::{Asked, Membership, Rule};
use super::ring::{View, hash};
use crate::election::{Lock, LockError};
use crate::fence::{Fence, Lasting};
use crate::object::ObjectKey;

/// How often the others are looked at while keys move, as a part of the usual period.
const HURRY: u32 = 4;

/// Called with the keys that have become this replica's: those for which the given function holds.
pub(crate) type Moved = Box<dyn Fn(&dyn Fn(&ObjectKey) -> bool) + Send + Sync>;

/// This replica's part in a group. Dropping it ends it without a goodbye.
pub(crate) struct Member {
    fence: Fence,
    gate: Arc<Gate>,
    seat: Seat,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

/// What can be seen of this replica's part in a group. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) identity: Arc<str>,
    pub(crate) fence: Fence,
    /// By how many members the keys are shared, as this one knows.
    members: Arc<AtomicUsize>,
}

impl Seat {
    pub(crate) fn members(&self) -> usize {
        self.members.load(Ordering::Relaxed)
    }
}

impl Member {
    /// Joins the group that shares the keys of this controller. The client must not be fenced
    /// by anything else.
    pub(crate) fn join(
        sharding: Sharding,
        controller: &str,
        client: &kube::Client,
        moved: Moved,
    ) -> Self {
        let work = Work::new(sharding, controller, client, moved);
        let fence = work.fence.clone();
        let gate = Arc::clone(&work.gate);
        let identity = work.holder.identity.as_str().into();
        let members = Arc::clone(&work.members);
        let seat = Seat { identity, fence: fence.clone(), members };
        let stop = CancellationToken::new();
        let task = AbortOnDropHandle::new(tokio::spawn(work.run(stop.clone())));
        Self { fence, gate, seat, stop, task }
    }

    /// What keeps this replica from writing while its Lease is not certain.
    pub(crate) fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Where workers ask which keys are this replica's.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// What can be seen of it.
    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Hands all keys over. To be called when no reconcile runs any more.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        let _ = self.task.await; // nothing is left to do if it panicked
    }
}

/// What the member's task holds.
struct Work {
    sharding: Sharding,
    holder: Holder,
    leases: Api<Lease>,
    lock: Lock,
    /// The own Lease as the server last said it is.
    own: Option<Lease>,
    membership: Membership,
    /// The rule that the gate follows.
    rule: Option<Arc<Rule>>,
    gate: Arc<Gate>,
    fence: Fence,
    lasting: Lasting,
    /// Until when this member may act.
    until: Option<Instant>,
    /// Since when the newest view waits for reconciles to end.
    waits_since: Option<Instant>,
    /// How many members the newest view has.
    members: Arc<AtomicUsize>,
    moved: Moved,
}

impl Work {
    fn new(sharding: Sharding, controller: &str, client: &kube::Client, moved: Moved) -> Self {
        let identity = sharding.identity.clone();
        // A hash, since an identity need not be a legal name; who comes back finds its own Lease.
        let parts =
            [sharding.group.as_bytes(), b"/", controller.as_bytes(), b"/", identity.as_bytes()];
        let name: Arc<str> = format!("{}-{:016x}", sharding.group, hash(parts)).into();
        let timing = sharding.timing;
        let timeout = timing.request_timeout();
        Self {
            holder: Holder {
                name: Arc::clone(&name),
                identity,
                group: sharding.group.clone(),
                controller: controller.to_owned(),
                lease_duration: timing.lease_duration,
            },
            leases: Api::namespaced(client.clone(), &sharding.namespace),
            lock: Lock::new(client.clone(), &sharding.namespace, Arc::clone(&name), timeout),
            own: None,
            membership: Membership::new(Arc::clone(&name)),
            rule: None,
            gate: Arc::default(),
            fence: Fence::new(format!("{}/{name}", sharding.namespace)),
            lasting: Lasting::new(timing.lease_duration, timing.renew_deadline),
            until: None,
            waits_since: None,
            members: Arc::default(),
            moved,
            sharding,
        }
    }

    async fn run(mut self, stop: CancellationToken) {
        tracing::info!(
            member = &*self.holder.name,
            group = self.holder.group,
            "joining shard group"
        );
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.take_part() => {}
        }
        self.leave().await;
    }

    /// Never ends.
    async fn take_part(&mut self) {
        loop {
            let round = self.in_time().await;
            match &round {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    tracing::warn!(member = &*self.holder.name, %error, "shard lease not renewed; retrying");
                }
                None => self.lose("lease expired"),
            }
            self.pause(matches!(round, Some(Ok(())))).await;
        }
    }

    /// One round, as long as the Lease lasts.
    async fn in_time(&mut self) -> Option<Result<(), LockError>> {
        match self.until {
            None => Some(self.round().await),
            Some(until) if Instant::now() >= until => None,
            Some(until) => tokio::time::timeout_at(until, self.round()).await.ok(),
        }
    }

    /// Waits for the next round: shortly while keys move, not at all if there is something to
    /// publish and nothing in the way.
    async fn pause(&mut self, went_well: bool) {
        let period = self.sharding.timing.retry_period;
        let joined = self.membership.has_joined();
        if went_well && joined && self.membership.must_publish() && !self.gate.has_strays() {
            return tokio::task::yield_now().await;
        }
        let hurry = joined && !self.membership.is_settled();
        let pause = Instant::now() + if hurry { period / HURRY } else { period };
        let until = self.until.unwrap_or(pause);
        tokio::select! {
            () = tokio::time::sleep_until(pause.min(until)) => {}
            () = self.no_strays(), if self.gate.has_strays() => {}
        }
    }

    /// Ready when no reconcile is waited for any more. Others that end meanwhile are many.
    async fn no_strays(&self) {
        while self.gate.has_strays() {
            self.gate.left().await;
        }
    }

    /// Renews the own Lease, then looks at all of them.
    async fn round(&mut self) -> Result<(), LockError> {
        self.renew().await?;
        if self.until.is_none() {
            return Ok(()); // just lost
        }
        let sent = Instant::now();
        let found = self.list().await?;
        let asked = Asked { sent, answered: Instant::now() };
        self.membership.observe(found.iter().map(Sighting::of), asked);
        self.follow();
        self.sweep().await;
        Ok(())
    }

    /// Writes the own Lease with the claim that is due.
    async fn renew(&mut self) -> Result<(), LockError> {
        let claim = self.membership.claim(!self.gate.has_strays());
        let joins = !self.membership.has_joined();
        let sent = Instant::now();
        let written = match self.own.clone() {
            Some(own) => {
                let own = if joins { self.holder.joins(Some(own)) } else { own };
                self.lock.replace(&self.holder.renews(own, &claim)).await
            }
            None => self.lock.create(&self.holder.renews(self.holder.joins(None), &claim)).await,
        };
        match written {
            Ok(lease) => self.renewed(lease, claim, sent),
            // Somebody else wrote it, or an answer was lost: the next round goes by what it is.
            Err(error) if error.is_answer() => {
                self.own = self.lock.get().await?;
                if self.own.is_none() {
                    self.lose("lease was deleted");
                }
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn renewed(&mut self, lease: Lease, claim: View, sent: Instant) {
        let epoch = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
        self.own = Some(lease);
        // Others may have seen the Lease run out meanwhile: then the term is over.
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return self.lose("renewal was answered too late");
        }
        self.until = Some(sent + self.lasting.leave);
        self.fence.extend(epoch, sent, self.lasting);
        self.membership.confirmed(claim);
    }

    async fn list(&self) -> Result<Vec<Lease>, LockError> {
        let params = ListParams::default().labels(&self.holder.selector());
        let timeout = self.sharding.timing.request_timeout();
        match tokio::time::timeout(timeout, self.leases.list(&params)).await {
            Ok(list) => Ok(list?.items),
            Err(_) => Err(LockError::Timeout(timeout)),
        }
    }

    /// Lets the gate follow what is known now.
    fn follow(&mut self) {
        self.overdue();
        let rule = Arc::new(self.membership.rule());
        if self.rule.as_ref().is_some_and(|old| old.is_same_as(&rule)) {
            return;
        }
        let members = self.membership.target().members().len();
        self.members.store(members, Ordering::Relaxed);
        tracing::info!(
            member = &*self.holder.name,
            members,
            "shard members changed; keys rebalanced"
        );
        let new = Arc::clone(&rule);
        let admits = Arc::clone(&rule);
        let old = self.rule.replace(rule);
        self.gate.set(Some(Arc::new(move |key: &ObjectKey| admits.admits(key))));
        self.overdue();
        let gained =
            |key: &ObjectKey| new.admits(key) && old.as_ref().is_none_or(|old| !old.admits(key));
        (self.moved)(&gained);
    }

    /// Notes since when reconciles are waited for, and aborts them when that takes too long.
    fn overdue(&mut self) {
        if !self.gate.has_strays() {
            self.waits_since = None;
            return;
        }
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.sharding.handover_timeout {
            tracing::warn!(member = &*self.holder.name, "handover timed out; aborting reconciles");
            self.gate.revoke();
        }
    }

    /// Stops everything: others may take the keys from now on.
    fn lose(&mut self, why: &str) {
        if self.until.take().is_some() {
            tracing::error!(member = &*self.holder.name, why, "lost shard lease");
        }
        self.members.store(0, Ordering::Relaxed);
        self.fence.close();
        self.gate.set(None);
        self.gate.revoke();
        self.rule = None;
        self.membership.lost();
    }

    /// Deletes what a dead member left behind, one in each round, so that the own renewal does
    /// not come late. It is a courtesy: failing does no harm.
    async fn sweep(&mut self) {
        if let Some((name, version)) = self.membership.garbage(Instant::now()).into_iter().next() {
            let preconditions = Preconditions { uid: None, resource_version: version };
            let params = DeleteParams::default().preconditions(preconditions);
            let timeout = Duration::from_secs(1);
            let deleted = tokio::time::timeout(timeout, self.leases.delete(&name, &params)).await;
            if matches!(deleted, Ok(Ok(_))) {
                self.membership.forget(&name);
            }
        }
    }

    /// Gives the Lease back, once every write has been answered.
    async fn leave(&mut self) {
        self.gate.set(None);
        self.gate.revoke();
        self.fence.refuse();
        let left = tokio::time::timeout(self.sharding.timing.renew_deadline, async {
            self.fence.landed().await;
            while let Err(error) = self.try_leave().await {
                tracing::debug!(member = &*self.holder.name, %error, "shard lease not released yet; retrying");
                if !error.is_conflict() {
                    tokio::time::sleep(self.sharding.timing.retry_period).await;
                }
            }
        });
        if left.await.is_err() {
            tracing::warn!(member = &*self.holder.name, "shard lease not released; it will expire");
        }
        self.fence.close();
    }

    async fn try_leave(&self) -> Result<(), LockError> {
        let Some(lease) = self.lock.get().await? else { return Ok(()) };
        self.lock.replace(&released(lease)).await.map(drop)
    }
}
