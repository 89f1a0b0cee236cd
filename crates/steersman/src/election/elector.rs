//! A candidate at work: tries for the Lease, holds it, gives it back.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::candidate::{Candidate, Decision, Now};
use super::lock::LockError;
use super::metrics::{ElectionFamilies, ElectionMetrics};
use super::{ElectionError, JITTER, LeaderElection, Lock};
use crate::clock;
use crate::events::{NewEvent, Recorder};
use crate::fence::{Fence, Lasting};
use crate::metrics::Metrics;
use crate::random;

/// Takes part in an election while it [runs](Self::run).
pub struct Elector {
    settings: LeaderElection,
    lease: Arc<str>,
    lock: Lock,
    candidate: Candidate,
    fence: Fence,
    lasting: Lasting,
    metrics: ElectionMetrics,
    /// Tells people who leads, as Events about the Lease.
    recorder: Option<Recorder>,
    /// Whether a write was sent that makes the Lease ours, answered or not.
    may_hold: bool,
    /// Whether it was ours.
    has_led: bool,
    /// The leader that was last reported.
    reported: Option<String>,
}

/// What came of one try.
enum Attempt {
    /// The Lease is ours by a write that was sent at this moment.
    Held(Instant),
    /// Somebody else has it.
    Foreign,
}

impl Elector {
    pub(super) fn new(settings: LeaderElection, client: kube::Client, metrics: &Metrics) -> Self {
        let LeaderElection { namespace, name, identity, timing, labels, .. } = &settings;
        let candidate = Candidate::new(namespace, name, identity, timing.lease_duration);
        let lease: Arc<str> = format!("{namespace}/{name}").into();
        Self {
            lock: Lock::new(client, namespace, name.as_str(), timing.request_timeout()),
            candidate: candidate.labelling(labels),
            fence: Fence::new(Arc::clone(&lease)),
            lasting: Lasting::new(timing.lease_duration, timing.renew_deadline),
            metrics: metrics.families::<ElectionFamilies>().of(name),
            recorder: None,
            may_hold: false,
            has_led: false,
            reported: None,
            lease,
            settings,
        }
    }

    /// The same, which tells by Events about the Lease when it becomes leader and when it stops to be.
    #[must_use]
    pub(crate) fn telling(self, recorder: &Recorder) -> Self {
        Self { recorder: Some(recorder.reporting(self.identity())), ..self }
    }

