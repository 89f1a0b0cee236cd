//! A small server with a history: it lists, streams and watches as a real one would, and fails
//! in every way in which a real one can.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

use super::script::{
    Answer, bookmark, end_of_state, event, expired, malformed, object, status, too_large,
};

/// How a server treats the wish for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Supported,
    Refused,
    Ignored,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    ConnectionRefused,
    InternalError,
    Busy,
    /// 403: the rights are being changed.
    Forbidden,
    /// 404 of something that stands before the server.
    NoRoute,
    /// 410 as an answer, wherever a real server may give it.
    Expired,
    /// 410 as an event, for a watch.
    ExpiredEvent,
    /// The body ends in the middle.
    Cut,
}

/// How all running watches end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Properly.
    End,
    /// With a reset connection.
    Reset,
    /// In the middle of an event.
    MidEvent,
    /// With an ERROR event that says 410.
    Expired,
    /// Not at all: nothing ever comes again.
    Silence,
}

/// An object as it is at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) version: u64,
    pub(super) malformed: bool,
}

pub(super) type Objects = BTreeMap<String, Object>;

/// A change: what the object became, and what it was before.
#[derive(Clone, Debug)]
struct Change {
    revision: u64,
    name: String,
    before: Option<Object>,
    after: Option<Object>,
}

struct Inner {
    objects: Objects,
    history: Vec<Change>,
    revision: u64,
    /// Watches can begin no earlier than here.
    compacted: u64,
    served: bool,
    streaming: Streaming,
    sends_bookmarks: bool,
    faults: VecDeque<Fault>,
    /// How the running watches of each generation ended.
    cuts: Vec<Cut>,
    /// The lists whose further pages can still be read.
    pages: BTreeMap<u64, Vec<Value>>,
    next_page: u64,
}

/// The server; clones are the same one.
#[derive(Clone)]
pub(super) struct Server {
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<()>,
}

impl Server {
    pub(super) fn new(streaming: Streaming, sends_bookmarks: bool) -> Self {
        let inner = Inner {
            objects: Objects::new(),
            history: Vec::new(),
            revision: 1,
            compacted: 0,
            served: true,
            streaming,
            sends_bookmarks,
            faults: VecDeque::new(),
            cuts: Vec::new(),
            pages: BTreeMap::new(),
            next_page: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)), changed: watch::Sender::new(()) }
    }

    pub(super) fn objects(&self) -> Objects {
        self.lock().objects.clone()
    }

    pub(super) fn set(&self, name: &str, malformed: bool) {
        self.lock().change(name, Some(malformed));
        self.changed.send_replace(());
    }

    pub(super) fn delete(&self, name: &str) {
        self.lock().change(name, None);
        self.changed.send_replace(());
    }

    /// Forgets history, and the lists whose pages are still being read.
    pub(super) fn compact(&self) {
        let mut inner = self.lock();
        inner.compacted = inner.revision;
        inner.pages.clear();
        drop(inner);
        self.changed.send_replace(());
    }

    pub(super) fn cut_watches(&self, cut: Cut) {
        self.lock().cuts.push(cut);
        self.changed.send_replace(());
    }

    /// A kind that is not served has no objects, and its watches end.
    pub(super) fn serve(&self, served: bool) {
        let mut inner = self.lock();
        if inner.served && !served {
            inner.cuts.push(Cut::End);
            let names: Vec<String> = inner.objects.keys().cloned().collect();
            names.iter().for_each(|name| inner.change(name, None));
        }
        inner.served = served;
        drop(inner);
        self.changed.send_replace(());
    }

    pub(super) fn fail_next(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// Nothing fails any more.
    pub(super) fn heal(&self) {
        self.lock().faults.clear();
        self.serve(true);
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let answer = server.answer(request.uri());
            async move { answer.map(Answer::into_response) }
        });
        kube::Client::new(service, "default")
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn answer(&self, uri: &http::Uri) -> Result<Answer, BoxError> {
        let query = Query::of(uri);
        let mut inner = self.lock();
        let fault = inner.faults.pop_front();
        match fault {
            Some(Fault::ConnectionRefused) => {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
            }
            Some(Fault::InternalError) => {
                return Ok(Answer::new(500, &status(500, "InternalError")));
            }
            Some(Fault::Busy) => {
                let busy = status(429, "TooManyRequests");
                return Ok(Answer::new(429, &busy).retry_after(3));
            }
            Some(Fault::Forbidden) => return Ok(Answer::new(403, &status(403, "Forbidden"))),
            Some(Fault::NoRoute) => return Ok(Answer::text(404, "no route")),
            Some(Fault::Expired) if query.token.is_some() || query.version.is_some() => {
                return Ok(Answer::new(410, &expired()));
            }
            _ if !inner.served => return Ok(Answer::new(404, &status(404, "NotFound"))),
            _ => {}
        }
        if query.watch {
            return Ok(self.watch(&mut inner, &query, fault));
        }
        Ok(cut_body(inner.list(&query), fault == Some(Fault::Cut)))
    }

    fn watch(&self, inner: &mut Inner, query: &Query, fault: Option<Fault>) -> Answer {
        let known = query.version.unwrap_or(0);
        if known > inner.revision {
            return Answer::new(504, &too_large());
        }
        let streams = query.initial && inner.streaming == Streaming::Supported;
        if query.initial && inner.streaming == Streaming::Refused {
            return Answer::new(422, &status(422, "Invalid"));
        }
        let mut lines: VecDeque<String> = VecDeque::new();
        let mut position = known;
        if streams || query.version.is_none() {
            // A server may begin with an older state and tell what happened since.
            let stale = inner.compacted.max(known).max(1);
            position =
                if streams && inner.revision.is_multiple_of(2) { stale } else { inner.revision };
            lines.extend(
                inner.at(position).iter().map(|(name, o)| event("ADDED", &render(name, *o))),
            );
        } else if fault == Some(Fault::ExpiredEvent) || known < inner.compacted {
            lines.push_back(event("ERROR", &expired()));
        }
        let mut cursor = Cursor {
            server: self.clone(),
            changed: self.changed.subscribe(),
            lines,
            position,
            generation: inner.cuts.len(),
            deadline: Instant::now() + Duration::from_secs(query.timeout),
            bookmark_at: Instant::now() + Duration::from_secs(60),
            ended: false,
            cut_soon: fault == Some(Fault::Cut),
        };
        if streams {
            let rest = inner.since(position);
            cursor.lines.extend(rest.iter().map(render_change));
            cursor.position = inner.revision;
            cursor.lines.push_back(end_of_state(&inner.revision.to_string()));
        }
        let frames = stream::unfold(cursor, |mut cursor| async move {
            let piece = cursor.next().await?;
            Some((piece.map(|text| http_body::Frame::data(Bytes::from(text))), cursor))
        });
        Answer {
            code: 200,
            retry_after: None,
            body: StreamBody::new(frames.boxed()).boxed_unsync(),
        }
    }
}

