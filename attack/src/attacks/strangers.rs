//! Strangers who fill the memory: bodies that nobody asked for.

use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::Method;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::caller::{Ask, Body, Who};
use crate::field::Field;
use crate::seen::Seen;

const CHUNK: &[u8] = &[b' '; 64 * 1024];

/// How long a body is left open once it was sent.
const HELD: Duration = Duration::from_secs(5);

/// Many large bodies at once over few connections, left open.
pub(super) async fn bodies(field: Field) -> Result<Seen, String> {
    let connections = field.size(3, 1);
    let streams = field.size(240, 240);
    let chunks = field.size(3 << 20, 2 << 20) / CHUNK.len();
    let stranger = field.caller(Who::Stranger)?;
    field.begin().await;
    let hold_until = Instant::now() + if field.is_short() { Duration::from_secs(2) } else { HELD };
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let connection = stranger.streams().await?;
        for number in 0..streams {
            let mut connection = connection.clone();
            let path = format!("/api/v1/namespaces/default/configmaps?n={number}");
            tasks.spawn(async move {
                let ask = Ask::new(Method::POST, path, Bytes::new());
                let began = Instant::now();
                let answer = connection.send(&ask, left_open(chunks, hold_until)).await;
                (answer, began.elapsed())
            });
        }
    }
    let mut seen = Seen::default();
    for (answer, took) in tasks.join_all().await {
        seen.count(&answer, took);
    }
    seen.fault_if(seen.good() > 0, "a stranger wrote something");
    Ok(seen)
}

/// A body of so many chunks whose end does not come before a time.
fn left_open(chunks: usize, until: Instant) -> Body {
    let chunks = stream::unfold(0, move |sent| async move {
        if sent == chunks {
            tokio::time::sleep_until(until).await;
            return None;
        }
        Some((Ok(Frame::data(Bytes::from_static(CHUNK))), sent + 1))
    });
    StreamBody::new(chunks).boxed_unsync()
}
