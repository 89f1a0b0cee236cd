//! The protocol: one state in, the next state out. Reading the state is in `sync`, following its
//! changes in `follow`; here is what both need.

use std::time::Duration;

use super::decode::{Decode, DecodeError, Keyed, guarded};
use super::gathered::Gathered;
use super::trouble::Trouble;
use super::wire::{Identity, WatchStream};
use super::{Delta, Reflector, Undecodable};
use crate::object::version_of;
use crate::random;

/// How long a watch is asked to last, before jitter.
const WATCH_MIN: Duration = Duration::from_secs(300);
/// The same within a process, where a watch need not begin anew to be known to live.
const DIRECT_WATCH_MIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often in a row a kind must be found missing before its objects are taken for gone: a
/// server that starts may not know all its kinds at once. The pauses between are about 12 s.
const NOT_SERVED_LOOKS: u32 = 5;

/// Where a reflector is in the protocol, with what it remembers there.
pub(super) enum State<T> {
    /// Nothing is known, or what is known is too old to go on from: the whole state is due.
    Sync(Syncing),
    /// A stream gives the state; nothing of it has been delivered.
    Streaming { syncing: Syncing, gathered: Gathered<T>, stream: WatchStream },
    /// A state has been delivered; a watch from the version of `following` is due.
    Watch {
        following: Following,
        /// How often in a row the kind was found not to be served.
        not_served: u32,
    },
    /// A watch is running.
    Watching { following: Following, stream: WatchStream },
    /// Nobody listens any more.
    Done,
}

pub(super) type StateOf<D> = State<<D as Decode>::Output>;

/// One of the two ways in which a decoder decodes.
type DecodeBy<D> = fn(&mut D, &str) -> Result<<D as Decode>::Output, DecodeError>;

/// What is remembered until the next whole state is delivered.
#[derive(Default)]
pub(super) struct Syncing {
    /// The state must not be older than this: time never goes back.
    pub(super) not_older_than: Option<String>,
    /// What receivers know until then.
    pub(super) known: Known,
    /// Streams that broke since the last state was delivered.
    pub(super) broken_streams: u32,
    /// How often in a row the kind was found not to be served.
    pub(super) not_served: u32,
}

/// What the receivers of deltas know.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing was delivered yet.
    #[default]
    Nothing,
    /// A whole state, and perhaps changes after it: the next one is a relist.
    State,
    /// The kind is not served, so that nothing of it exists.
    NotServed,
}

/// What is remembered while the changes of a delivered state are followed.
pub(super) struct Following {
    /// Everything up to this version has been delivered.
    pub(super) version: String,
    /// The version of the whole state.
    pub(super) synced_at: String,
    /// Whether the watch is silent for longer than a server should be.
    pub(super) silence: Silence,
    /// Events in a row that could not be read at all.
    pub(super) unreadable: u32,
}

/// Whether a watch is silent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// It is not, or nobody has noticed yet.
    None,
    /// It is, and that has been reported.
    Reported {
        /// Watches in a row that were left because of it.
        watches: u32,
    },
}

impl Syncing {
    /// The same, without insisting on a version.
    pub(super) fn at_latest(self) -> Self {
        Self { not_older_than: None, ..self }
    }
}

impl Following {
    /// Follows a state that was just delivered.
    pub(super) fn from_state(version: String) -> Self {
        Self { synced_at: version.clone(), version, silence: Silence::None, unreadable: 0 }
    }

    /// Reads the state anew, at its latest.
    pub(super) fn relist(self) -> Syncing {
        Syncing { known: Known::State, ..Syncing::default() }
    }

    /// Reads the state anew, not older than what was delivered. If that is a whole state that was
    /// read just now, another one not older than it could be as useless: then it is the latest.
    pub(super) fn relist_not_older(self) -> Syncing {
        let has_moved_on = self.version != self.synced_at;
        let not_older_than = has_moved_on.then_some(self.version);
        Syncing { not_older_than, known: Known::State, ..Syncing::default() }
    }
}

impl<T> State<T> {
    /// A watch from where the changes were followed to is due.
    pub(super) fn watch(following: Following) -> Self {
        Self::Watch { following, not_served: 0 }
    }
}

impl<D: Decode> Reflector<D> {
    /// How long the next watch is asked to last.
    pub(super) fn watch_timeout(&self) -> Duration {
        random::jitter(if self.server.direct { DIRECT_WATCH_MIN } else { WATCH_MIN }, 1.0)
    }

    /// The whole protocol.
    pub(super) async fn step(&mut self, state: StateOf<D>) -> StateOf<D> {
        match state {
            State::Sync(syncing) if self.may_stream(&syncing) => self.open_stream(syncing).await,
            State::Sync(syncing) => self.list(syncing).await,
            State::Streaming { syncing, gathered, stream } => {
                self.gather(syncing, gathered, stream).await
            }
            State::Watch { following, not_served } => self.start_watch(following, not_served).await,
            State::Watching { following, stream } => self.follow(following, stream).await,
            State::Done => State::Done,
        }
    }

    /// The server does not know the kind that was to be read.
    pub(super) async fn sync_not_served(&mut self, mut syncing: Syncing) -> StateOf<D> {
        syncing.not_served = syncing.not_served.saturating_add(1);
        let delay = self.not_served_delay();
        if syncing.not_served >= NOT_SERVED_LOOKS {
            return self.vanished(syncing.at_latest(), delay).await;
        }
        tokio::time::sleep(delay).await;
        State::Sync(syncing)
    }

