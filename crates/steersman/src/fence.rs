//! The fence: a client that stops writing before anybody else may begin.
//!
//! A process that holds a Lease may lose it without noticing: it was suspended, or the network
//! was. A [`Fence`] knows until when the Lease certainly lasts, by the local monotonic clock, and
//! the clients that it [guards](Fence::guard) refuse to write afterwards. It is opened and
//! extended by who renews the Lease: the [`election`](crate::election), or a member of a
//! [`shard`](crate::shard) group.
//!
//! # What is guaranteed
//!
//! Let a renewal be sent at `s`. Nobody else takes the Lease before `s + lease_duration`, since
//! others count from when they *saw* the renewal. A guarded write
//! - leaves only before `s + renew_deadline`, and
//! - is cut off, its future dropped, shortly before `s + lease_duration`: the difference is for
//!   clocks that run at different speeds.
//!
//! So a write is applied under a later holder only if the network still delivers it after its
//! connection was given up, or if the process or machine stood still between the check and the
//! socket. Neither can be excluded from this side. Who must exclude it puts the
//! [epoch](Fence::epoch), which grows with each change of the holder, into what is written, and
//! has the receiver refuse an older one. A clock that stops while the machine is suspended
//! (`CLOCK_MONOTONIC` of Linux) does not count that time.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tower::BoxError;

/// Decides whether writes may leave this process. Clones are the same fence.
#[derive(Clone, Debug)]
pub struct Fence {
    lease: Arc<str>,
    term: Arc<watch::Sender<Option<Term>>>,
    /// Guarded writes that have no answer yet.
    flying: TaskTracker,
}

/// How long the Lease lasts after a renewal was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting {
    /// Writes may leave for so long.
    pub(crate) leave: Duration,
    /// Writes under way are cut off after so long.
    pub(crate) cut: Duration,
}

impl Lasting {
    /// A fifth of the time between the holder's deadline and the others' is left for clocks
    /// that run at different speeds.
    pub(crate) fn new(lease_duration: Duration, renew_deadline: Duration) -> Self {
        let margin = lease_duration.saturating_sub(renew_deadline) / 5;
        Self { leave: renew_deadline, cut: lease_duration.saturating_sub(margin) }
    }
}

/// One uninterrupted time of holding the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    epoch: i32,
    leave_before: Instant,
    cut_at: Instant,
}

/// Why a guarded write was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fenced {
    /// The Lease is not held, or its time is over: nothing was sent.
    #[error("write refused: the lease {lease} is not held by this process")]
    Refused {
        /// Which Lease.
        lease: Arc<str>,
    },
    /// The time of the Lease was over before an answer came.
    #[error("write cut off: the lease {lease} expired before the answer; it may have been applied")]
    CutOff {
        /// Which Lease.
        lease: Arc<str>,
    },
}

impl Fenced {
    /// Finds out whether an error came from a fence.
    pub fn cause_of<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Self> {
        let mut error = Some(error);
        while let Some(current) = error {
            if let Some(fenced) = current.downcast_ref() {
                return Some(fenced);
            }
            error = current.source();
        }
        None
    }
}

impl Fence {
    /// A closed fence around what this Lease protects.
    pub(crate) fn new(lease: impl Into<Arc<str>>) -> Self {
        let term = Arc::new(watch::Sender::new(None));
        Self { lease: lease.into(), term, flying: TaskTracker::new() }
    }

    /// The same client, which writes only while the Lease is held. Reads always pass.
    pub fn guard(&self, client: &kube::Client) -> kube::Client {
        let fence = self.clone();
        let guarded = client.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fence = fence.clone();
            let client = guarded.clone();
            async move { fence.pass(&client, request).await }
        });
        kube::Client::new(service, client.default_namespace())
    }

    /// The namespace and name of the Lease.
    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    /// Whether a write may leave now.
    pub fn is_open(&self) -> bool {
        self.term.borrow().is_some_and(|term| Instant::now() < term.leave_before)
    }

    /// How often the Lease has changed its holder, if this process holds it: the
    /// `leaseTransitions` of its current term. A later holder has a greater one.
    pub fn epoch(&self) -> Option<i32> {
        let term = *self.term.borrow();
        term.filter(|term| Instant::now() < term.leave_before).map(|term| term.epoch)
    }

    /// Whether the Lease was won, and not given up since. Its time may be over.
    pub(crate) fn has_opened(&self) -> bool {
        self.term.borrow().is_some()
    }

    /// Ready once the fence is open.
    pub(crate) async fn opened(&self) {
        let mut term = self.term.subscribe();
        // The sender lives as long as this fence.
        let _ = term.wait_for(Option::is_some).await;
    }

    /// Opens the fence, or keeps it open, after a renewal that was sent at this moment.
    pub(crate) fn extend(&self, epoch: i32, sent: Instant, lasting: Lasting) {
        let leave_before = sent + lasting.leave;
        let cut_at = sent + lasting.cut;
        self.term.send_replace(Some(Term { epoch, leave_before, cut_at }));
    }

    /// From now on nothing is sent. What is under way may end, until its time is over.
    pub(crate) fn refuse(&self) {
        let now = Instant::now();
        self.term.send_if_modified(|term| {
            term.as_mut().is_some_and(|term| {
                term.leave_before = term.leave_before.min(now);
                true
            })
        });
    }

    /// Closes the fence. What is under way is cut off.
    pub(crate) fn close(&self) {
        self.term.send_replace(None);
    }

    /// Ready when no write is under way. To be asked after [`refuse`](Self::refuse).
    pub(crate) async fn landed(&self) {
        self.flying.close();
        self.flying.wait().await;
        self.flying.reopen();
    }

    async fn pass(
        &self,
        client: &kube::Client,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            return Ok(client.send(request).await?);
        }
        // Noted before it is asked whether it may leave: else it could leave unnoticed after
        // `refuse` and `landed`, when the Lease has been given back.
        let _flying = self.flying.token();
        if !self.is_open() {
            return Err(Fenced::Refused { lease: Arc::clone(&self.lease) }.into());
        }
        tokio::select! {
            biased;
            () = self.over() => Err(Fenced::CutOff { lease: Arc::clone(&self.lease) }.into()),
            answer = client.send(request) => Ok(answer?),
        }
    }

    /// Ready when the time of the Lease is over.
    async fn over(&self) {
        let mut term = self.term.subscribe();
        loop {
            let Some(Term { cut_at, .. }) = *term.borrow_and_update() else { return };
            tokio::select! {
                biased;
                _ = term.changed() => {}
                () = tokio::time::sleep_until(cut_at) => return,
            }
        }
    }
}
