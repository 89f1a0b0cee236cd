//! The protocol: one state in, the next state out. Reading the state is in `sync`, following its
//! changes in `follow`; here is what both need.

use std::time::Duration;

use serde_json::value::RawValue;

use super::decode::{Decode, DecodeError, Keyed, guarded};
use super::gathered::Gathered;
use super::trouble::Trouble;
use super::wire::{Identity, WatchStream};
use super::{Delta, Reflector, Undecodable};
use crate::object::version_of;

/// How long a watch is asked to last, before jitter.
pub(super) const WATCH_MIN: Duration = Duration::from_secs(300);
/// How often in a row a kind must be found missing before its objects are taken for gone: a
/// server that starts may not know all its kinds at once. The pauses between are about 12 s.
const NOT_SERVED_LOOKS: u32 = 5;

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
        if !std::mem::replace(&mut self.memory.missing, true) {
            let kind = &self.collection.kind;
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
        if std::mem::take(&mut self.memory.missing) {
            tracing::info!(kind = self.collection.kind, "the kind is served");
        }
        if self.memory.synced_at.replace(version.to_owned()).is_some() {
            self.report.count(|tally| &tally.relists);
        }
        self.memory.broken_streams = 0;
        self.memory.not_served = 0;
        self.memory.silence_reported = false;
        self.memory.silent_watches = 0;
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
        self.memory.silent_watches = 0;
        if std::mem::take(&mut self.memory.silence_reported) {
            self.report.silence_is_over();
        }
    }

    /// Decodes one object, or reports it and tells which one it is.
    pub(super) fn decode(&mut self, raw: &RawValue) -> Result<D::Output, Identity> {
        self.decode_by(D::decode, raw)
    }

    /// Decodes an object that was added or changed after the state was told.
    pub(super) fn decode_change(&mut self, raw: &RawValue) -> Result<D::Output, Identity> {
        self.decode_by(D::decode_change, raw)
    }

    fn decode_by(
        &mut self,
        decode: fn(&mut D, &RawValue) -> Result<D::Output, DecodeError>,
        raw: &RawValue,
    ) -> Result<D::Output, Identity> {
        let decoder = &mut self.decoder;
        let decoded = guarded(|| match decode(decoder, raw) {
            Ok(object) if object.has_name() => Ok(object),
            Ok(_) => Err("it has no name".to_owned()),
            Err(error) => Err(error.to_string()),
        });
        let decoded = decoded.unwrap_or_else(|panic| Err(format!("decoding panicked: {panic}")));
        decoded.map_err(|error| self.report_undecodable(raw, error))
    }

    /// Reports an object that cannot be decoded and tells which one it is.
    fn report_undecodable(&self, raw: &RawValue, error: String) -> Identity {
        let identity = Identity::of(raw);
        self.report.count(|tally| &tally.undecodable);
        let kind = self.collection.kind.clone();
        let undecodable = Undecodable { kind, key: identity.key(), error };
        let Undecodable { kind, key, error } = &undecodable;
        tracing::error!(kind, ?key, error, "object cannot be decoded and is skipped");
        if let Some(hear) = &self.options.on_undecodable
            && let Err(panic) = guarded(|| hear(&undecodable))
        {
            tracing::error!(kind, panic, "the hook for undecodable objects panicked");
        }
        identity
    }

    /// Waits before the next try: longer each time, and not less than the server wishes.
    pub(super) async fn pause(&mut self, what: &'static str, trouble: &Trouble) {
        self.memory.not_served = 0; // whatever this trouble is, it is another one
        let delay = self.backoff.failed().max(trouble.after());
        let why = trouble.why();
        if self.backoff.failed_once() {
            // Servers restart and stop; that alone need not worry anybody.
            tracing::info!(kind = self.collection.kind, what, why, ?delay, "backing off");
        } else {
            tracing::warn!(kind = self.collection.kind, what, why, ?delay, "backing off");
        }
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
