//! Following the changes: a watch from a version, resumed where it ended, or followed by a relist if
//! that version has expired.

use std::time::Duration;

use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::decode::{Decode, Keyed};
use super::machine::{Following, Silence, State, StateOf, advance};
use super::status::Phase;
use super::trouble::Trouble;
use super::wire::{Event, Received, WatchStream};
use super::{Delta, Reflector};
use crate::object::version_of;

/// A watch that ends sooner than this is treated as a failure.
const WATCH_TOO_SHORT: Duration = Duration::from_secs(1);
/// How much longer than asked a watch may stay silent before it is taken for dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A silence of a watch that is worth a warning: servers send a bookmark every minute.
const STALLED_AFTER: Duration = Duration::from_secs(180);
/// Watches in a row that may fall silent on a server that sends bookmarks before a relist.
const SILENT_MAX: u32 = 2;
/// Events that cannot be read at all, in a row, before a relist.
const UNREADABLE_MAX: u32 = 3;

impl<D: Decode> Reflector<D> {
    pub(super) async fn start_watch(
        &mut self,
        following: Following,
        not_served: u32,
    ) -> StateOf<D> {
        self.report.count(|tally| &tally.watches);
        match self.collection.watch(&following.version, false, self.watch_timeout()).await {
            Ok(stream) => {
                self.server.direct = stream.direct;
                self.report.enter(match following.silence {
                    Silence::None => Phase::Watching,
                    Silence::Reported { .. } => Phase::Stalled,
                });
                State::Watching { following, stream }
            }
            Err(Trouble::NotServed) => self.watch_not_served(following, not_served).await,
            Err(trouble) => self.watch_failed("watch failed", &trouble, following).await,
        }
    }

    /// Decides how to go on after a watch that could not begin or broke. The same is only asked
    /// again of a server that may answer it later.
    async fn watch_failed(
        &mut self,
        what: &'static str,
        trouble: &Trouble,
        following: Following,
    ) -> StateOf<D> {
        // A server that forgets faster than we list would otherwise keep us listing.
        self.pause(what, trouble).await;
        match trouble {
            Trouble::Busy { .. } | Trouble::NotServed => State::watch(following),
            // Expired, above all.
            _ => State::Sync(following.relist_not_older()),
        }
    }

    /// Takes one event of a watch.
    pub(super) async fn follow(
        &mut self,
        mut following: Following,
        mut stream: WatchStream,
    ) -> StateOf<D> {
        let received = tokio::select! {
            biased;
            received = stream.next(next_doubt(&stream)) => received,
            reread = self.rereads.next() => return self.reread(reread, following, stream).await,
        };
        let line = match received {
            Received::Line(line) => line,
            Received::Ended => return self.watch_ended(following, stream.opened, None).await,
            Received::Broken(why) => {
                return self.watch_ended(following, stream.opened, Some(Trouble::busy(why))).await;
            }
            Received::Silence => return self.doubt(following, stream).await,
        };
        self.received(&stream);
        if following.silence != Silence::None {
            following.silence = Silence::None;
            self.report.silence_is_over();
        }
        consume_budget().await; // a server that never pauses must not keep others from running
        if let Some(Event::Added(json) | Event::Modified(json)) = Event::guess(&line)
            && let Some(object) = self.try_decode(D::decode_change, json)
        {
            following.unreadable = 0;
            advance(&mut following.version, object.resource_version());
            let next = State::Watching { following, stream };
            return self.deliver(Delta::Applied(object), next).await;
        }
        match Event::parse(&line) {
            Ok(event) => {
                following.unreadable = 0;
                self.take(event, following, stream).await
            }
            Err(_) if following.unreadable + 1 >= UNREADABLE_MAX => State::Sync(following.relist()),
            Err(why) => {
                following.unreadable += 1;
                self.watch_ended(following, stream.opened, Some(Trouble::busy(why))).await
            }
        }
    }