impl Inner {
    fn change(&mut self, name: &str, to: Option<bool>) {
        let before = self.objects.get(name).copied();
        if before.is_none() && to.is_none() {
            return;
        }
        self.revision += 1;
        let after = to.map(|malformed| Object { version: self.revision, malformed });
        match after {
            Some(object) => self.objects.insert(name.to_owned(), object),
            None => self.objects.remove(name),
        };
        let change = Change { revision: self.revision, name: name.to_owned(), before, after };
        self.history.push(change);
    }

    /// The state at a revision.
    fn at(&self, revision: u64) -> Objects {
        let mut objects = Objects::new();
        for change in self.history.iter().take_while(|change| change.revision <= revision) {
            match change.after {
                Some(object) => objects.insert(change.name.clone(), object),
                None => objects.remove(&change.name),
            };
        }
        objects
    }

    fn since(&self, revision: u64) -> Vec<Change> {
        self.history.iter().filter(|change| change.revision > revision).cloned().collect()
    }

    fn list(&mut self, query: &Query) -> Answer {
        if query.version.is_some_and(|version| version > self.revision) {
            return Answer::new(504, &too_large());
        }
        let (revision, mut items) = match query.token.as_deref().map(parse_token) {
            Some((revision, page)) => match self.pages.remove(&page) {
                Some(items) => (revision, items),
                None => return Answer::new(410, &expired()),
            },
            None => {
                // Whoever accepts an older state may get one.
                let revision = query.version.map_or(self.revision, |v| v.midpoint(self.revision));
                let objects = self.at(revision);
                (revision, objects.iter().map(|(name, o)| render(name, *o)).collect())
            }
        };
        let mut token = String::new();
        if query.limit > 0 && items.len() > query.limit {
            let rest = items.split_off(query.limit);
            token = format!("{revision}.{}", self.next_page);
            self.pages.insert(self.next_page, rest);
            self.next_page += 1;
        }
        let metadata = json!({"resourceVersion": revision.to_string(), "continue": token});
        Answer::new(200, &json!({"metadata": metadata, "items": items}))
    }
}

fn parse_token(token: &str) -> (u64, u64) {
    let (revision, page) = token.split_once('.').unwrap();
    (revision.parse().unwrap(), page.parse().unwrap())
}

