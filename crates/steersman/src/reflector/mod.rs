//! The reflector: lists and watches a kind, and relists, through every kind of trouble.
//!
//! It reads the whole state, then follows its changes, and resumes watches where they ended.
//! What it learns goes out as [`Delta`]s through a delta queue to
//! whoever keeps a cache; when that queue is full, the reflector stops reading, and the pressure
//! reaches the socket.
//!
//! ```text
//!               ┌──────── 410, refused, or newer than the server knows ─────────┐
//!               ▼                                                               │
//!  ──────────► Sync ──── streaming ───► Streaming ── end of the state ──► Watching ◄─┐
//!               │  ▲                        │           (Replaced)           │       │
//!               │  └─── broken, refused ────┘                              ended     │
//!               │                                                            ▼       │
//!               └─ list: pages, or one whole list ── (Replaced) ─────────► Watch ────┘
//! ```
//!
//! [`sync`] lists and streams; [`follow`] watches, and decides when a watch that ended, expired or
//! failed leads to a relist. [`machine`] has the states with what each remembers.
//!
//! * **Streaming** (WatchList) is tried first. Objects are put aside until the bookmark that ends
//!   them, so a stream that breaks leaves no partial state, and their versions are never taken
//!   for progress. A server that refuses or ignores it is asked for lists from then on.
//! * **Time never goes back**: a relist is at least as new as what was delivered, unless the
//!   server itself no longer knows that version; then it is the server's latest.
//! * **Everything that fails** is tried again after a pause that grows, from the same version. A
//!   watch that expired, that the server refuses, that stays silent twice or tells what cannot be
//!   read gives way to a relist.
//! * **A kind that is no longer served** is delivered as empty, and looked for until it is back.
//! * **What is remembered is part of the state** it matters in, and gone with it; only what the
//!   server is able to do is remembered for ever.
//! * **An object that cannot be decoded** is reported, skipped, and [read again](reread) by itself
//!   until it can be; a deletion is never skipped.
//!
//! `ReflectorStatus` shows all of this while it happens.

mod backoff;
mod decode;
mod delta;
mod follow;
mod gathered;
mod lines;
mod machine;
mod reread;
mod status;
mod sync;
mod trouble;
mod wire;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::delta_queue::{self, Mode, Sender};
use crate::object::{Cacheable, ObjectKey};
use backoff::Backoff;
pub(crate) use decode::{Decode, DecodeError, Keyed, Typed};
pub use delta::{Delta, Deltas};
use machine::{State, Syncing};
use reread::Rereads;
pub use status::Counts;
use status::Reporter;
pub(crate) use status::{Phase, ReflectorStatus};
use wire::Collection;
pub use wire::Selection;
pub(crate) use wire::WatchedResource;

/// How to reflect.
#[derive(Clone)]
pub struct Options {
    /// Objects per page of a list; zero reads lists in one piece.
    pub page_size: u32,
    /// Whether to read the state as a stream where the server can.
    pub streaming: bool,
    /// Is called for every object that cannot be decoded. Must not block; a panic is logged.
    pub on_undecodable: Option<OnUndecodable>,
}

impl Default for Options {
    fn default() -> Self {
        Self { page_size: 500, streaming: true, on_undecodable: None }
    }
}

/// Hears of an object that cannot be decoded.
pub type OnUndecodable = Arc<dyn Fn(&Undecodable) + Send + Sync>;

/// An object that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// The kind that it should be of.
    pub kind: String,
    /// Which object it is, if that could be read.
    pub key: Option<ObjectKey>,
    /// What is wrong with it.
    pub error: String,
}

/// Reads and watches one kind. [`Reflector::run`] drives it.
pub struct Reflector<D: Decode> {
    collection: Collection,
    options: Options,
    decoder: D,
    deltas: Sender<Delta<D::Output>>,
    backoff: Backoff,
    /// The trouble that was last warned of, while it lasts.
    told: Option<String>,
    report: Reporter,
    server: Server,
    rereads: Rereads,
}

/// What a reflector learns of its server once and for all. Everything else that it remembers is
/// part of the [`State`] that it is in.
#[derive(Default)]
struct Server {
    /// It refuses or ignores streaming lists.
    refuses_streams: bool,
    /// It sends bookmarks, so that its silence means something.
    sends_bookmarks: bool,
    /// It is in this process, with nothing in between.
    direct: bool,
}

impl<K: Cacheable> Reflector<Typed<K>> {
    /// A reflector of the objects of a kind that `selection` selects, and what it learns. So many
    /// deltas wait at most; then the reflector stops reading until some are taken.
    pub fn channel(
        client: kube::Client,
        dynamic_type: &K::DynamicType,
        selection: Selection,
        capacity: usize,
    ) -> (Self, Deltas<K>) {
        let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity });
        (Self::new(client, dynamic_type, selection, send), Deltas(deltas))
    }

    /// A reflector that sends what it learns to `deltas`.
    pub(crate) fn new(
        client: kube::Client,
        dynamic_type: &K::DynamicType,
        selection: Selection,
        deltas: Sender<Delta<K>>,
    ) -> Self {
        let resource = WatchedResource::of::<K>(dynamic_type);
        Self::with_decoder(client, resource, selection, Typed::new(), deltas)
    }
}

impl<D: Decode> Reflector<D> {
    /// A reflector of the objects of a kind, which become what `decoder` makes of them.
    pub(crate) fn with_decoder(
        client: kube::Client,
        resource: WatchedResource,
        selection: Selection,
        decoder: D,
        deltas: Sender<Delta<D::Output>>,
    ) -> Self {
        Self {
            collection: Collection::new(client, resource, selection),
            options: Options::default(),
            decoder,
            deltas,
            backoff: Backoff::new(),
            told: None,
            report: Reporter::new(),
            server: Server::default(),
            rereads: Rereads::new(),
        }
    }

    /// Sets how to reflect.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Reads objects by themselves for others, to whom what is known of them seems to be old.
    pub(crate) fn reread_for(mut self, requests: mpsc::Receiver<ObjectKey>) -> Self {
        self.rereads.take_requests(requests);
        self
    }

    /// Shows what this reflector is doing.
    pub(crate) fn status(&self) -> ReflectorStatus {
        self.report.status()
    }

    /// Runs until nobody receives the deltas any more.
    pub async fn run(mut self) {
        let deltas = self.deltas.clone();
        tokio::select! {
            () = deltas.closed() => {}
            () = self.drive() => {}
        }
    }

    async fn drive(&mut self) {
        let mut state = State::Sync(Syncing::default());
        while !matches!(state, State::Done) {
            state = self.step(state).await;
        }
    }
}

#[cfg(test)]
mod tests;
