//! Watch of what is [computed](Computed): it is looked at again and again, and what differs from the
//! last look is told. Without versions, every watch begins with the state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream;
use serde_json::Value;
use steersman_rules::resource::Place;
use steersman_rules::selector::Selector;
use steersman_store::Revision;

use super::frames::Frames;
use super::options::ListOptions;
use super::watch;
use crate::call::Call;
use crate::document::Stored;
use crate::negotiate::Shape;
use crate::reply::Reply;
use crate::state::events::EventType;
use crate::state::extended::{Computed, Reading};
use crate::status::Result;
use crate::user::User;

/// Answers with a stream of events.
pub(crate) async fn watch(
    call: &Call,
    computed: &Arc<dyn Computed>,
    period: Duration,
) -> Result<Reply> {
    let options = ListOptions::of_watch(call)?;
    let lasts = watch::lasts(call, &options);
    let shutdown = call.server.shutdown.clone();
    let ends = async move {
        let _ = tokio::time::timeout(lasts, shutdown.cancelled_owned()).await;
    };
    let mut polling = Polling {
        computed: Arc::clone(computed),
        period,
        user: Arc::clone(&call.user),
        namespace: call.namespace().to_owned(),
        labels: call.info.query.get("labelSelector").unwrap_or("").to_owned(),
        selector: options.selector.clone(),
        in_table: call.output.shape == Shape::Table,
        frames: Frames::of(call)?,
        known: BTreeMap::new(),
        told: Vec::new(),
        ends: ends.boxed(),
        over: false,
    };
    // What goes wrong at once is the answer.
    let mut state = Vec::new();
    polling.look(&mut state).await?;
    if options.bookmarks && options.initial_events == Some(true) {
        polling.frames.bookmark(&mut state, Revision(0), true);
    }
    polling.told = state;
    let steps = stream::unfold(polling, |mut polling| async move {
        polling.step().await.map(|chunk| (chunk, polling))
    });
    Ok(watch::events(steps))
}

/// A running watch.
struct Polling {
    computed: Arc<dyn Computed>,
    /// How long it is waited between two looks.
    period: Duration,
    user: Arc<User>,
    namespace: String,
    labels: String,
    selector: Selector,
    in_table: bool,
    frames: Frames,
    /// What was there at the last look, by its key.
    known: BTreeMap<String, Stored>,
    /// Events that are not sent yet.
    told: Vec<u8>,
    /// Ready when the server stops, or the watch has lasted as long as it may.
    ends: BoxFuture<'static, ()>,
    /// Whether nothing follows what is not sent yet.
    over: bool,
}

impl Polling {
    /// The next chunk; `None` ends the stream.
    async fn step(&mut self) -> Option<Bytes> {
        loop {
            if !self.told.is_empty() {
                return Some(std::mem::take(&mut self.told).into());
            }
            if self.over {
                return None;
            }
            tokio::select! {
                biased;
                () = &mut self.ends => return None,
                () = tokio::time::sleep(self.period) => {}
            }
            let mut events = Vec::new();
            if let Err(status) = self.look(&mut events).await {
                self.frames.error(&mut events, &status);
                self.over = true;
            }
            self.told = events;
        }
    }

    /// Looks, and appends what differs from the last look.
    async fn look(&mut self, events: &mut Vec<u8>) -> Result<()> {
        let reading =
            Reading { user: &self.user, namespace: &self.namespace, label_selector: &self.labels };
        let found = self.computed.list(reading).await?;
        let mut gone = std::mem::take(&mut self.known);
        for object in found {
            let (key, object) = self.stored(object)?;
            if !self.selector.matches(self.frames.resource(), &key, &object.bytes) {
                continue;
            }
            match gone.remove(&key) {
                None => self.frames.event(events, EventType::Added, &object),
                Some(known) if known.bytes == object.bytes => {}
                Some(_) => self.frames.event(events, EventType::Modified, &object),
            }
            self.known.insert(key, object);
        }
        gone.values().for_each(|object| self.frames.event(events, EventType::Deleted, object));
        Ok(())
    }

    /// An object with what would be its key.
    fn stored(&self, object: Value) -> Result<(String, Stored)> {
        let object = if self.in_table { self.computed.in_table(object) } else { object };
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or("");
        let place = Place { namespace: text("namespace"), name: text("name") };
        let key = self.frames.resource().key(place);
        Ok((key, Stored::unwritten(&object)?))
    }
}
