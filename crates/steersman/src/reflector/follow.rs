//! Following the changes: a watch from a version, resumed where it ended.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::decode::{Decode, Keyed};
use super::machine::{State, StateOf, WATCH_MIN, advance};
use super::status::Phase;
use super::trouble::Trouble;
use super::wire::{Event, Heard, WatchStream};
use super::{Delta, Reflector};
use crate::object::version_of;
use crate::random;

/// A watch that ends sooner than this is treated as a failure.
const WATCH_TOO_SHORT: Duration = Duration::from_secs(1);
/// How much longer than asked a watch may stay silent before it is taken for dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A silence of a watch that is worth a warning: servers send a bookmark every minute.
const STALLED_AFTER: Duration = Duration::from_secs(180);
/// Watches in a row that may fall silent on a server that sends bookmarks before the state is
/// read anew.
const SILENT_MAX: u32 = 2;
/// Events that cannot be read at all, in a row, before the state is read anew.
const UNREADABLE_MAX: u32 = 3;

impl<D: Decode> Reflector<D> {
    pub(super) async fn start_watch(&mut self, version: String) -> StateOf<D> {
        self.report.count(|tally| &tally.watches);
        let timeout = random::jitter(WATCH_MIN, 1.0);
        match self.collection.watch(&version, false, timeout).await {
            Ok(stream) => {
                self.memory.not_served = 0;
                let silent = self.memory.silence_reported;
                self.report.enter(if silent { Phase::Stalled } else { Phase::Watching });
                State::Watching { version, stream }
            }
            Err(Trouble::NotServed) => self.not_served(State::Watch { version }).await,
            Err(trouble) => self.watch_failed("watch failed", &trouble, version).await,
        }
    }

    /// Decides how to go on after a watch that could not begin or broke. The same is only asked
    /// again of a server that may answer it later.
    async fn watch_failed(
        &mut self,
        what: &'static str,
        trouble: &Trouble,
        version: String,
    ) -> StateOf<D> {
        // A server that forgets faster than we list would otherwise keep us listing.
        self.pause(what, trouble).await;
        match trouble {
            Trouble::Busy { .. } | Trouble::NotServed => State::Watch { version },
            _ => self.sync_after(version),
        }
    }

    /// Reads the state anew, not older than `version`. If that is the version of a state that was
    /// read just now, another one not older than it could be as useless: then it is the latest.
    fn sync_after(&self, version: String) -> StateOf<D> {
        let stale = self.memory.synced_at.as_ref() == Some(&version);
        State::Sync { not_older_than: (!stale).then_some(version) }
    }

    /// Takes one event of a watch.
    pub(super) async fn follow(&mut self, version: String, mut stream: WatchStream) -> StateOf<D> {
        let line = match stream.next(next_doubt(&stream)).await {
            Heard::Line(line) => line,
            Heard::Ended => return self.watch_ended(version, stream.opened, None).await,
            Heard::Broken(why) => {
                return self.watch_ended(version, stream.opened, Some(Trouble::busy(why))).await;
            }
            Heard::Silence => return self.doubt(version, stream).await,
        };
        self.heard(&stream);
        consume_budget().await; // a server that never pauses must not keep others from running
        match Event::parse(&line) {
            Ok(event) => {
                self.memory.unreadable = 0;
                self.take(event, version, stream).await
            }
            Err(_) if self.memory.unreadable + 1 >= UNREADABLE_MAX => {
                self.memory.unreadable = 0;
                State::Sync { not_older_than: None }
            }
            Err(why) => {
                self.memory.unreadable += 1;
                self.watch_ended(version, stream.opened, Some(Trouble::busy(why))).await
            }
        }
    }