    /// Delivers what an event of a watch says.
    async fn take(
        &mut self,
        event: Event<'_>,
        mut following: Following,
        stream: WatchStream,
    ) -> StateOf<D> {
        let version = &mut following.version;
        let delta = match event {
            Event::Added(json) | Event::Modified(json) => match self.decode_change(json) {
                Ok(object) => {
                    advance(version, object.resource_version());
                    Delta::Applied(object)
                }
                Err(identity) => {
                    advance(version, identity.resource_version.as_deref());
                    if let Some(key) = identity.key() {
                        self.rereads.undecodable(&key);
                    }
                    Delta::Bookmark { version: version_of(Some(version)) }
                }
            },
            Event::Deleted(json) => match self.deletion(json, version) {
                Some(delta) => delta,
                // It cannot be skipped, or the object would stay for ever; and only the latest
                // state is sure to be without it.
                None => return State::Sync(following.relist()),
            },
            Event::Bookmark { version: mark, .. } => {
                self.server.sends_bookmarks = true;
                advance(version, mark.as_deref());
                Delta::Bookmark { version: version_of(Some(version)) }
            }
            Event::Error(trouble) => {
                return self.watch_ended(following, stream.opened, Some(trouble)).await;
            }
        };
        self.deliver(delta, State::Watching { following, stream }).await
    }

    fn deletion(&mut self, json: Option<&str>, version: &mut String) -> Option<Delta<D::Output>> {
        match self.decode(json?) {
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

    /// The watch has been silent for long. One that should have ended is dead; before that,
    /// silence is odd, and on a server that sends bookmarks a reason to watch anew.
    async fn doubt(&mut self, mut following: Following, mut stream: WatchStream) -> StateOf<D> {
        if Instant::now() >= dead_at(&stream) {
            let trouble = Trouble::busy("nothing received for longer than the watch should last");
            return self.watch_ended(following, stream.opened, Some(trouble)).await;
        }
        let watches = match following.silence {
            Silence::Reported { watches } => watches,
            Silence::None => {
                let silence = stream.received.elapsed();
                tracing::warn!(
                    kind = self.collection.kind,
                    ?silence,
                    "watch is stalled: no event, no bookmark"
                );
                0
            }
        };
        self.report.enter(Phase::Stalled);
        if !self.server.sends_bookmarks {
            following.silence = Silence::Reported { watches };
            stream.stalled = true;
            return State::Watching { following, stream };
        }
        // If this watch was already one that replaced a silent one, a relist shows whether the
        // server knows this version at all.
        let watches = watches + 1;
        if watches >= SILENT_MAX {
            return State::Sync(following.relist());
        }
        following.silence = Silence::Reported { watches };
        State::watch(following)
    }

    /// Decides how to go on after a watch has ended. One that ended at once is a failure,
    /// whatever it said: otherwise a server could keep us asking without pause.
    async fn watch_ended(
        &mut self,
        following: Following,
        since: Instant,
        trouble: Option<Trouble>,
    ) -> StateOf<D> {
        let lasted = since.elapsed() >= WATCH_TOO_SHORT;
        if lasted {
            self.backoff.succeeded();
            self.report.recovered();
        }
        match trouble {
            None if lasted => State::watch(following),
            None => {
                self.pause("watch ended at once", &Trouble::busy("the watch ended at once")).await;
                State::watch(following)
            }
            Some(Trouble::Expired) => {
                if !lasted {
                    self.pause("watch ended at once", &Trouble::Expired).await;
                }
                let Following { version, .. } = &following;
                tracing::debug!(kind = self.collection.kind, version, "watch expired, relist");
                State::Sync(following.relist_not_older())
            }
            Some(trouble) => self.watch_failed("watch broke", &trouble, following).await,
        }
    }
}

/// When the silence of a watch is to be looked at.
fn next_doubt(stream: &WatchStream) -> Instant {
    let dead = dead_at(stream);
    if stream.stalled { dead } else { dead.min(stream.received + STALLED_AFTER) }
}

/// When a watch that stays silent is certainly dead.
fn dead_at(stream: &WatchStream) -> Instant {
    (stream.opened + stream.timeout).max(stream.received) + WATCH_GRACE
}
