//! Auditing: who did what, told in events of `audit.k8s.io/v1` as a [`Policy`] asks.
//!
//! A request that a rule of the policy covers leaves a [`Trail`]: begun before anybody looks at the
//! request, added to by those who decide about it ([`Trail::annotate`]), and told to the sinks at
//! each stage. Sinks take events in memory and at once, and never hold up a request: a [log
//! file](log) is written by a thread of its own, a [webhook] called by a task. Both are
//! bounded; what does not fit or cannot be written is counted, and lost. Where somebody wishes so,
//! events that are [too large](truncate) lose their bodies.
//!
//! Bodies are told from their level on and never below it; credentials never are. A server without
//! a policy has no trails and pays one comparison for it.

mod event;
mod log;
mod policy;
mod rotation;
mod source;
mod trail;
mod truncate;
mod webhook;

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

pub use crate::webhook_client::{KubeconfigError, WebhookEndpoint};
pub use event::{AuthenticationMetadata, Event, Json, ObjectReference, ResponseStatus, UserInfo};
pub use log::{LogError, LogSettings};
pub use policy::{Level, Policy, PolicyError, Stage};
pub(crate) use trail::{Audited, Head, Refused, Trail};
pub use truncate::Truncation;
pub(crate) use webhook::Post;
pub use webhook::WebhookSettings;

use crate::clock::Clock;
use crate::metrics::{Counter, Registry};
use crate::random::Random;
use log::Log;
use webhook::Batches;

/// What is audited, and who is told.
#[derive(Clone)]
pub struct Auditing {
    policy: Arc<Policy>,
    log: Option<Arc<Log>>,
    webhook: Option<WebhookSettings>,
    observers: Vec<Observer>,
}

/// Is told of events as they happen. It is called by whoever serves the request: it must not wait.
type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

impl std::fmt::Debug for Auditing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auditing").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Auditing {
    /// Audits as a policy asks, and tells nobody yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(policy), log: None, webhook: None, observers: Vec::new() }
    }

    /// Writes events to a file or to the standard output.
    pub fn log(mut self, settings: LogSettings) -> Result<Self, LogError> {
        self.log = Some(Arc::new(Log::open(settings)?));
        Ok(self)
    }

    /// Sends events to a webhook, in batches.
    #[must_use]
    pub fn webhook(mut self, settings: WebhookSettings) -> Self {
        self.webhook = Some(settings);
        self
    }

    /// Tells events to a function, which must not wait for anything.
    #[must_use]
    pub fn observer(mut self, tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(tell));
        self
    }

    /// Keeps events, for a test to look at.
    #[must_use]
    pub fn recorded(self, record: &AuditRecord) -> Self {
        let record = record.clone();
        self.observer(move |event| {
            record.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(event.clone()));
        })
    }
}

/// The events that were told, in order. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AuditRecord(Arc<Mutex<Vec<Arc<Event>>>>);

impl AuditRecord {
    /// The events so far.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same as documents, as a log has them.
    pub fn documents(&self) -> Vec<Value> {
        let read = |event: &Arc<Event>| serde_json::from_str(&event.to_json()).unwrap_or_default();
        self.events().iter().map(read).collect()
    }
}

/// The header that names a request for those who look at its events.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// What all events of a request have in common: what its client says, or something new.
pub(crate) fn id(headers: &HeaderMap, ids: &Random) -> HeaderValue {
    let given = headers.get(AUDIT_ID).filter(|given| !given.is_empty() && given.to_str().is_ok());
    match given {
        Some(given) => given.clone(),
        None => HeaderValue::try_from(ids.uid()).expect("hexadecimal digits can stand in a header"),
    }
}

/// Auditing at work.
pub(crate) struct Audit {
    policy: Arc<Policy>,
    log: Option<Arc<Log>>,
    webhook: Option<Batches>,
    observers: Vec<Observer>,
    clock: Clock,
    numbers: Numbers,
}

/// What is counted of it.
struct Numbers {
    events: Arc<Counter>,
    /// Requests by their level.
    levels: [Arc<Counter>; 4],
    log_errors: Arc<Counter>,
    webhook_errors: Arc<Counter>,
    /// Events that are too large even without their bodies.
    truncate_errors: Arc<Counter>,
}

impl Numbers {
    fn registered(registry: &Registry) -> Self {
        let errors = registry.counters(
            "apiserver_audit_error_total",
            "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
            ["plugin"],
        );
        let levels = registry.counters(
            "apiserver_audit_level_total",
            "[ALPHA] Counter of policy levels for audit events (1 per request).",
            ["level"],
        );
        registry.counter(
            "apiserver_audit_requests_rejected_total",
            "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
        );
        Self {
            events: registry.counter(
                "apiserver_audit_event_total",
                "[ALPHA] Counter of audit events generated and sent to the audit backend.",
            ),
            levels: Level::ALL.map(|(name, _)| levels.with([name])),
            log_errors: errors.with(["log"]),
            webhook_errors: errors.with(["webhook"]),
            truncate_errors: errors.with(["truncate"]),
        }
    }
}

impl Audit {
    /// Begins to audit.
    pub(crate) fn start(auditing: Auditing, registry: &Registry, clock: &Clock) -> Arc<Self> {
        let numbers = Numbers::registered(registry);
        let Auditing { policy, log, webhook, observers } = auditing;
        let webhook = webhook.map(|settings| Batches::new(settings, &numbers.webhook_errors));
        let clock = Arc::clone(clock);
        Arc::new(Self { policy, log, webhook, observers, clock, numbers })
    }

    /// Where the events for a webhook wait, if there is one.
    pub(crate) fn batches(&self) -> Option<&Batches> {
        self.webhook.as_ref()
    }

    /// Tells everybody of an event.
    fn tell(&self, event: &Event) {
        self.numbers.events.increment();
        self.observers.iter().for_each(|tell| tell(event));
        if self.log.is_none() && self.webhook.is_none() {
            return;
        }
        let event = Arc::new(event.clone());
        if let Some(log) = &self.log
            && let Some(event) = self.truncated(log.truncate, &event)
        {
            log.take(event, &self.numbers.log_errors);
        }
        if let Some(webhook) = &self.webhook
            && let Some(event) = self.truncated(webhook.settings.truncate, &event)
        {
            webhook.take(event);
        }
    }

    /// The event as a sink may have it, if it may.
    fn truncated(&self, limits: Option<Truncation>, event: &Arc<Event>) -> Option<Arc<Event>> {
        let Some(limits) = limits else { return Some(Arc::clone(event)) };
        let event = limits.truncated(event);
        if event.is_none() {
            self.numbers.truncate_errors.increment();
        }
        event
    }
}
