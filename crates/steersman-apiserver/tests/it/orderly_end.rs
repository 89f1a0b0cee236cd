//! How a server stops: it says so first, then lets everybody finish who has begun.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::api::{CONFIG_MAPS, version};
use crate::listen::{get, start};

fn watch(query: &str) -> Request<Full<Bytes>> {
    let path = format!("https://localhost/api/v1/configmaps?watch=1&{query}");
    Request::get(path).body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_server_that_will_stop_is_not_ready_and_does_everything_else() {
    let server = start().await;
    let admin = Some(&server.pki.admin);
    let mut sender: http2::SendRequest<Full<Bytes>> = server.http2(admin).await;
    let mut events = sender.send_request(watch("resourceVersion=0")).await.unwrap();
    assert_eq!(server.ask(None, get("/readyz")).await.0, 200);
    server.api.server.stop_soon();
    assert_eq!(server.ask(None, get("/readyz")).await.0, 500);
    assert_eq!(server.ask(admin, get("/readyz/shutdown")).await.0, 500);
    assert_eq!(server.ask(None, get("/livez")).await.0, 200);
    assert_eq!(server.ask(admin, get("/api/v1/namespaces")).await.0, 200);
    server.api.config_map("a", &json!({})).await;
    let event = events.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(event.starts_with(b"{\"type\":\"ADDED\""), "{event:?}");
}

#[tokio::test]
async fn watches_end_with_a_bookmark_where_they_want_any() {
    let server = start().await;
    let object = server.api.config_map("a", &json!({})).await;
    let admin = Some(&server.pki.admin);
    let mut sender: http2::SendRequest<Full<Bytes>> = server.http2(admin).await;
    let from = format!("resourceVersion={}", version(&object));
    let with = format!("{from}&allowWatchBookmarks=true");
    let mut wanted = sender.send_request(watch(&with)).await.unwrap();
    let unwanted = sender.send_request(watch(&from)).await.unwrap();
    // Another client's change: the bookmark is of a later revision than the watch began with.
    let other = server.api.config_map("b", &json!({})).await;
    let first = wanted.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"{\"type\":\"ADDED\""), "{first:?}");
    server.shutdown.cancel();
    let rest = wanted.into_body().collect().await.expect("it ends, it does not break").to_bytes();
    let bookmark: Value = serde_json::from_slice(&rest).unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert!(version(&bookmark["object"]) >= version(&other));
    let rest = unwanted.into_body().collect().await.unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&rest).contains("BOOKMARK"));
    server.server.await.unwrap();
    assert!(sender.is_closed());
}

#[tokio::test]
async fn a_request_that_has_begun_is_finished_and_its_connection_is_not_kept() {
    let server = start().await;
    let idle = server.connect(Some(&server.pki.admin), "http/1.1").await;
    let (idle, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(idle)).await.unwrap();
    tokio::spawn(connection);
    let mut stream = server.connect(Some(&server.pki.admin), "http/1.1").await;
    let body = json!({"metadata": {"name": "late"}}).to_string();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body[..10]).as_bytes()).await.unwrap();
    while server.api.server.body_bytes() == 0 {
        tokio::task::yield_now().await;
    }
    server.shutdown.cancel();
    while !idle.is_closed() {
        tokio::task::yield_now().await;
    }
    stream.write_all(&body.as_bytes()[10..]).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    assert!(answer.starts_with("http/1.1 201"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    server.server.await.unwrap();
}