    /// Tells what an event of a watch says.
    async fn take(
        &mut self,
        event: Event<'_>,
        mut version: String,
        stream: WatchStream,
    ) -> StateOf<D> {
        let delta = match event {
            Event::Added(raw) | Event::Modified(raw) => match self.decode_change(raw) {
                Ok(object) => {
                    advance(&mut version, object.resource_version());
                    Delta::Applied(object)
                }
                Err(identity) => {
                    advance(&mut version, identity.resource_version.as_deref());
                    Delta::Bookmark { version: version_of(Some(&version)) }
                }
            },
            Event::Deleted(raw) => match self.deletion(raw, &mut version) {
                Some(delta) => delta,
                // It cannot be skipped, or the object would stay for ever; and only the latest
                // state is sure to be without it.
                None => return State::Sync { not_older_than: None },
            },
            Event::Bookmark { version: mark, .. } => {
                self.memory.bookmarks = true;
                advance(&mut version, mark.as_deref());
                Delta::Bookmark { version: version_of(Some(&version)) }
            }
            Event::Error(trouble) => {
                return self.watch_ended(version, stream.opened, Some(trouble)).await;
            }
        };
        self.tell(delta, State::Watching { version, stream }).await
    }

    fn deletion(
        &mut self,
        raw: Option<&RawValue>,
        version: &mut String,
    ) -> Option<Delta<D::Output>> {
        match self.decode(raw?) {
            Ok(object) => {
                advance(version, object.resource_version());
                Some(Delta::Deleted(object))
            }
            Err(identity) => {
                let key = identity.key()?;
                advance(version, identity.resource_version.as_deref());
                let version = version_of(identity.resource_version.as_deref());
                Some(Delta::DeletedKey { key, version })
            }
        }
    }

    /// Nothing was heard for long. A watch that should have ended is dead; before that, silence
    /// is odd, and on a server that sends bookmarks a reason to watch anew.
    async fn doubt(&mut self, version: String, mut stream: WatchStream) -> StateOf<D> {
        if Instant::now() >= dead_at(&stream) {
            let trouble = Trouble::busy("nothing heard for longer than the watch should last");
            return self.watch_ended(version, stream.opened, Some(trouble)).await;
        }
        if !self.memory.silence_reported {
            let silence = stream.heard.elapsed();
            tracing::warn!(kind = self.collection.kind, ?silence, "nothing heard from the watch");
            self.memory.silence_reported = true;
        }
        self.report.enter(Phase::Stalled);
        if self.memory.bookmarks {
            return self.watch_anew(version);
        }
        stream.stalled = true;
        State::Watching { version, stream }
    }

    /// Leaves a silent watch for another one; if that was one already, for a new state, which
    /// shows whether the server knows this version at all.
    fn watch_anew(&mut self, version: String) -> StateOf<D> {
        self.memory.silent_watches += 1;
        if self.memory.silent_watches < SILENT_MAX {
            return State::Watch { version };
        }
        self.memory.silent_watches = 0;
        State::Sync { not_older_than: None }
    }

    /// Decides how to go on after a watch has ended. One that ended at once is a failure,
    /// whatever it said: otherwise a server could keep us asking without pause.
    async fn watch_ended(
        &mut self,
        version: String,
        since: Instant,
        trouble: Option<Trouble>,
    ) -> StateOf<D> {
        let lasted = since.elapsed() >= WATCH_TOO_SHORT;
        if lasted {
            self.backoff.succeeded();
            self.report.recovered();
        }
        match trouble {
            None if lasted => State::Watch { version },
            None => {
                self.pause("watch ended at once", &Trouble::busy("the watch ended at once")).await;
                State::Watch { version }
            }
            Some(Trouble::Expired) => {
                if !lasted {
                    self.pause("watch ended at once", &Trouble::Expired).await;
                }
                self.sync_after(version)
            }
            Some(trouble) => self.watch_failed("watch broke", &trouble, version).await,
        }
    }
}

/// When the silence of a watch is to be looked at.
fn next_doubt(stream: &WatchStream) -> Instant {
    let dead = dead_at(stream);
    if stream.stalled { dead } else { dead.min(stream.heard + STALLED_AFTER) }
}

/// When a watch that stays silent is certainly dead.
fn dead_at(stream: &WatchStream) -> Instant {
    (stream.opened + stream.timeout).max(stream.heard) + WATCH_GRACE
}
