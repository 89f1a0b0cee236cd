use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Form, Refusal, agreed, shown, speak};
use crate::reply::ResponseBody;

fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
    let usual = [
        (header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
        (header::SEC_WEBSOCKET_VERSION, "13"),
        (header::ORIGIN, "https://localhost"),
    ];
    let all = usual.into_iter().chain(all.iter().cloned());
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        headers.insert(name, value.parse().unwrap());
    }
    headers
}

#[test]
fn a_key_is_answered_as_the_protocol_wants_it() {
    assert_eq!(shown(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn a_handshake_needs_a_key_a_version_an_origin_and_one_protocol_at_most() {
    let bad = |text| Refusal::bad(text);
    let forbidden = |text| Refusal { code: http::StatusCode::FORBIDDEN, ..bad(text) };
    for (header, value, expected) in [
        (header::SEC_WEBSOCKET_KEY, "", bad("mismatch challenge/response")),
        (
            header::SEC_WEBSOCKET_VERSION,
            "8",
            Refusal { version: true, ..bad("missing or bad WebSocket Version") },
        ),
        (header::ORIGIN, "", forbidden("null origin")),
        (header::SEC_WEBSOCKET_PROTOCOL, "a, b", bad("missing or bad WebSocket-Protocol")),
    ] {
        assert_eq!(agreed(&headers(&[(header, value)])).unwrap_err(), expected);
    }
    let named = agreed(&headers(&[(header::SEC_WEBSOCKET_PROTOCOL, "a")])).unwrap();
    assert_eq!(named.protocol.unwrap(), "a");
    assert_eq!(agreed(&headers(&[])).unwrap().protocol, None);
}

#[test]
fn events_are_taken_as_they_follow_each_other() {
    let mut told = BytesMut::from(&b"{\"a\":1}\n{\"b\":2}\n{\"c\""[..]);
    assert_eq!(Form::Lines.take(&mut told).unwrap(), "{\"a\":1}\n");
    assert_eq!(Form::Lines.take(&mut told).unwrap(), "{\"b\":2}\n");
    assert_eq!(Form::Lines.take(&mut told), None);
    let mut told = BytesMut::from(&[0, 0, 0, 2, 8, 9, 0, 0, 0, 3, 1][..]);
    assert_eq!(Form::Measured.take(&mut told).unwrap(), &[8, 9][..]);
    assert_eq!(Form::Measured.take(&mut told), None);
}

#[tokio::test]
async fn each_event_is_a_message_and_a_ping_is_answered_in_between() {
    let (mut client, server) = tokio::io::duplex(1024);
    let events = futures::stream::iter([Bytes::from_static(b"{}\n[]\n")]);
    let events = ResponseBody::stream(events.chain(futures::stream::pending()).boxed());
    let speaking = tokio::spawn(speak(server, events, Form::Lines));
    let mut heard = [0; 10];
    client.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"\x81\x03{}\n\x81\x03[]\n");
    client.write_all(b"\x89\x81\0\0\0\0?").await.unwrap();
    let mut pong = [0; 3];
    client.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"\x8a\x01?");
    client.write_all(b"\x88\x80\0\0\0\0").await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x88\x02\x03\xe8");
    speaking.await.unwrap().unwrap();
}
