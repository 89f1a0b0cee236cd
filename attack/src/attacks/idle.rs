//! Strangers who hold places: connections that say little or nothing and stay.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;

use crate::caller::{Ask, Caller, Streams, Who};
use crate::field::Field;
use crate::machine;
use crate::seen::Seen;

/// How many connections are opened at once.
const AT_ONCE: usize = 48;

/// The longest that the opening of all of them may take.
const OPENING: Duration = Duration::from_secs(45);

/// How soon somebody new is to be answered while all of them stand.
const NEWCOMER: Duration = Duration::from_secs(5);

/// A connection that is kept.
enum Kept {
    Bare(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
    Streams(Streams),
}

/// As many connections as there are files for, each asked for one thing and then idle.
pub(super) async fn connections(field: Field) -> Result<Seen, String> {
    let wanted = field.size(10_500, 300).min(machine::files_max().saturating_sub(200));
    let mut seen = Seen::default();
    field.begin().await;
    let kept = open(&field, wanted, &mut seen, asked_once).await?;
    seen.note(format!("{} of {wanted} stand", kept.len()));
    newcomers(&field, &mut seen, field.size(5, 1)).await?;
    seen.note(format!("{} still stand", standing(kept).await));
    Ok(seen)
}

/// Connections of HTTP/2 that ask for nothing, for longer than a minute.
pub(super) async fn http2(field: Field) -> Result<Seen, String> {
    let mut seen = Seen::default();
    field.begin().await;
    let kept = open(&field, field.size(500, 50), &mut seen, without_streams).await?;
    tokio::time::sleep(field.seconds(75, 1)).await;
    newcomers(&field, &mut seen, 1).await?;
    seen.note(format!("{} of {} still stand", standing_streams(&kept).await, kept.len()));
    Ok(seen)
}

/// Handshakes, headers and prefaces that begin and do not end.
pub(super) async fn halves(field: Field) -> Result<Seen, String> {
    let mut seen = Seen::default();
    field.begin().await;
    let half = field.size(500, 30);
    let mut kept = open(&field, half, &mut seen, half_handshake).await?;
    kept.extend(open(&field, half, &mut seen, half_headers).await?);
    kept.extend(open(&field, half, &mut seen, half_preface).await?);
    tokio::time::sleep(field.seconds(20, 1)).await;
    newcomers(&field, &mut seen, 1).await?;
    seen.note(format!("{} of {} still stand", standing(kept).await, half * 3));
    Ok(seen)
}

type Opening = futures::future::BoxFuture<'static, Result<Kept, String>>;

/// Opens so many, in the order of their numbers, and keeps those that were answered.
async fn open(
    field: &Field,
    wanted: usize,
    seen: &mut Seen,
    how: fn(Caller, usize) -> Opening,
) -> Result<Vec<Kept>, String> {
    let stranger = field.caller(Who::Stranger)?;
    let deadline = Instant::now() + OPENING;
    let mut kept = Vec::new();
    let mut opening = JoinSet::new();
    let mut turned_away = 0;
    for number in 0..wanted {
        if opening.len() >= AT_ONCE {
            take(opening.join_next().await, seen, &mut kept, &mut turned_away);
        }
        // Who is turned away again and again has seen enough.
        if Instant::now() > deadline || turned_away > 200 {
            break;
        }
        let one = how(stranger.clone(), number);
        let patience = Duration::from_secs(2);
        opening.spawn(async move {
            timeout(patience, one).await.unwrap_or_else(|_| Err("timeout".to_owned()))
        });
    }
    while let Some(next) = opening.join_next().await {
        take(Some(next), seen, &mut kept, &mut turned_away);
    }
    Ok(kept)
}

fn take(
    opened: Option<Result<Result<Kept, String>, tokio::task::JoinError>>,
    seen: &mut Seen,
    kept: &mut Vec<Kept>,
    turned_away: &mut usize,
) {
    match opened {
        Some(Ok(Ok(connection))) => {
            seen.count_as("open");
            kept.push(connection);
        }
        Some(_) => {
            seen.count_as("turned away");
            *turned_away += 1;
        }
        None => {}
    }
}

/// One request by HTTP/1 or HTTP/2, in turns.
fn asked_once(stranger: Caller, number: usize) -> Opening {
    Box::pin(async move {
        if number.is_multiple_of(2) {
            let mut streams = stranger.streams().await?;
            let nothing = Full::new(Bytes::new()).boxed_unsync();
            streams.send(&Ask::get("/version"), nothing).await?;
            return Ok(Kept::Streams(streams));
        }
        let mut stream = stranger.shake_hands("http/1.1").await?;
        let asked = stream.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n").await;
        asked.map_err(|error| error.to_string())?;
        let mut answer = [0; 1024];
        match stream.read(&mut answer).await {
            Ok(read) if read > 0 => Ok(Kept::Bare(Box::new(stream))),
            _ => Err("closed".to_owned()),
        }
    })
}

fn without_streams(stranger: Caller, _: usize) -> Opening {
    Box::pin(async move { Ok(Kept::Streams(stranger.streams().await?)) })
}

fn half_handshake(stranger: Caller, _: usize) -> Opening {
    Box::pin(async move {
        let stream = TcpStream::connect(stranger.address()).await;
        let mut stream = stream.map_err(|error| error.to_string())?;
        let sent = stream.write_all(&[22, 3, 1, 2, 0, 1]).await;
        sent.map_err(|error| error.to_string())?;
        Ok(Kept::Plain(stream))
    })
}

fn half_headers(stranger: Caller, _: usize) -> Opening {
    Box::pin(async move {
        let mut stream = stranger.shake_hands("http/1.1").await?;
        let sent = stream.write_all(b"GET /version HTTP/1.1\r\nHost: x\r\nX-Slow: ").await;
        sent.map_err(|error| error.to_string())?;
        Ok(Kept::Bare(Box::new(stream)))
    })
}

fn half_preface(stranger: Caller, _: usize) -> Opening {
    Box::pin(async move {
        let mut stream = stranger.shake_hands("h2").await?;
        let sent = stream.write_all(b"PRI * HTTP/2.0\r\n").await;
        sent.map_err(|error| error.to_string())?;
        Ok(Kept::Bare(Box::new(stream)))
    })
}

/// Somebody known comes, by token and by certificate, so many times.
async fn newcomers(field: &Field, seen: &mut Seen, times: usize) -> Result<(), String> {
    let by_token = field.caller(Who::Innocent)?;
    let by_certificate = field.by_certificate()?;
    for _ in 0..times {
        for (how, caller) in [("token", &by_token), ("certificate", &by_certificate)] {
            let answer = timeout(NEWCOMER, caller.ask(&Ask::get("/version"))).await;
            let came = matches!(&answer, Ok(Ok(answer)) if answer.is_good());
            seen.fault_if(!came, format!("a newcomer with a {how} finds no place"));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    seen.faults.dedup();
    Ok(())
}

/// How many of these the server has not closed.
async fn standing(kept: Vec<Kept>) -> usize {
    let mut standing = 0;
    for connection in kept {
        let mut byte = [0; 512];
        let moment = Duration::from_millis(1);
        let closed = match connection {
            Kept::Bare(mut stream) => timeout(moment, stream.read(&mut byte)).await.is_ok(),
            Kept::Plain(mut stream) => timeout(moment, stream.read(&mut byte)).await.is_ok(),
            Kept::Streams(streams) => streams.is_closed(),
        };
        standing += usize::from(!closed);
    }
    standing
}

async fn standing_streams(kept: &[Kept]) -> usize {
    tokio::task::yield_now().await;
    let open = |kept: &&Kept| matches!(kept, Kept::Streams(streams) if !streams.is_closed());
    kept.iter().filter(open).count()
}