fn render(name: &str, object_now: Object) -> Value {
    let version = object_now.version.to_string();
    if object_now.malformed { malformed(name, &version) } else { object(name, &version) }
}

fn render_change(change: &Change) -> String {
    match (change.before, change.after) {
        (None, Some(new)) => event("ADDED", &render(&change.name, new)),
        (Some(_), Some(new)) => event("MODIFIED", &render(&change.name, new)),
        (before, None) => {
            let malformed = before.is_some_and(|before| before.malformed);
            let last = Object { version: change.revision, malformed };
            event("DELETED", &render(&change.name, last))
        }
    }
}

/// Ends an answer in the middle, if so wished.
fn cut_body(answer: Answer, cut: bool) -> Answer {
    if !cut {
        return answer;
    }
    let body = StreamBody::new(stream::iter([
        Ok(http_body::Frame::data(Bytes::from_static(b"{\"metadata\": {\"resourceVersion\""))),
        Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    ]));
    Answer { body: body.boxed_unsync(), ..answer }
}

/// A running watch, on the server's side.
struct Cursor {
    server: Server,
    changed: watch::Receiver<()>,
    lines: VecDeque<String>,
    position: u64,
    /// How many cuts there had been when it began.
    generation: usize,
    deadline: Instant,
    bookmark_at: Instant,
    ended: bool,
    /// It ends in the middle of its first event.
    cut_soon: bool,
}

impl Cursor {
    async fn next(&mut self) -> Option<io::Result<String>> {
        loop {
            if self.ended {
                return None;
            }
            self.changed.mark_unchanged();
            let cut = self.server.lock().cuts.get(self.generation).copied();
            if let Some(cut) = cut {
                return self.end(cut).await;
            }
            if let Some(line) = self.lines.pop_front() {
                if std::mem::take(&mut self.cut_soon) {
                    self.lines.push_front(line);
                    return self.end(Cut::MidEvent).await;
                }
                self.ended = line.contains("\"ERROR\"");
                return Some(Ok(line + "\n"));
            }
            if !self.read_on() {
                self.wait().await;
            }
        }
    }

    /// Reads what happened since; false if nothing did.
    fn read_on(&mut self) -> bool {
        let inner = self.server.lock();
        if self.position < inner.compacted && self.position < inner.revision {
            let lost = inner.history.iter().any(|change| {
                change.revision > self.position && change.revision <= inner.compacted
            });
            if lost {
                self.lines.push_back(event("ERROR", &expired()));
                return true;
            }
        }
        self.lines.extend(inner.since(self.position).iter().map(render_change));
        self.position = inner.revision;
        !self.lines.is_empty()
    }

    async fn wait(&mut self) {
        let bookmarks = self.server.lock().sends_bookmarks;
        let until = if bookmarks { self.deadline.min(self.bookmark_at) } else { self.deadline };
        if timeout_at(until, self.changed.changed()).await.is_ok() {
            return;
        }
        if Instant::now() >= self.deadline {
            self.ended = true;
        } else {
            self.bookmark_at += Duration::from_secs(60);
            self.lines.push_back(bookmark(&self.position.to_string()));
        }
    }

    async fn end(&mut self, cut: Cut) -> Option<io::Result<String>> {
        self.ended = true;
        match cut {
            Cut::End => None,
            Cut::Reset => Some(Err(io::ErrorKind::ConnectionReset.into())),
            Cut::MidEvent => {
                let line = self.lines.pop_front().unwrap_or_else(|| bookmark("1"));
                Some(Ok(line[..line.len() / 2].to_owned()))
            }
            Cut::Expired => Some(Ok(event("ERROR", &expired()) + "\n")),
            Cut::Silence => std::future::pending().await,
        }
    }
}

/// What a request asks for.
struct Query {
    watch: bool,
    initial: bool,
    version: Option<u64>,
    limit: usize,
    token: Option<String>,
    timeout: u64,
}

impl Query {
    fn of(uri: &http::Uri) -> Self {
        let pairs = uri.query().unwrap_or_default().split('&');
        let pairs: BTreeMap<&str, &str> = pairs.filter_map(|pair| pair.split_once('=')).collect();
        let number = |name| pairs.get(name).and_then(|text: &&str| text.parse::<u64>().ok());
        Self {
            watch: pairs.contains_key("watch"),
            initial: pairs.contains_key("sendInitialEvents"),
            version: number("resourceVersion"),
            limit: usize::try_from(number("limit").unwrap_or(0)).unwrap(),
            token: pairs.get("continue").map(|token| (*token).to_owned()),
            timeout: number("timeoutSeconds").unwrap_or(300),
        }
    }
}
