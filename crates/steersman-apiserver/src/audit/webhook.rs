//! The webhook: events in batches to a server elsewhere, which may be slow or gone.
//!
//! A batch is sent when it is full, or when its first event has waited long enough, and no more of
//! them in a second than are allowed. One that is not taken is sent again some times, each time
//! after waiting longer; then it is lost, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::event::{Event, EventList};
use super::truncate::Truncation;
use crate::metrics::Counter;
use crate::webhook_client::WebhookEndpoint;

/// How much memory the events may take, about, that are not yet taken.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// How many batches are under way at once.
const SENDING_MAX: usize = 32;

/// How often a batch is sent before it is given up.
const ATTEMPTS: u32 = 5;

/// How much longer each wait is than the one before.
const BACKOFF_FACTOR: f64 = 1.5;

/// How a webhook is called, with kube-apiserver's limits.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Where it is.
    pub endpoint: WebhookEndpoint,
    /// How many events wait for a batch.
    pub buffer_size: usize,
    /// How many events a batch has.
    pub batch_max_size: usize,
    /// How long a batch waits for more of them.
    pub batch_max_wait: Duration,
    /// How many batches are sent in a second, on average.
    pub throttle_qps: f64,
    /// How many more may be sent at once after a while without any.
    pub throttle_burst: u32,
    /// How long to wait before a batch is sent again.
    pub initial_backoff: Duration,
    /// How large an event and a batch may be; as large as they are if nothing is said.
    pub truncate: Option<Truncation>,
}

impl WebhookSettings {
    /// A webhook that is called as kube-apiserver calls it by default.
    pub fn to(endpoint: WebhookEndpoint) -> Self {
        Self {
            endpoint,
            buffer_size: 10_000,
            batch_max_size: 400,
            batch_max_wait: Duration::from_secs(30),
            throttle_qps: 10.0,
            throttle_burst: 15,
            initial_backoff: Duration::from_secs(10),
            truncate: None,
        }
    }
}

/// Posts a batch, and tells what went wrong.
pub(crate) type Post = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The events that wait for a webhook.
pub(crate) struct Batches {
    pub(crate) settings: WebhookSettings,
    waiting: Sender<Arc<Event>>,
    /// The other end, until somebody sends what waits.
    received: Mutex<Option<Receiver<Arc<Event>>>>,
    /// About how much memory those take that are not yet taken.
    bytes: Arc<AtomicUsize>,
    errors: Arc<Counter>,
}

impl Batches {
    pub(super) fn new(settings: WebhookSettings, errors: &Arc<Counter>) -> Self {
        let (waiting, received) = mpsc::channel(settings.buffer_size.max(1));
        let received = Mutex::new(Some(received));
        Self { settings, waiting, received, bytes: Arc::default(), errors: Arc::clone(errors) }
    }

    /// Takes an event, unless too many wait.
    pub(super) fn take(&self, event: Arc<Event>) {
        let size = event.size();
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > BYTES_MAX
            || self.waiting.try_send(event).is_err()
        {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            self.errors.increment();
        }
    }

    /// Sends what waits until the token is cancelled, and then what is left, once.
    pub(crate) async fn run(&self, post: Post, ended: CancellationToken) {
        let Some(mut events) = self.received.lock().await.take() else { return };
        let mut throttle = Throttle::new(&self.settings);
        let places = Arc::new(Semaphore::new(SENDING_MAX));
        let mut batch = Vec::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => {
                    batch.extend(std::iter::from_fn(|| events.try_recv().ok()));
                    return self.sending(&batch, 1).run(post, body(&batch)).await;
                }
                event = events.recv() => {
                    let Some(event) = event else { return };
                    if batch.is_empty() {
                        due = Instant::now() + self.settings.batch_max_wait;
                    }
                    batch.push(event);
                    if !self.is_full(&batch) {
                        continue;
                    }
                }
                () = sleep_until(due), if !batch.is_empty() => {}
            }
            throttle.pass().await;
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let sending = self.sending(&batch, ATTEMPTS);
            let sent = sending.run(Arc::clone(&post), body(&batch));
            tokio::spawn(async move {
                sent.await;
                drop(place);
            });
            batch.clear();
        }
    }

    /// Whether a batch has as many events as it may, or as large ones.
    fn is_full(&self, batch: &[Arc<Event>]) -> bool {
        let WebhookSettings { batch_max_size, truncate, .. } = self.settings;
        let bytes = || batch.iter().map(|event| event.size()).sum::<usize>();
        batch.len() >= batch_max_size
            || truncate
                .is_some_and(|limits| bytes() + limits.max_event_size > limits.max_batch_size)
    }

    fn sending(&self, batch: &[Arc<Event>], attempts: u32) -> Sending {
        Sending {
            number: batch.len() as u64,
            bytes: batch.iter().map(|event| event.size()).sum(),
            attempts,
            wait: self.settings.initial_backoff,
            left: Arc::clone(&self.bytes),
            errors: Arc::clone(&self.errors),
        }
    }
}

fn body(batch: &[Arc<Event>]) -> Bytes {
    serde_json::to_vec(&EventList::of(batch)).unwrap_or_default().into()
}

/// A batch on its way.
struct Sending {
    number: u64,
    bytes: usize,
    /// How often it may yet be sent.
    attempts: u32,
    /// How long to wait before the next time.
    wait: Duration,
    /// What all that is not yet taken takes.
    left: Arc<AtomicUsize>,
    errors: Arc<Counter>,
}

impl Sending {
    async fn run(mut self, post: Post, body: Bytes) {
        while self.number > 0 && self.attempts > 0 {
            self.attempts -= 1;
            match post(body.clone()).await {
                Ok(()) => break,
                Err(why) if self.attempts == 0 => {
                    self.errors.add(self.number);
                    tracing::error!(why, events = self.number, "audit webhook failed; events lost");
                }
                Err(why) => {
                    tracing::debug!(why, "audit webhook failed");
                    sleep(self.wait).await;
                    self.wait = self.wait.mul_f64(BACKOFF_FACTOR);
                }
            }
        }
        self.left.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Lets batches pass, some at once and then no more than so many in a second: a bucket of tokens.
struct Throttle {
    tokens: f64,
    burst: f64,
    qps: f64,
    filled: Instant,
}

impl Throttle {
    fn new(settings: &WebhookSettings) -> Self {
        let burst = f64::from(settings.throttle_burst.max(1));
        let qps = settings.throttle_qps.max(0.001);
        Self { tokens: burst, burst, qps, filled: Instant::now() }
    }

    async fn pass(&mut self) {
        let now = Instant::now();
        let since = now.duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + since * self.qps).min(self.burst) - 1.0;
        if self.tokens < 0.0 {
            sleep(Duration::from_secs_f64(-self.tokens / self.qps)).await;
        }
    }
}
