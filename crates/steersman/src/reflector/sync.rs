//! Reading the whole state: as a stream where the server can, as a list where it cannot.

use std::time::Duration;

use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use super::Reflector;
use super::decode::Decode;
use super::gathered::Gathered;
use super::machine::{Following, State, StateOf, Syncing, is_older};
use super::status::Phase;
use super::trouble::Trouble;
use super::wire::{Event, Identity, ListOptions, Page, Received, WatchStream};

/// A stream that is silent for so long before its state is complete will never complete it.
const STREAM_SILENCE: Duration = Duration::from_secs(10);
/// Streams that may break before a list is tried.
const STREAM_TRIES: u32 = 3;
/// How often a page is asked for again before the whole list is.
const PAGE_TRIES: u32 = 5;

impl<D: Decode> Reflector<D> {
    pub(super) fn may_stream(&self, syncing: &Syncing) -> bool {
        self.options.streaming
            && !self.server.refuses_streams
            && syncing.broken_streams < STREAM_TRIES
    }

    pub(super) async fn open_stream(&mut self, syncing: Syncing) -> StateOf<D> {
        self.report.enter(Phase::Streaming);
        self.report.count(|tally| &tally.streams);
        let from = syncing.not_older_than.as_deref().unwrap_or_default();
        match self.collection.watch(from, true, self.watch_timeout()).await {
            Ok(stream) => {
                self.server.direct = stream.direct;
                let syncing = Syncing { not_served: 0, ..syncing };
                State::Streaming { syncing, gathered: Gathered::new(), stream }
            }
            Err(trouble) => self.stream_failed(trouble, syncing).await,
        }
    }

    /// Takes one event of the state.
    pub(super) async fn gather(
        &mut self,
        syncing: Syncing,
        mut gathered: Gathered<D::Output>,
        mut stream: WatchStream,
    ) -> StateOf<D> {
        let line = match stream.next(stream.received + STREAM_SILENCE).await {
            Received::Line(line) => line,
            Received::Ended => {
                let trouble = Trouble::busy("the stream ended before the state was complete");
                return self.stream_failed(trouble, syncing).await;
            }
            Received::Broken(why) => return self.stream_failed(Trouble::busy(why), syncing).await,
            Received::Silence => {
                let trouble = Trouble::Refused("the end of the state does not come".to_owned());
                return self.stream_failed(trouble, syncing).await;
            }
        };
        self.received(&stream);
        consume_budget().await; // a server that never pauses must not keep others from running
        if let Some(Event::Added(json)) = Event::guess(&line)
            && let Some(object) = self.try_decode(D::decode, json)
        {
            gathered.add(object);
            return State::Streaming { syncing, gathered, stream };
        }
        match Event::parse(&line) {
            Ok(Event::Bookmark { version: Some(version), initial_end: true }) => {
                self.complete_stream(syncing, gathered, stream, version).await
            }
            // Whoever knows what a streaming list is marks its end before anything else.
            Ok(Event::Bookmark { .. }) => {
                let trouble =
                    Trouble::Refused("a bookmark came before the end of the state".into());
                self.stream_failed(trouble, syncing).await
            }
            Ok(Event::Error(trouble)) => self.stream_failed(trouble, syncing).await,
            Ok(event) if self.put_aside(&mut gathered, &event) => {
                State::Streaming { syncing, gathered, stream }
            }
            Ok(_) => {
                let trouble = Trouble::busy("a deletion does not say of what");
                self.stream_failed(trouble, syncing).await
            }
            Err(why) => self.stream_failed(Trouble::busy(why), syncing).await,
        }
    }

    /// Puts an object of an unfinished state aside. False if the event cannot be understood and
    /// cannot be skipped either.
    fn put_aside(&mut self, gathered: &mut Gathered<D::Output>, event: &Event<'_>) -> bool {
        match event {
            Event::Added(json) => match self.decode(json) {
                Ok(object) => gathered.add(object),
                Err(identity) => identity.key().into_iter().for_each(|key| gathered.skip(key)),
            },
            Event::Modified(json) => match self.decode(json) {
                Ok(object) => gathered.change(object),
                Err(identity) => identity.key().into_iter().for_each(|key| gathered.skip(key)),
            },
            Event::Deleted(json) => match json.and_then(|json| Identity::of(json).key()) {
                Some(key) => gathered.remove(&key),
                None => return false,
            },
            Event::Bookmark { .. } | Event::Error(_) => {}
        }
        true
    }

    async fn complete_stream(
        &mut self,
        syncing: Syncing,
        gathered: Gathered<D::Output>,
        mut stream: WatchStream,
        version: String,
    ) -> StateOf<D> {
        if is_older(&version, syncing.not_older_than.as_deref()) {
            return State::Sync(syncing.at_latest());
        }
        stream.becomes_a_watch();
        self.report.enter(Phase::Watching);
        self.report.count(|tally| &tally.watches);
        let following = Following::from_state(version.clone());
        let next = State::Watching { following, stream };
        self.replace(syncing.known, gathered, &version, next).await
    }

