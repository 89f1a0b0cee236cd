//! The way between one client and the API server: slow, lossy, or held up.
//!
//! Unlike [`faults`](crate::faults), which break requests one by one, a [`Link`] is in one
//! condition for all that passes it, until that changes: a server that is paused, a network that
//! is slow, a client that is partitioned from the others.
//!
//! What a link does to a message is what a network may do, with one exception, on which fences
//! rely: a request whose sender has given it up (dropped its future) before it was delivered is
//! not delivered any more, as if its connection had been reset at both ends.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt};

use crate::faults::{AnswerBody, DIRECT};

/// How long it takes until a lost message is noticed as a broken connection.
const NOTICED_WITHIN: Duration = Duration::from_secs(8);

/// The way between a client and the server. Clones are the same way.
#[derive(Clone)]
pub struct Link {
    condition: Arc<watch::Sender<Condition>>,
    dice: Arc<Mutex<StdRng>>,
}

/// What happens to messages on their way, in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Whether messages wait until the condition changes. They arrive then, unless their sender
    /// has given up.
    pub held: bool,
    /// How long a message takes.
    pub delay: RangeInclusive<Duration>,
    /// How likely a message is lost. Its connection then breaks after a while: the sender does
    /// not know whether the request or its answer was lost.
    pub loss: f64,
}

impl Condition {
    /// Everything arrives at once.
    pub const GOOD: Self = Self { held: false, delay: Duration::ZERO..=Duration::ZERO, loss: 0.0 };
    /// Nothing arrives before the condition changes: the server is paused, or the client is
    /// partitioned from it.
    pub const HELD: Self = Self { held: true, delay: Duration::ZERO..=Duration::ZERO, loss: 0.0 };

    /// Each message takes up to so long.
    pub fn slow(max: Duration) -> Self {
        Self { delay: Duration::ZERO..=max, ..Self::GOOD }
    }

    /// The same, and messages are lost with this probability.
    #[must_use]
    pub fn lossy(mut self, probability: f64) -> Self {
        self.loss = probability;
        self
    }
}

/// A message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionReset;

impl fmt::Display for ConnectionReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection reset by peer")
    }
}

impl std::error::Error for ConnectionReset {}

impl Link {
    /// A good link; delays and losses follow from this seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            condition: Arc::new(watch::Sender::new(Condition::GOOD)),
            dice: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
        }
    }

    /// Changes the condition, also for what is under way.
    pub fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// The same service at the other end of this link.
    pub fn around<S>(&self, api: S) -> LinkedService<S> {
        LinkedService { api, link: self.clone() }
    }

    /// Takes one message along.
    async fn travel(&self) -> Result<(), ConnectionReset> {
        self.passable().await;
        let (delay, lost) = self.fate();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
            self.passable().await;
        }
        if lost {
            return Err(ConnectionReset);
        }
        Ok(())
    }

    async fn passable(&self) {
        let mut condition = self.condition.subscribe();
        // The sender lives as long as this link.
        let _ = condition.wait_for(|condition| !condition.held).await;
    }

    /// How long the next message takes, and whether it gets lost.
    fn fate(&self) -> (Duration, bool) {
        let Condition { delay, loss, .. } = self.condition.borrow().clone();
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = loss > 0.0 && dice.random::<f64>() < loss;
        let range = if lost { Duration::ZERO..=NOTICED_WITHIN } else { delay };
        (dice.random_range(range), lost)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({:?})", *self.condition.borrow())
    }
}

/// A service at the other end of a link; see [`Link::around`].
#[derive(Clone, Debug)]
pub struct LinkedService<S> {
    api: S,
    link: Link,
}

impl<S, A, B> Service<Request<A>> for LinkedService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    A: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(())) // each call waits for a service of its own
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let Self { api, link } = self.clone();
        Box::pin(async move {
            link.travel().await?;
            let mut answer = api.oneshot(request).await.map_err(Into::into)?;
            answer.headers_mut().remove(DIRECT);
            link.travel().await?;
            Ok(answer.map(|body| along(link, body)))
        })
    }
}

/// An answer's parts wait while the link is held: what a watch says comes late.
fn along<B>(link: Link, body: B) -> AnswerBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let parts = body.into_data_stream().map_err(Into::into).then(move |part| {
        let link = link.clone();
        async move {
            link.passable().await;
            part.map(Frame::data)
        }
    });
    StreamBody::new(parts).boxed_unsync()
}
