//! Those who come in numbers, over HTTPS: what strangers send is not read, nobody takes the room of
//! others, and there is always a place for one more.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use steersman_apiserver::listen;
use steersman_apiserver::user::User;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::listen::{Secure, get, start, start_with};

const CONFIG_MAPS: &str = "https://localhost/api/v1/namespaces/default/configmaps";
const MEBIBYTE: usize = 1024 * 1024;

/// A body as large as may be that tells how much of it was taken, or none of which ever comes.
struct Large {
    left: usize,
    taken: Arc<AtomicUsize>,
    comes: bool,
}

impl Large {
    fn new(comes: bool) -> Self {
        Self { left: 3 * MEBIBYTE, taken: Arc::default(), comes }
    }
}

impl Body for Large {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.comes {
            return Poll::Pending;
        }
        let size = self.left.min(16 * 1024);
        self.left -= size;
        self.taken.fetch_add(size, Ordering::Relaxed);
        Poll::Ready((size > 0).then(|| Ok(Frame::data(vec![b' '; size].into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

fn post(body: Large, token: &str) -> Request<Large> {
    let request = Request::post(CONFIG_MAPS).header(header::CONTENT_TYPE, "application/json");
    let request = match token {
        "" => request,
        token => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
    };
    request.body(body).unwrap()
}

/// Waits until something is so, whatever the clock says.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_000_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come to be that {what}");
}

#[tokio::test]
async fn what_strangers_send_is_not_read() {
    let server = start().await;
    let sender: http2::SendRequest<Large> = server.http2(None).await;
    let nobody = server.pki.client("nobody-in-particular", &[]).unwrap();
    let known: http2::SendRequest<Large> = server.http2(Some(&nobody)).await;
    for (sender, streams) in [(sender, 24), (known, 240)] {
        let requests = (0..streams).map(|_| {
            let mut sender = sender.clone();
            let body = Large::new(true);
            let taken = Arc::clone(&body.taken);
            async move {
                sender.ready().await.unwrap();
                let response = sender.send_request(post(body, "")).await.unwrap();
                assert_eq!(response.status(), 403);
                taken.load(Ordering::Relaxed)
            }
        });
        let taken = join_all(requests).await;
        let most = taken.iter().max().unwrap();
        assert!(*most <= 512 * 1024, "{most} bytes of one body were taken");
        assert_eq!(server.api.server.body_bytes(), 0);
    }
}

#[tokio::test]
async fn a_stranger_is_refused_before_it_has_sent_anything_but_headers() {
    let server = start().await;
    let mut stream = server.connect(None, "http/1.1").await;
    let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n\
                Content-Length: 3000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

#[tokio::test]
async fn a_stranger_who_does_not_take_its_answers_is_shown_the_door() {
    let server = start().await;
    let stream = TokioIo::new(server.connect(None, "h2").await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) =
        builder.initial_stream_window_size(0).handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..60 {
        let mut sender: http2::SendRequest<Full<Bytes>> = sender.clone();
        let request = Request::get("https://localhost/version").body(Full::default()).unwrap();
        match sender.send_request(request).await {
            Ok(response) => unread.push(response),
            Err(_) => break,
        }
    }
    assert!((32..60).contains(&unread.len()), "{} answers are held for it", unread.len());
    assert_eq!(server.ask(None, get("/livez")).await.0, 200);
}

#[tokio::test]
async fn the_bodies_of_one_user_leave_room_for_those_of_others() {
    let server = start().await;
    let tokens = server.api.server.tokens();
    for name in ["hog", "a", "b", "c", "d"] {
        tokens.insert(name, User::known(name, &["system:masters"]));
    }
    let sender: http2::SendRequest<Large> = server.http2(None).await;
    let unfinished: Vec<_> = (0..5)
        .map(|_| {
            let mut sender = sender.clone();
            tokio::spawn(async move { sender.send_request(post(Large::new(false), "hog")).await })
        })
        .collect();
    let held = 5 * 3 * MEBIBYTE;
    until("five bodies are held", || server.api.server.body_bytes() == held).await;
    // Two might share their room by chance, but not all.
    let mut others = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let mut sender: http2::SendRequest<Large> = server.http2(None).await;
        let answer = sender.send_request(post(Large::new(true), name));
        // Time passes by itself below, so one that waits may also be cut off.
        others.push(tokio::spawn(async move { answer.await.ok().map(|it| it.status()) }));
    }
    tokio::time::pause();
    let mut another = sender.clone();
    let refused = another.send_request(post(Large::new(true), "hog")).await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let others = join_all(others).await.into_iter().filter_map(|status| status.unwrap());
    // Spaces are no object, but they were read.
    assert!(others.filter(|code| code.as_u16() == 400).count() >= 2);
    for request in unfinished {
        request.abort();
    }
    until("nothing is held", || server.api.server.body_bytes() == 0).await;
}

#[tokio::test]
async fn a_stranger_who_asked_once_does_not_stay_and_a_user_does() {
    let server = start().await;
    let mut connections = Vec::new();
    for identity in [None, Some(&server.pki.admin)] {
        let mut sender: http2::SendRequest<Full<Bytes>> = server.http2(identity).await;
        let version = Request::get("https://localhost/version").body(Full::default()).unwrap();
        assert_eq!(sender.send_request(version).await.unwrap().status(), 200);
        connections.push(sender);
    }
    let [stranger, user] = &mut connections[..] else { unreachable!() };
    // A watch of somebody who is known may be silent for long.
    let watch = Request::get("https://localhost/api/v1/configmaps?watch=1&timeoutSeconds=86400");
    let watch = user.send_request(watch.body(Full::default()).unwrap()).await.unwrap();
    tokio::time::pause();
    // Bit by bit, so that both ends have their say meanwhile.
    for _ in 0..100 {
        tokio::time::advance(Duration::from_secs(1)).await;
        until("others have had their turn", || true).await;
    }
    tokio::time::resume();
    until("the stranger has gone", || stranger.is_closed()).await;
    assert!(!user.is_closed());
    drop(watch);
}

/// One who has asked for something and stays connected.
async fn stays(server: &Secure) -> http1::SendRequest<Full<Bytes>> {
    let stream = server.connect(None, "http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(sender.send_request(get("/version")).await.unwrap().status(), 200);
    sender
}

#[tokio::test]
async fn there_is_a_place_for_one_more_where_strangers_stay() {
    let grace = Duration::from_secs(1);
    let server = start_with(listen::Options { grace, connections: Some(64) }).await;
    let mut admin: http2::SendRequest<Full<Bytes>> = server.http2(Some(&server.pki.admin)).await;
    let mut strangers = Vec::new();
    // Each of them comes when all places for strangers of an address are taken.
    for _ in 0..20 {
        strangers.push(stays(&server).await);
    }
    until("the first have gone", || strangers[..16].iter().all(http1::SendRequest::is_closed))
        .await;
    assert!(strangers.last().is_some_and(|last| !last.is_closed()));
    let request = Request::get("https://localhost/api/v1/namespaces").body(Full::default());
    assert_eq!(admin.send_request(request.unwrap()).await.unwrap().status(), 200);
}