    /// Decides how to go on after a stream that gave no whole state.
    async fn stream_failed(&mut self, trouble: Trouble, mut syncing: Syncing) -> StateOf<D> {
        let kind = &self.collection.kind;
        if trouble != Trouble::NotServed {
            syncing.not_served = 0;
        }
        match &trouble {
            Trouble::Refused(why) => {
                tracing::warn!(kind, why, "the server does not stream lists; listing instead");
                self.server.refuses_streams = true;
                return State::Sync(syncing);
            }
            // Whoever may not watch may still list.
            Trouble::Failed(why) => {
                tracing::warn!(kind, why, "streaming list failed; listing instead");
                syncing.broken_streams = STREAM_TRIES;
                return State::Sync(syncing);
            }
            Trouble::Busy { .. } | Trouble::NoAnswer | Trouble::Expired => {
                syncing.broken_streams += 1;
            }
            Trouble::NotServed => {}
        }
        self.sync_failed("streaming list failed", &trouble, syncing).await
    }

    pub(super) async fn list(&mut self, mut syncing: Syncing) -> StateOf<D> {
        self.report.enter(Phase::Listing);
        self.report.count(|tally| &tally.lists);
        match self.read_list(&mut syncing).await {
            // A server that gives an older state than asked for does not know what we know.
            Ok((_, version)) if is_older(&version, syncing.not_older_than.as_deref()) => {
                self.sync_failed("list failed", &Trouble::Expired, syncing).await
            }
            Ok((gathered, version)) => {
                let next = State::watch(Following::from_state(version.clone()));
                self.replace(syncing.known, gathered, &version, next).await
            }
            Err(trouble) => self.sync_failed("list failed", &trouble, syncing).await,
        }
    }

    /// Reads every page. A continue token that expires on the way is answered by one list
    /// without pages: restarting the pages could expire for ever. A list that must not be older
    /// than something is read in one piece, since servers answer that from memory.
    async fn read_list(
        &mut self,
        syncing: &mut Syncing,
    ) -> Result<(Gathered<D::Output>, String), Trouble> {
        let mut gathered = Gathered::new();
        let not_older_than = syncing.not_older_than.as_deref();
        let limit = if not_older_than.is_some() { 0 } else { self.options.page_size };
        let first = ListOptions { limit, token: None, not_older_than };
        let (version, next) = self.read_page(first, &mut gathered).await?;
        syncing.not_served = 0;
        match self.read_on(limit, next, &mut gathered).await {
            Ok(()) => return Ok((gathered, version)),
            Err(Trouble::Expired) => {}
            Err(trouble) => return Err(trouble),
        }
        let mut gathered = Gathered::new();
        let (version, next) = self.read_page(ListOptions::default(), &mut gathered).await?;
        // Some servers give pages to who did not ask for them.
        self.read_on(0, next, &mut gathered).await?;
        Ok((gathered, version))
    }

    /// Reads the pages that follow one.
    async fn read_on(
        &mut self,
        limit: u32,
        mut next: Option<String>,
        gathered: &mut Gathered<D::Output>,
    ) -> Result<(), Trouble> {
        while let Some(token) = next {
            let page = ListOptions { limit, token: Some(&token), not_older_than: None };
            (_, next) = self.read_page(page, gathered).await?;
        }
        Ok(())
    }

    /// Reads one page, again if the server was busy; gives its version and the next one's token.
    async fn read_page(
        &mut self,
        options: ListOptions<'_>,
        gathered: &mut Gathered<D::Output>,
    ) -> Result<(String, Option<String>), Trouble> {
        let mut tries = 0;
        let text = loop {
            tries += 1;
            match self.collection.list(options).await {
                Ok(text) => break text,
                // The first page is no worse than a new list.
                Err(trouble @ Trouble::Busy { .. })
                    if options.token.is_some() && tries < PAGE_TRIES =>
                {
                    self.pause("page failed", &trouble).await;
                }
                Err(trouble) => return Err(trouble),
            }
        };
        self.report.received(Instant::now());
        let page: Page<'_> =
            serde_json::from_slice(&text).map_err(|error| Trouble::busy(error.to_string()))?;
        for raw in page.items {
            consume_budget().await;
            match self.decode(raw.get()) {
                Ok(object) => gathered.add(object),
                Err(identity) => identity.key().into_iter().for_each(|key| gathered.skip(key)),
            }
        }
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        Ok((page.metadata.resource_version.unwrap_or_default(), next))
    }

    /// Decides how to go on after the state could not be read.
    async fn sync_failed(
        &mut self,
        what: &'static str,
        trouble: &Trouble,
        syncing: Syncing,
    ) -> StateOf<D> {
        if *trouble == Trouble::NotServed {
            return self.sync_not_served(syncing).await;
        }
        self.pause(what, trouble).await;
        let syncing = Syncing { not_served: 0, ..syncing };
        match trouble {
            // The version we insisted on is unknown to this server: ask for its latest.
            Trouble::Expired | Trouble::NoAnswer => State::Sync(syncing.at_latest()),
            _ => State::Sync(syncing),
        }
    }
}