    /// The server does not know the kind that was to be watched.
    pub(super) async fn watch_not_served(
        &mut self,
        following: Following,
        not_served: u32,
    ) -> StateOf<D> {
        let not_served = not_served.saturating_add(1);
        let delay = self.not_served_delay();
        if not_served >= NOT_SERVED_LOOKS {
            return self.vanished(Syncing { not_served, ..following.relist() }, delay).await;
        }
        tokio::time::sleep(delay).await;
        State::Watch { following, not_served }
    }

    fn not_served_delay(&mut self) -> Duration {
        self.report.is_not_served();
        self.backoff.failed()
    }

    /// It is sure that the kind is not served: nothing of it exists any more.
    async fn vanished(&mut self, syncing: Syncing, delay: Duration) -> StateOf<D> {
        if syncing.known != Known::NotServed {
            let kind = &self.collection.kind;
            tracing::info!(kind, "the kind is not served; looking for it now and then");
        }
        if syncing.known == Known::State {
            let nothing = Delta::Replaced { objects: vec![], skipped: vec![], version: None };
            if self.deltas.push(nothing).await.is_err() {
                return State::Done;
            }
        }
        tokio::time::sleep(delay).await;
        State::Sync(Syncing { known: Known::NotServed, ..syncing })
    }

    /// Delivers a whole state.
    pub(super) async fn replace(
        &mut self,
        known: Known,
        gathered: Gathered<D::Output>,
        version: &str,
        next: StateOf<D>,
    ) -> StateOf<D> {
        match known {
            Known::Nothing => {}
            Known::State => self.report.count(|tally| &tally.relists),
            Known::NotServed => tracing::info!(kind = self.collection.kind, "the kind is served"),
        }
        self.report.recovered();
        self.rereads.replaced(gathered.skipped());
        self.deliver(gathered.into_delta(version), next).await
    }

    pub(super) async fn deliver(
        &mut self,
        delta: Delta<D::Output>,
        next: StateOf<D>,
    ) -> StateOf<D> {
        match self.deltas.push(delta).await {
            Ok(()) => next,
            Err(_) => State::Done,
        }
    }

    /// Notes that the stream gave an event or a bookmark.
    pub(super) fn received(&self, stream: &WatchStream) {
        self.report.received(stream.received);
        self.report.count(|tally| &tally.events);
    }

    /// Decodes one object, or reports it and gives its identity.
    pub(super) fn decode(&mut self, json: &str) -> Result<D::Output, Identity> {
        self.decode_by(D::decode, json)
    }

    /// Decodes an object that was added or changed after the state was delivered.
    pub(super) fn decode_change(&mut self, json: &str) -> Result<D::Output, Identity> {
        self.decode_by(D::decode_change, json)
    }

    /// Tries to decode what is probably an object; says nothing if it is not.
    pub(super) fn try_decode(&mut self, decode: DecodeBy<D>, json: &str) -> Option<D::Output> {
        let decoder = &mut self.decoder;
        let decoded = guarded(|| decode(decoder, json).ok().filter(Keyed::has_name));
        decoded.ok().flatten()
    }

    fn decode_by(&mut self, decode: DecodeBy<D>, json: &str) -> Result<D::Output, Identity> {
        let decoder = &mut self.decoder;
        let decoded = guarded(|| match decode(decoder, json) {
            Ok(object) if object.has_name() => Ok(object),
            Ok(_) => Err("it has no name".to_owned()),
            Err(error) => Err(error.to_string()),
        });
        let decoded = decoded.unwrap_or_else(|panic| Err(format!("decoding panicked: {panic}")));
        decoded.map_err(|error| self.report_undecodable(json, error))
    }

    /// Reports an object that cannot be decoded and gives its identity.
    fn report_undecodable(&self, json: &str, error: String) -> Identity {
        let identity = Identity::of(json);
        self.report.count(|tally| &tally.undecodable);
        let kind = self.collection.kind.clone();
        let undecodable = Undecodable { kind, key: identity.key(), error };
        let Undecodable { kind, key, error } = &undecodable;
        tracing::error!(kind, ?key, error, "object cannot be decoded and is skipped");
        if let Some(hook) = &self.options.on_undecodable
            && let Err(panic) = guarded(|| hook(&undecodable))
        {
            tracing::error!(kind, panic, "the hook for undecodable objects panicked");
        }
        identity
    }

    /// Waits before the next try: longer each time, and not less than the server wishes.
    pub(super) async fn pause(&mut self, what: &'static str, trouble: &Trouble) {
        let delay = self.backoff.failed().max(trouble.after());
        let why = trouble.why();
        let kind = &self.collection.kind;
        if self.backoff.failed_once() {
            // Servers restart and stop; that alone need not worry anybody.
            tracing::info!(kind, what, why, ?delay, "backing off");
            self.told = None;
        } else if self.told.as_deref() == Some(why) {
            // What is broken for hours is told once.
            tracing::debug!(kind, what, why, ?delay, "backing off");
        } else {
            tracing::warn!(kind, what, why, ?delay, "backing off");
            self.told = Some(why.to_owned());
        }
        self.report.backs_off(why);
        tokio::time::sleep(delay).await;
    }
}

/// Moves on to a version, never back where the two can be compared.
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