    /// What keeps this process from writing while it does not lead.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Ready once this process leads.
    pub fn elected(&self) -> impl Future<Output = ()> + Send + 'static {
        let fence = self.fence.clone();
        async move { fence.opened().await }
    }

    /// Who this process is in the election.
    pub(crate) fn identity(&self) -> &str {
        &self.settings.identity
    }

    /// The namespace and name of the Lease.
    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    /// Competes, and renews the Lease once it is won, until `shutdown`; then gives it back.
    ///
    /// Everything that only a leader may do must have ended before `shutdown`. Ends with an
    /// error as soon as the Lease is lost: then all such work must stop at once, and what it
    /// still writes through the [`fence`](Self::fence) is refused.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), ElectionError> {
        let led = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            lost = self.compete() => Err(lost),
        };
        if led.is_ok() && self.may_hold && self.settings.release_on_stop {
            self.release().await;
        }
        self.fence.close();
        self.metrics.master_status.set(0);
        if self.has_led {
            self.tell("stopped leading");
        }
        led
    }

    /// Wins the Lease and holds it until it is lost.
    async fn compete(&mut self) -> ElectionError {
        tracing::info!(
            lease = &*self.lease,
            identity = self.identity(),
            "attempting to acquire leader lease"
        );
        let mut sent = self.acquire().await;
        let epoch = self.candidate.transitions();
        self.has_led = true;
        self.metrics.master_status.set(1);
        tracing::info!(lease = &*self.lease, identity = self.identity(), "became leader");
        self.tell("became leader");
        loop {
            self.fence.extend(epoch, sent, self.lasting);
            tokio::time::sleep(self.settings.timing.retry_period).await;
            let renewed = self.renew(sent + self.lasting.leave).await;
            sent = match renewed {
                Ok(sent) if self.candidate.transitions() == epoch => sent,
                // Won once more, but somebody else may have led meanwhile.
                Ok(_) => return self.lost(self.taken()),
                Err(lost) => return self.lost(lost),
            };
        }
    }

    /// Records an Event in client-go's words.
    fn tell(&self, what: &str) {
        let (Some(recorder), Some(lease)) = (&self.recorder, self.candidate.lease()) else {
            return;
        };
        let note = format!("{} {what}", self.identity());
        recorder.event(lease, NewEvent::normal("LeaderElection").note(note));
    }

    fn lost(&self, lost: ElectionError) -> ElectionError {
        tracing::error!(lease = &*self.lease, %lost, "lost leader lease");
        lost
    }

    /// Tries until the Lease is ours.
    async fn acquire(&mut self) -> Instant {
        loop {
            match self.attempt().await {
                // An answer so late that the Lease may be over is not worth beginning with.
                Ok(Attempt::Held(sent)) if sent.elapsed() < self.lasting.leave => return sent,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(lease = &*self.lease, %error, "leader lease not acquired; retrying");
                }
            }
            tokio::time::sleep(random::jitter(self.settings.timing.retry_period, JITTER)).await;
        }
    }

    /// Tries until the Lease is renewed or the deadline is over.
    async fn renew(&mut self, deadline: Instant) -> Result<Instant, ElectionError> {
        let lost = ElectionError::Lost { lease: Arc::clone(&self.lease) };
        while Instant::now() < deadline {
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held(sent))) if Instant::now() < deadline => return Ok(sent),
                Ok(Ok(Attempt::Held(_))) | Err(_) => break,
                Ok(Ok(Attempt::Foreign)) => return Err(self.taken()),
                Ok(Err(error)) => {
                    tracing::warn!(lease = &*self.lease, %error, "leader lease not renewed; retrying");
                    let again = Instant::now() + self.settings.timing.retry_period;
                    tokio::time::sleep_until(again.min(deadline)).await;
                }
            }
        }
        Err(lost)
    }

    fn taken(&self) -> ElectionError {
        let holder = self.candidate.holder().unwrap_or_default().to_owned();
        ElectionError::Taken { lease: Arc::clone(&self.lease), holder }
    }

    /// Tries once to acquire or renew the Lease. The holder first writes on the assumption that
    /// nothing has changed, and looks only if that is refused.
    async fn attempt(&mut self) -> Result<Attempt, LockError> {
        if let Some(renewal) = self.candidate.renewal(&now()) {
            let sent = Instant::now();
            match self.lock.replace(&renewal).await {
                Ok(written) => return Ok(self.held(written, sent)),
                Err(error) if error.is_answer() => {
                    tracing::debug!(lease = &*self.lease, %error, "leader lease renewal refused; reading it first");
                    self.metrics.slowpath.inc();
                }
                Err(error) => return Err(error),
            }
        }
        let found = self.lock.get().await?;
        let decision = self.candidate.decide(found, &now());
        // Taken before the write leaves: others count from when they see it, which is later.
        let sent = Instant::now();
        let written = match decision {
            Decision::Held => {
                self.report();
                return Ok(Attempt::Foreign);
            }
            Decision::Create(lease) => {
                // Before the answer: a write whose answer is lost may have made it ours.
                self.may_hold = true;
                self.lock.create(&lease).await?
            }
            Decision::Replace(lease) => {
                self.may_hold = true;
                self.lock.replace(&lease).await?
            }
        };
        Ok(self.held(written, sent))
    }

    fn held(&mut self, written: Lease, sent: Instant) -> Attempt {
        self.may_hold = true;
        self.candidate.observe(written, Instant::now());
        self.report();
        Attempt::Held(sent)
    }

    /// Reports the leader, if it is a new one.
    fn report(&mut self) {
        let holder = self.candidate.holder();
        if holder == self.reported.as_deref() {
            return;
        }
        self.reported = holder.map(str::to_owned);
        let Some(leader) = &self.reported else { return };
        tracing::info!(lease = &*self.lease, leader, "new leader elected");
        if let Some(observer) = &self.settings.on_new_leader
            && catch_unwind(AssertUnwindSafe(|| observer(leader))).is_err()
        {
            tracing::error!(lease = &*self.lease, "on_new_leader panicked");
        }
    }

    /// Gives the Lease back, once every guarded write has been answered. If they are not, or it
    /// cannot be given back within its time, it runs out by itself.
    async fn release(&mut self) {
        self.fence.refuse();
        let released = tokio::time::timeout(self.settings.timing.renew_deadline, async {
            self.fence.landed().await;
            while let Err(error) = self.try_release().await {
                tracing::debug!(lease = &*self.lease, %error, "leader lease not released yet; retrying");
                if !error.is_conflict() {
                    tokio::time::sleep(self.settings.timing.retry_period).await;
                }
            }
        });
        match released.await {
            Ok(()) => tracing::info!(lease = &*self.lease, "released leader lease"),
            Err(_) => {
                tracing::warn!(lease = &*self.lease, "leader lease not released; it will expire");
            }
        }
    }

    async fn try_release(&mut self) -> Result<(), LockError> {
        let Some(lease) = self.lock.get().await? else { return Ok(()) };
        self.candidate.observe(lease.clone(), Instant::now());
        if self.candidate.holds() {
            let released = self.candidate.released(lease, &now());
            self.candidate.observe(self.lock.replace(&released).await?, Instant::now());
        }
        Ok(())
    }
}

fn now() -> Now {
    Now { instant: Instant::now(), timestamp: clock::now_micro_time() }
}
