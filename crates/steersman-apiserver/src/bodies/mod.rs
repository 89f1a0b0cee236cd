//! The bodies of requests: read once it is known that the request may be made, and never more of
//! them at once than there is room for.
//!
//! Whoever sends a body must have [room](budget) for it, in all and for themselves, and has it until
//! the request is done: what is made of a body is larger than the body. Requests of this process are
//! not counted, for their bodies are in memory already.

mod budget;

use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tower::BoxError;

pub(crate) use budget::{Bodies, Room};

use crate::status::{BODY_LIMIT, Result, Status};

/// How long the body of a request may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// How much of a body is still taken, and forgotten, once it is too large, as Go's server does: who is
/// answered while sending may not see the answer.
const DISCARDED_MAX: usize = 256 * 1024;

/// A body that is not read yet, whatever sends it.
pub(crate) type Unread<'a> = Pin<&'a mut (dyn Body<Data = Bytes, Error = BoxError> + Send)>;

/// A body, and the room that it takes.
#[derive(Debug, Default)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: Bytes,
    /// Held while somebody works with the body.
    pub(crate) room: Option<Room<'a>>,
}

/// Reads a body up to the limit, into the room that there is for it if it is counted. What is
/// larger, breaks off or does not end in time is an error to answer.
pub(crate) async fn read<'a>(body: Unread<'_>, mut room: Option<Room<'a>>) -> Result<Received<'a>> {
    let hint = body.size_hint();
    let declared = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    if declared > BODY_LIMIT {
        let discarded = discard(body, BODY_LIMIT + DISCARDED_MAX);
        let _ = tokio::time::timeout(BODY_TIME, discarded).await;
        return Err(Status::too_large());
    }
    if declared > 0
        && let Some(room) = &mut room
    {
        room.grow_to(declared).await?;
    }
    let whole = frames(body, declared, &mut room);
    let bytes = tokio::time::timeout(BODY_TIME, whole).await;
    let late = |_| Status::timeout("the body of the request did not arrive in time");
    Ok(Received { bytes: bytes.map_err(late)??, room })
}

/// Lets go of what comes until it ends or is too much.
async fn discard(mut body: Unread<'_>, max: usize) {
    let mut length = 0;
    while length <= max
        && let Some(Ok(frame)) = body.frame().await
    {
        length += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// Reads what comes. Most bodies are one piece, which is taken as it is.
async fn frames(
    mut body: Unread<'_>,
    declared: usize,
    room: &mut Option<Room<'_>>,
) -> Result<Bytes> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken = |error| Status::bad_request(format!("error reading the body: {error}"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > BODY_LIMIT {
            drop((first, all, data));
            discard(body, DISCARDED_MAX).await;
            return Err(Status::too_large());
        }
        if let Some(room) = room {
            room.grow_to(length).await?;
        }
        if length == data.len() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(declared.max(length));
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Poll};

    use futures::stream;
    use http_body::{Frame, SizeHint};
    use http_body_util::{Full, StreamBody};

    use super::*;

    async fn read_all(body: impl Body<Data = Bytes, Error = Infallible> + Send) -> Result<Bytes> {
        let body = std::pin::pin!(body.map_err(Into::into));
        read(body, None).await.map(|received| received.bytes)
    }

    fn pieces(pieces: &'static [&'static str]) -> impl Body<Data = Bytes, Error = Infallible> {
        let frames =
            pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_is_the_same_in_one_piece_and_in_many() {
        assert_eq!(read_all(pieces(&[])).await.unwrap(), "");
        assert_eq!(read_all(pieces(&["one"])).await.unwrap(), "one");
        assert_eq!(read_all(pieces(&["", "a", "", "bc", "d"])).await.unwrap(), "abcd");
        let whole = Bytes::from_static(b"whole");
        assert_eq!(read_all(Full::new(whole.clone())).await.unwrap().as_ptr(), whole.as_ptr());
    }

    #[tokio::test]
    async fn a_body_is_refused_where_it_becomes_too_large() {
        let large = Bytes::from(vec![b' '; BODY_LIMIT]);
        assert_eq!(read_all(Full::new(large.clone())).await.unwrap().len(), BODY_LIMIT);
        let frames = [large, Bytes::from_static(b"x")].map(|piece| Ok(Frame::data(piece)));
        let undeclared = StreamBody::new(stream::iter(frames));
        assert_eq!(read_all(undeclared).await.unwrap_err().code, 413);
        let declared = Full::new(Bytes::from(vec![b' '; BODY_LIMIT + 1]));
        assert_eq!(read_all(declared).await.unwrap_err().code, 413);
    }

    /// A body that declares its length, and counts what is taken of it.
    struct Counted<'a> {
        left: usize,
        taken: &'a AtomicUsize,
        declared: bool,
    }

    impl Body for Counted<'_> {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let piece = self.left.min(64 * 1024);
            self.left -= piece;
            self.taken.fetch_add(piece, Relaxed);
            Poll::Ready((piece > 0).then(|| Ok(Frame::data(vec![b' '; piece].into()))))
        }

        fn size_hint(&self) -> SizeHint {
            if self.declared { SizeHint::with_exact(self.left as u64) } else { SizeHint::new() }
        }
    }

    #[tokio::test]
    async fn what_is_slightly_too_large_is_taken_before_it_is_answered() {
        let slightly = BODY_LIMIT + 100_000;
        for (sent, expected) in [(slightly, slightly..=slightly), (30_000_000, 0..=4_000_000)] {
            for declared in [true, false] {
                let taken = AtomicUsize::new(0);
                let body = Counted { left: sent, taken: &taken, declared };
                assert_eq!(read_all(body).await.unwrap_err().code, 413);
                assert!(expected.contains(&taken.into_inner()), "{sent} {declared}");
            }
        }
    }
}
