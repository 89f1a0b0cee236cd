//! Spoils watches, event by event.
//!
//! The body is read as lines, one event each. Before the first line and at every line the dice
//! decide what becomes of it. Lines are never reordered, and none is left out of a watch that
//! goes on, bookmarks excepted.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tower::BoxError;

use super::body::AnswerBody;
use super::{Fault, Faults, list, refusal};

/// What can happen to a watch before it says anything.
const AT_START: [Fault; 2] = [Fault::WatchEnded, Fault::WatchSilent];

/// What can happen at any event.
const AT_EVENT: [Fault; 6] = [
    Fault::ConnectionReset,
    Fault::ExpiredEvent,
    Fault::WatchSilent,
    Fault::WatchEnded,
    Fault::EventCut,
    Fault::EventTwice,
];

/// A watch whose events pass one by one.
struct Watch<B> {
    body: Pin<Box<B>>,
    /// What was read and is no whole line yet.
    rest: BytesMut,
    /// What goes out next.
    ready: VecDeque<Bytes>,
    state: State,
    faults: Faults,
}

/// How a watch goes on once everything that is ready has gone out.
enum State {
    /// Nothing was read yet.
    Starting,
    Reading,
    Ended,
    Reset,
    Silent,
}

/// The watch, spoiled.
pub(super) fn spoil<B>(body: B, faults: Faults) -> AnswerBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let watch = Watch {
        body: Box::pin(body),
        rest: BytesMut::new(),
        ready: VecDeque::new(),
        state: State::Starting,
        faults,
    };
    let frames = stream::unfold(watch, |mut watch| async {
        watch.next().await.map(|chunk| (chunk.map(Frame::data), watch))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl<B> Watch<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    /// The next chunk; `None` ends the stream.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            match self.state {
                State::Starting => {
                    let fault = self.faults.strike(&AT_START);
                    self.meet(fault, Bytes::new());
                }
                State::Reading => {
                    if let Err(error) = self.read().await {
                        self.state = State::Ended;
                        return Some(Err(error));
                    }
                }
                State::Ended => return None,
                State::Reset => {
                    self.state = State::Ended;
                    return Some(Err("connection reset".into()));
                }
                State::Silent => std::future::pending().await,
            }
        }
    }

    /// Takes the next line if there is one, or reads on.
    async fn read(&mut self) -> Result<(), BoxError> {
        if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line = self.rest.split_to(end + 1).freeze();
            self.pass(line);
            return Ok(());
        }
        match self.body.as_mut().frame().await {
            Some(frame) => {
                let data = frame.map_err(Into::into)?.into_data().unwrap_or_default();
                self.rest.extend_from_slice(&data);
            }
            None => {
                self.ready.push_back(self.rest.split().freeze());
                self.state = State::Ended;
            }
        }
        Ok(())
    }

    /// Decides what becomes of a line.
    fn pass(&mut self, line: Bytes) {
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let kind = Kind::of(&event);
        let missing = match kind {
            Kind::Bookmark => self.faults.strikes(Fault::BookmarkMissing),
            Kind::InitialEventsEnd => self.faults.strikes(Fault::InitialEventsEndMissing),
            Kind::Object | Kind::Other => false,
        };
        if missing {
            return;
        }
        match self.faults.strike(&AT_EVENT) {
            None if kind == Kind::Object && self.faults.strikes(Fault::Malformed) => {
                self.ready.push_back(self.malformed(event));
            }
            fault => self.meet(fault, line),
        }
    }

    /// Lets a fault happen to a line; without a fault, it goes out.
    fn meet(&mut self, fault: Option<Fault>, mut line: Bytes) {
        self.state = State::Reading;
        match fault {
            Some(Fault::ConnectionReset) => {
                line.truncate(self.faults.pick(0..=line.len().saturating_sub(1)));
                self.state = State::Reset;
            }
            Some(Fault::EventCut) => {
                line.truncate(line.len() / 2);
                self.state = State::Ended;
            }
            Some(Fault::ExpiredEvent) => {
                let event = json!({"type": "ERROR", "object": refusal::expired()});
                line = format!("{event}\n").into();
                self.state = State::Ended;
            }
            Some(Fault::WatchSilent) => {
                line.clear();
                self.state = State::Silent;
            }
            Some(Fault::WatchEnded) => {
                line.clear();
                self.state = State::Ended;
            }
            Some(Fault::EventTwice) => self.ready.push_back(line.clone()),
            _ => {}
        }
        if !line.is_empty() {
            self.ready.push_back(line);
        }
    }

    /// The line of this event, with its object malformed.
    fn malformed(&self, mut event: Value) -> Bytes {
        list::malform(&mut event["object"], &self.faults);
        format!("{event}\n").into()
    }
}

/// What an event tells of.
#[derive(PartialEq)]
enum Kind {
    /// A change of an object.
    Object,
    Bookmark,
    /// The bookmark behind the initial events of a streaming list.
    InitialEventsEnd,
    Other,
}

impl Kind {
    fn of(event: &Value) -> Self {
        let annotations = &event["object"]["metadata"]["annotations"];
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED" | "DELETED") => Self::Object,
            Some("BOOKMARK") if annotations["k8s.io/initial-events-end"] == "true" => {
                Self::InitialEventsEnd
            }
            Some("BOOKMARK") => Self::Bookmark,
            _ => Self::Other,
        }
    }
}
