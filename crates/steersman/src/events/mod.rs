//! Events: what a controller reports to people about an object, as `events.k8s.io/v1` or, if it is
//! to read like an event of kube-controller-manager or a kubelet, as `v1` ([`EventForm`]).
//!
//! A [`Recorder`] takes what happened and returns at once; it never waits and never fails. Equal
//! events become one series, many similar ones are combined, and few are begun per object
//! (`book`). A [`Broadcaster`] writes them in the background. What is lost, because the server
//! refuses it or too much is going on, is counted and logged, and nothing else depends on it.

mod book;
mod broadcaster;
mod cut;
mod document;
mod form;
mod identity;
mod metrics;
mod new_event;
mod reference;
mod reporter;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::{Client, Impersonation};
use crate::clock;
use crate::metrics::Metrics;

use book::{Book, Moment};
pub use broadcaster::Broadcaster;
pub use form::EventForm;
use identity::Identity;
pub(crate) use metrics::EventFamilies;
pub use new_event::NewEvent;
pub use reference::Reference;
use reporter::{Reporter, Writer};

/// How much attention an event deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum EventType {
    /// Something happened as it should.
    Normal,
    /// Something may have gone wrong.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Records events under the name of one controller. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    reporter: Reporter,
    shared: Arc<Shared>,
}

/// What all recorders of a client share with the broadcaster that writes for them.
struct Shared {
    book: Mutex<Book>,
    /// Notified when something is due earlier than before.
    wake: Notify,
    metrics: EventFamilies,
    /// How many clients of their own recorders were given.
    writers: AtomicU64,
}

impl Recorder {
    /// A recorder, and the broadcaster that writes what it records as long as it runs. Events
    /// are reported by the client's field manager, until [`reporting`](Self::reporting) says
    /// otherwise.
    pub fn new(client: Client, metrics: &Metrics) -> (Self, Broadcaster) {
        let shared = Arc::new(Shared {
            book: Mutex::new(Book::default()),
            wake: Notify::new(),
            metrics: metrics.families(),
            writers: AtomicU64::new(0),
        });
        let reporter = Reporter::new(client.field_manager());
        (Self { reporter, shared: Arc::clone(&shared) }, Broadcaster::new(client, shared))
    }

    /// The same recorder, reporting as another controller, in the same form and through the same
    /// client, under the same field manager.
    #[must_use]
    pub fn reporting(&self, controller: &str) -> Self {
        Self { reporter: self.reporter.renamed(controller), shared: Arc::clone(&self.shared) }
    }

    /// The same recorder, whose Events are written under this field manager, and not the client's.
    #[must_use]
    pub fn field_manager(&self, name: impl Into<Arc<str>>) -> Self {
        let reporter = self.reporter.field_manager(&name.into());
        Self { reporter, shared: Arc::clone(&self.shared) }
    }

    /// The same recorder, whose Events are written through another client, as its user. Events of one
    /// series go through one client: give each part of a program its recorder once.
    #[must_use]
    pub fn through(&self, client: Client) -> Self {
        let number = self.shared.writers.fetch_add(1, Ordering::Relaxed);
        let reporter = self.reporter.through(Writer { number, client: Arc::new(client) });
        Self { reporter, shared: Arc::clone(&self.shared) }
    }

    /// The same recorder, whose events are written in this form.
    #[must_use]
    pub fn form(&self, form: EventForm) -> Self {
        Self { reporter: self.reporter.form(form), shared: Arc::clone(&self.shared) }
    }

    /// The same recorder, reporting as one of several instances of the controller, such as the
    /// agent of one node; otherwise the instance is named after the machine.
    #[must_use]
    pub fn instance(&self, instance: &str) -> Self {
        Self { reporter: self.reporter.instance(instance), shared: Arc::clone(&self.shared) }
    }

    /// The same recorder, whose Events are written in the name of another user.
    #[must_use]
    pub fn acting_as(&self, user: &Impersonation) -> Self {
        Self { reporter: self.reporter.acting_as(user), shared: Arc::clone(&self.shared) }
    }

    /// Records that something happened to an object: `recorder.event(&pod, …)`, or with a
    /// [`Reference`] to one whose kind is known only at run time, or to a part of one.
    pub fn event(&self, regarding: impl Into<Reference>, event: NewEvent) {
        self.record(regarding.into(), event);
    }

    fn record(&self, regarding: Reference, event: NewEvent) {
        let identity = Identity::new(self.reporter.clone(), regarding, event);
        let (observed, open) = {
            let mut book = self.shared.book();
            let observed = book.observe(identity, Moment::now());
            (observed, book.len())
        };
        self.shared.metrics.open(open);
        match observed {
            Ok(true) => self.shared.wake.notify_one(),
            Ok(false) => {}
            Err(loss) => self.shared.metrics.lost(loss),
        }
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moment {
    fn now() -> Self {
        Self { instant: Instant::now(), time: clock::now_micro_time() }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}
