//! The protocol: one state in, the next state out. Reading the state is in `sync`, following its
//! changes in `follow`; here is what both need.

use std::time::Duration;

use serde_json::value::RawValue;

use super::decode::Decode;
use super::gathered::Gathered;
use super::status::Phase;
use super::trouble::Trouble;
use super::wire::{Identity, WatchStream};
use super::{Delta, Reflector, Undecodable};
use crate::object::version_of;

/// How long a watch is asked to last, before jitter.
pub(super) const WATCH_MIN: Duration = Duration::from_secs(300);
/// How often in a row a kind must be found missing before its objects are taken for gone: a
/// server that starts may not know all its kinds at once.
const NOT_SERVED_LOOKS: u32 = 3;

/// Where a reflector is in the protocol.
pub(super) enum State<T> {
    /// Nothing is known, or what is known is too old to go on from.
    Sync {
        /// The state must not be older than this: time never goes back.
        not_older_than: Option<String>,
    },
    /// A stream gives the state; nothing of it has been told.
    Streaming { gathered: Gathered<T>, stream: WatchStream, not_older_than: Option<String> },
    /// The state at `version` has been told; a watch from there is due.
    Watch { version: String },
    /// A watch is running; everything up to `version` has been told.
    Watching { version: String, stream: WatchStream },
    /// Nobody listens any more.
    Done,
}

pub(super) type StateOf<D> = State<<D as Decode>::Output>;

impl<D: Decode> Reflector<D> {
    /// The whole protocol.
    pub(super) async fn step(&mut self, state: StateOf<D>) -> StateOf<D> {
        match state {
            State::Sync { not_older_than } if self.may_stream() => {
                self.open_stream(not_older_than).await
            }
            State::Sync { not_older_than } => self.list(not_older_than).await,
            State::Streaming { gathered, stream, not_older_than } => {
                self.gather(gathered, stream, not_older_than).await
            }
            State::Watch { version } => self.start_watch(version).await,
            State::Watching { version, stream } => self.follow(version, stream).await,
            State::Done => State::Done,
        }
    }

    /// The server does not know the kind. Once that is sure, nothing of it exists any more.
    pub(super) async fn not_served(&mut self, same_again: StateOf<D>) -> StateOf<D> {
        self.memory.not_served = self.memory.not_served.saturating_add(1);
        self.report.is_not_served();
        let delay = self.backoff.failed();
        if self.memory.not_served < NOT_SERVED_LOOKS {
            tokio::time::sleep(delay).await;
            return same_again;
        }
        let kind = &self.collection.kind;
        if self.memory.not_served == NOT_SERVED_LOOKS {
            tracing::info!(kind, "the kind is not served; looking for it now and then");
        }
        if self.memory.synced_at.take().is_some() {
            let nothing = Delta::Replaced { objects: vec![], skipped: vec![], version: None };
            if self.deltas.push(nothing).await.is_err() {
                return State::Done;
            }
        }
        tokio::time::sleep(delay).await;
        State::Sync { not_older_than: None }
    }

    /// Tells a whole state.
    pub(super) async fn replace(
        &mut self,
        gathered: Gathered<D::Output>,
        version: &str,
        next: StateOf<D>,
    ) -> StateOf<D> {
        if self.memory.not_served >= NOT_SERVED_LOOKS {
            tracing::info!(kind = self.collection.kind, "the kind is served");
        }
        if self.memory.synced_at.replace(version.to_owned()).is_some() {
            self.report.count(|tally| &tally.relists);
        }
        self.memory.broken_streams = 0;
        self.memory.not_served = 0;
        self.report.recovered();
        self.tell(gathered.into_delta(version), next).await
    }

    pub(super) async fn tell(&mut self, delta: Delta<D::Output>, next: StateOf<D>) -> StateOf<D> {
        match self.deltas.push(delta).await {
            Ok(()) => next,
            Err(_) => State::Done,
        }
    }

    /// Notes that the stream said something.
    pub(super) fn heard(&mut self, stream: &WatchStream) {
        self.report.heard(stream.heard);
        self.report.count(|tally| &tally.events);
        if self.memory.silence_reported || stream.stalled {
            self.memory.silence_reported = false;
            self.report.enter(Phase::Watching);
        }
    }

    /// Decodes one object, or reports it and tells which one it is.
    pub(super) fn decode(&mut self, raw: &RawValue) -> Result<D::Output, Identity> {
        self.decoder.decode(raw).map_err(|error| {
            let identity = Identity::of(raw);
            self.report.count(|tally| &tally.undecodable);
            let undecodable = Undecodable {
                kind: self.collection.kind.clone(),
                key: identity.key(),
                error: error.to_string(),
            };
            let Undecodable { kind, key, error } = &undecodable;
            tracing::error!(kind, ?key, error, "object cannot be decoded and is skipped");
            if let Some(hear) = &self.options.on_undecodable {
                hear(&undecodable);
            }
            identity
        })
    }

    /// Waits before the next try: longer each time, and not less than the server wishes.
    pub(super) async fn pause(&mut self, what: &'static str, trouble: &Trouble) {
        let delay = self.backoff.failed().max(trouble.after());
        let why = trouble.why();
        tracing::warn!(kind = self.collection.kind, what, why, ?delay, "backing off");
        self.report.backs_off(why);
        tokio::time::sleep(delay).await;
    }
}

/// Moves on to a version, never back where that can be told.
pub(super) fn advance(version: &mut String, to: Option<&str>) {
    if let Some(to) = to.filter(|to| !to.is_empty() && !is_older(to, Some(version))) {
        to.clone_into(version);
    }
}

/// Whether a version is certainly older than another.
pub(super) fn is_older(version: &str, than: Option<&str>) -> bool {
    match (version_of(Some(version)), version_of(than)) {
        (Some(version), Some(than)) => version < than,
        _ => false,
    }
}
