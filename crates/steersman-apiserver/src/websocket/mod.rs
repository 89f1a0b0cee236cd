//! Watches over WebSocket, as clients ask for them that read no stream: each event is a message, of
//! text where it is JSON. The client has nothing to say but that it goes.
//!
//! The handshake is that of the library by which Kubernetes speaks WebSocket, with its refusals: there
//! must be an origin, and one protocol at most.

mod frames;

use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyDataStream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use self::frames::{Heard, Inbox, Kind};
use crate::reply::ResponseBody;
use crate::upgrade::{self, Stay};

/// What the protocol adds to a client's key before it is digested, which shows that the other side
/// knows the protocol.
const KNOWN: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version of the protocol; there is no other.
const VERSION: &str = "13";

/// How long a client may take to hear the end, once the server stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// How much of what a client says is read in one go.
const READ: usize = 1024;

/// The wish of a client to hear the events of its watch in messages.
pub(crate) struct Wish {
    client: OnUpgrade,
    /// The place of its connection.
    stay: Option<Stay>,
    agreed: Result<Agreed, Refusal>,
}

/// How it is spoken.
#[derive(Clone, Debug)]
struct Agreed {
    key: HeaderValue,
    protocol: Option<HeaderValue>,
}

/// Why WebSocket is not spoken, and what is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    code: StatusCode,
    text: &'static str,
    /// The version that would be.
    version: bool,
}

impl Refusal {
    fn bad(text: &'static str) -> Self {
        Self { code: StatusCode::BAD_REQUEST, text, version: false }
    }
}

/// What the headers of a request say, if they fit together.
fn agreed(headers: &HeaderMap) -> Result<Agreed, Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Refusal::bad("mismatch challenge/response"))?;
    if text(header::SEC_WEBSOCKET_VERSION) != Some(VERSION) {
        let text = "missing or bad WebSocket Version";
        return Err(Refusal { version: true, ..Refusal::bad(text) });
    }
    // Whoever is no browser names one as well.
    let origin = text(header::ORIGIN).filter(|origin| !origin.is_empty());
    let origin = origin.ok_or("null origin");
    let origin = origin.and_then(|it| match is_request_uri(it) {
        true => Ok(()),
        false => Err("invalid URI for request"),
    });
    origin.map_err(|text| Refusal { code: StatusCode::FORBIDDEN, ..Refusal::bad(text) })?;
    let protocols = text(header::SEC_WEBSOCKET_PROTOCOL).unwrap_or("").trim();
    let protocol = match protocols {
        "" => None,
        several if several.contains(',') => {
            return Err(Refusal::bad("missing or bad WebSocket-Protocol"));
        }
        _ => headers.get(header::SEC_WEBSOCKET_PROTOCOL).cloned(),
    };
    Ok(Agreed { key: key.clone(), protocol })
}

/// Whether Go takes this for a URI in a request: a path, or something of a scheme.
fn is_request_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        let mut letters = scheme.bytes();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'))
    };
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let is_clean = !text.bytes().any(|it| it.is_ascii_control() || it == b' ');
    is_clean && (text.starts_with('/') || scheme.is_some_and(is_scheme))
}

impl Wish {
    /// The wish of a request, if it has one and came over a connection that can speak otherwise.
    pub(crate) fn of(parts: &mut Parts) -> Option<Self> {
        if !upgrade::is_web_socket(&parts.headers) {
            return None;
        }
        let client = parts.extensions.remove::<OnUpgrade>()?;
        let stay = parts.extensions.remove::<Stay>();
        Some(Self { client, stay, agreed: agreed(&parts.headers) })
    }

