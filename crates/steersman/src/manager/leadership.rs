//! Whether this replica acts: the election, and what depends on it.
//!
//! The elector runs beside the groups: it begins with them, and the Lease is given back only
//! when everything that only a leader may do has ended. When the Lease is lost, leader-elected
//! work is cancelled at once; its client writes no more in any case.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::group::{Failure, Groups, Stage, Stopped};
use super::part::Group;
use crate::client::Client;
use crate::debug::{InspectReplica, LeaseSnapshot};
use crate::election::{ElectionError, Elector};
use crate::error::panic_text;
use crate::fence::Fence;

/// What this replica is in the election.
#[derive(Clone)]
struct Candidacy {
    lease: Arc<str>,
    identity: Arc<str>,
    fence: Fence,
}

/// The part that this replica has in the election, if there is one.
#[derive(Default)]
pub(super) struct Leadership {
    candidacy: Option<Candidacy>,
    stop: CancellationToken,
    /// Cancelled when the leader lease is lost: somebody else is the leader by now, or soon.
    lost: CancellationToken,
    elector: Option<AbortOnDropHandle<()>>,
}

impl Leadership {
    /// Stands for election.
    pub(super) fn stand(elector: Elector, groups: &Groups) -> Self {
        let candidacy = Candidacy {
            lease: elector.lease().into(),
            identity: elector.identity().into(),
            fence: elector.fence(),
        };
        let stop = CancellationToken::new();
        let lost = CancellationToken::new();
        let work = groups.stop_token(Group::LeaderElected);
        let failures = groups.failures();
        let running = AssertUnwindSafe(elector.run(stop.clone())).catch_unwind();
        let has_lost = lost.clone();
        let task = tokio::spawn(async move {
            let text = match running.await {
                Ok(Ok(())) => return,
                Ok(Err(lost)) => describe(&lost),
                Err(panic) => format!("leader election panicked: {}", panic_text(&*panic)),
            };
            has_lost.cancel();
            failures.fail(Failure { text });
            work.cancel();
        });
        Self { candidacy: Some(candidacy), stop, lost, elector: Some(AbortOnDropHandle::new(task)) }
    }

    /// Ready once this replica becomes leader, or at once if nobody is elected.
    pub(super) fn elected(&self) -> impl Future<Output = ()> + Send + 'static {
        let fence = self.candidacy.as_ref().map(|candidacy| candidacy.fence.clone());
        async move {
            if let Some(fence) = fence {
                fence.opened().await;
            }
        }
    }

    /// Ready when this replica lost the leader lease, or might have: nothing may run on.
    pub(super) fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        self.lost.clone().cancelled_owned()
    }

    /// A client that writes only while this replica is the leader.
    pub(super) fn guard(&self, client: &Client) -> Client {
        match &self.candidacy {
            Some(candidacy) => {
                Client::new(candidacy.fence.guard(client.kube()), client.field_manager())
            }
            None => client.clone(),
        }
    }

    /// What can be seen of it, with the stage of the start.
    pub(super) fn replica(&self, stage: watch::Receiver<Stage>) -> Replica {
        Replica { stage, candidacy: self.candidacy.clone() }
    }

    /// Stands for election no longer if this replica has not won it: who stops would do nothing with
    /// the Lease but keep it from the others, for as long as stopping takes.
    pub(super) fn withdraw(&self) {
        if self.candidacy.as_ref().is_some_and(|candidacy| !candidacy.fence.has_opened()) {
            self.stop.cancel();
        }
    }

    /// Gives the Lease back. Work that could not be ended may still write, so that then nobody
    /// else may become leader before the Lease has run out.
    pub(super) async fn resign(&mut self, stopped: Stopped) {
        let Some(elector) = self.elector.take() else {
            return;
        };
        if stopped != Stopped::Stuck {
            self.stop.cancel();
            let _ = elector.await; // its panics are reported as failures
        }
    }
}

fn describe(lost: &ElectionError) -> String {
    format!("leader election: {lost}")
}

/// How far this replica has started, and whether it is the leader. Cheap to clone.
#[derive(Clone)]
pub(super) struct Replica {
    stage: watch::Receiver<Stage>,
    candidacy: Option<Candidacy>,
}

impl Replica {
    /// Whether this replica may do what only the leader may.
    pub(super) fn is_leader(&self) -> bool {
        self.candidacy.as_ref().is_none_or(|candidacy| candidacy.fence.is_open())
    }
}

impl InspectReplica for Replica {
    fn started(&self) -> Option<String> {
        self.stage.borrow().map(|group| group.to_string())
    }

    fn lease(&self) -> Option<LeaseSnapshot> {
        let Candidacy { lease, identity, fence } = self.candidacy.as_ref()?;
        Some(LeaseSnapshot {
            lease: lease.to_string(),
            identity: identity.to_string(),
            held: fence.is_open(),
            epoch: fence.epoch(),
            controller: None,
            members: None,
        })
    }
}