    /// Tells the events of a watch that has begun, or why that is not to be; any other answer stays
    /// as it is.
    pub(crate) fn fulfil(
        self,
        answer: Response<ResponseBody>,
        ended: CancellationToken,
    ) -> Response<ResponseBody> {
        if answer.status() != StatusCode::OK || !answer.body().is_streamed() {
            return answer;
        }
        let Self { client, stay, agreed } = self;
        let Agreed { key, protocol } = match agreed {
            Ok(agreed) => agreed,
            Err(refusal) => return refused(refusal),
        };
        let form = Form::of(answer.headers());
        let events = answer.into_body();
        let spoken = async move {
            let Ok(client) = client.await else { return };
            if let Err(error) = speak(TokioIo::new(client), events, form).await {
                tracing::debug!(%error, "watch over WebSocket broke off");
            }
        };
        // A watch ends by itself when the server does, and its client is told so if it listens.
        let too_late = async move {
            ended.cancelled().await;
            tokio::time::sleep(FAREWELL).await;
        };
        tokio::spawn(async move {
            let sent_away = async {
                match &stay {
                    Some(stay) => stay.leave.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = spoken => {}
                () = too_late => {}
                () = sent_away => {}
            }
        });
        let mut response = Response::new(ResponseBody::from(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(shown) = HeaderValue::from_str(&shown(key.as_bytes())) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, shown);
        }
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

fn refused(refusal: Refusal) -> Response<ResponseBody> {
    let mut response =
        Response::new(ResponseBody::from(Bytes::from_static(refusal.text.as_bytes())));
    *response.status_mut() = refusal.code;
    if refusal.version {
        let version = HeaderValue::from_static(VERSION);
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, version);
    }
    response
}

/// What shows a client, which has sent this key, that it is understood.
fn shown(key: &[u8]) -> String {
    let known = [key, KNOWN].concat();
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &known))
}

/// How the events of a watch follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In JSON, a line each.
    Lines,
    /// In protobuf, each behind its length.
    Measured,
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let media_type = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        match media_type.starts_with(b"application/vnd.kubernetes.protobuf") {
            true => Self::Measured,
            false => Self::Lines,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Lines => Kind::Text,
            Self::Measured => Kind::Binary,
        }
    }

    /// Takes the next event, if all of it is there.
    fn take(self, told: &mut BytesMut) -> Option<BytesMut> {
        match self {
            Self::Lines => {
                let end = told.iter().position(|byte| *byte == b'\n')?;
                Some(told.split_to(end + 1))
            }
            Self::Measured => {
                let length = told.first_chunk().map(|length| u32::from_be_bytes(*length))?;
                let length = usize::try_from(length).ok()?;
                if told.len() - size_of::<u32>() < length {
                    return None;
                }
                told.advance(size_of::<u32>());
                Some(told.split_to(length))
            }
        }
    }
}

/// Tells events until there are no more, or the client goes.
async fn speak<S>(stream: S, events: ResponseBody, form: Form) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from, mut to) = tokio::io::split(stream);
    let mut events = BodyDataStream::new(events);
    let mut told = BytesMut::new();
    let mut inbox = Inbox::default();
    loop {
        let mut out = Vec::new();
        tokio::select! {
            piece = events.next() => {
                // One that breaks off is seen to end, and its client watches again.
                let Some(Ok(piece)) = piece else { break };
                told.extend_from_slice(&piece);
                while let Some(event) = form.take(&mut told) {
                    frames::write(&mut out, form.kind(), &event);
                }
            }
            read = from.read_buf(inbox.room(READ)) => {
                if read? == 0 {
                    return Ok(());
                }
                if answer(&mut inbox, &mut out)? == Client::Goes {
                    break;
                }
            }
        }
        to.write_all(&out).await?;
        to.flush().await?;
    }
    to.write_all(&frames::goodbye()).await?;
    to.shutdown().await
}

/// Whether a client wants to hear more.
#[derive(PartialEq, Eq)]
enum Client {
    Stays,
    Goes,
}

/// Answers what a client says, as far as it wants to know whether somebody is there.
fn answer(inbox: &mut Inbox, out: &mut Vec<u8>) -> io::Result<Client> {
    while let Some(heard) = inbox.next()? {
        match heard {
            Heard::Ping(asked) => frames::write(out, Kind::Pong, &asked),
            Heard::Goodbye => return Ok(Client::Goes),
            Heard::Other => {}
        }
    }
    Ok(Client::Stays)
}

#[cfg(test)]
mod tests;
