//! The body of an answer: all at once, compressed piece by piece, or the events of a watch.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http_body::{Body, Frame, SizeHint};

use crate::webhook_client::{BrokenOff, Pieces};

/// How much is written or compressed at a time: a large list must not hold up other requests.
pub(super) const PIECE: usize = 64 * 1024;

/// How many pieces are written in one go, which takes less than a millisecond. Whoever comes next
/// waits for one turn of each list that is being written.
const PIECES: usize = 4;

/// How many pieces are compressed in one go, each of which takes a millisecond or so.
const PIECES_COMPRESSED: usize = 1;

/// The body of an answer: all at once, or the events of a watch as they happen.
pub struct ResponseBody(Content);

enum Content {
    Whole(Bytes),
    Stream(BoxStream<'static, Bytes>),
    /// What another server answers: it may break off.
    Passed(Pieces),
}

impl ResponseBody {
    /// A body of pieces that come one by one.
    pub(crate) fn stream(pieces: BoxStream<'static, Bytes>) -> Self {
        Self(Content::Stream(pieces))
    }

    /// The body of another server's answer.
    pub(crate) fn passed(pieces: Pieces) -> Self {
        Self(Content::Passed(pieces))
    }

    /// A body whose pieces are made when there is room to send them: what a client does not
    /// read takes no memory.
    pub(crate) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self::stream(paced(stream::iter(pieces), PIECES).boxed())
    }

    /// All of it, unless it comes piece by piece.
    pub(crate) fn whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Content::Whole(bytes) => Some(bytes),
            Content::Stream(_) | Content::Passed(_) => None,
        }
    }

    /// Whether it comes piece by piece.
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self.0, Content::Stream(_) | Content::Passed(_))
    }

    /// The same body; what is given is kept until there is nothing more to send for the moment: a
    /// watch has told all that there was when it began.
    pub(crate) fn until_silent(self, held: impl Send + 'static) -> Self {
        let Content::Stream(mut pieces) = self.0 else { return self };
        let mut held = Some(held);
        let pieces = stream::poll_fn(move |context| {
            let polled = pieces.as_mut().poll_next(context);
            if !matches!(polled, Poll::Ready(Some(_))) {
                drop(held.take());
            }
            polled
        });
        Self::stream(pieces.boxed())
    }

    /// The same body; what is given is kept until its last piece, or until nobody wants more.
    pub(crate) fn holding(self, held: impl Send + 'static) -> Self {
        match self.0 {
            Content::Whole(bytes) => Self(Content::Whole(bytes)),
            Content::Stream(pieces) => Self::stream(
                pieces
                    .map(move |piece| {
                        let _ = &held;
                        piece
                    })
                    .boxed(),
            ),
            Content::Passed(pieces) => {
                let pieces = pieces.inspect(move |_| {
                    let _ = &held;
                });
                Self::passed(pieces.boxed())
            }
        }
    }

    /// The same body; once it is sent, or nobody wants more, its size is told.
    pub(crate) fn measured(self, tell: impl FnOnce(u64) + Send + 'static) -> Self {
        match self.0 {
            Content::Whole(bytes) => {
                tell(bytes.len() as u64);
                Self(Content::Whole(bytes))
            }
            Content::Stream(pieces) => {
                let mut measure = Measure { bytes: 0, tell: Some(tell) };
                Self::stream(pieces.inspect(move |piece| measure.add(piece)).boxed())
            }
            Content::Passed(pieces) => Self::passed(pieces),
        }
    }

    /// The same, compressed.
    pub(crate) fn gzip(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let pieces = stream::unfold((Some(encoder), pieces), |(encoder, pieces)| {
            std::future::ready(encoder.map(|encoder| compress(encoder, pieces)))
        });
        let pieces = paced(pieces, PIECES_COMPRESSED);
        Self::stream(pieces.filter(|piece| std::future::ready(!piece.is_empty())).boxed())
    }
}

/// Tells how much has passed when it is dropped.
struct Measure<T: FnOnce(u64)> {
    bytes: u64,
    tell: Option<T>,
}

impl<T: FnOnce(u64)> Measure<T> {
    fn add(&mut self, piece: &Bytes) {
        self.bytes += piece.len() as u64;
    }
}

impl<T: FnOnce(u64)> Drop for Measure<T> {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(self.bytes);
        }
    }
}

/// Lets others go on after each so many pieces, however fast they are taken. Others are also those
/// who have just sent something: a task that wakes itself would keep its thread from hearing of them
/// for dozens of turns, one that yields does not.
fn paced(
    pieces: impl Stream<Item = Bytes> + Send + 'static,
    turn: usize,
) -> impl Stream<Item = Bytes> + Send + 'static {
    stream::unfold((Box::pin(pieces), 0), move |(mut pieces, mut given)| async move {
        if given == turn {
            given = 0;
            tokio::task::yield_now().await;
        }
        let piece = pieces.next().await?;
        Some((piece, (pieces, given + 1)))
    })
}

/// Cuts what is there already.
pub(super) fn cut(bytes: Bytes) -> impl Iterator<Item = Bytes> + Send + 'static {
    let starts = (0..bytes.len()).step_by(PIECE);
    starts.map(move |start| bytes.slice(start..bytes.len().min(start + PIECE)))
}

type Encoder = GzEncoder<Vec<u8>>;

/// Compresses the next piece, and gives what came out of it.
fn compress<I: Iterator<Item = Bytes>>(
    mut encoder: Encoder,
    mut pieces: I,
) -> (Bytes, (Option<Encoder>, I)) {
    let Some(piece) = pieces.next() else {
        let last = encoder.finish().expect("writing to memory cannot fail");
        return (last.into(), (None, pieces));
    };
    encoder.write_all(&piece).expect("writing to memory cannot fail");
    let out = std::mem::take(encoder.get_mut());
    (out.into(), (Some(encoder), pieces))
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Content::Whole(bytes.into()))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self(Content::Whole(bytes))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut self.0 {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(events) => {
                events.as_mut().poll_next(context).map(|item| item.map(|b| Ok(Frame::data(b))))
            }
            Content::Passed(pieces) => {
                pieces.as_mut().poll_next(context).map(|item| item.map(|b| b.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Passed(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use bytes::Bytes;
    use futures::StreamExt;
    use http_body::Body;

    use super::{PIECES, PIECES_COMPRESSED, ResponseBody, stream};

    /// How many pieces come between two moments at which others can go on.
    fn turns(mut body: ResponseBody) -> Vec<usize> {
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = vec![0];
        loop {
            match std::pin::Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Ready(Some(_)) => *turns.last_mut().unwrap() += 1,
                Poll::Ready(None) => return turns,
                Poll::Pending => turns.push(0),
            }
        }
    }

    #[test]
    fn a_long_answer_lets_others_go_on_again_and_again() {
        let pieces = |count| (0..count).map(|_| Bytes::from_static(b"piece"));
        assert_eq!(turns(ResponseBody::pieces(pieces(2 * PIECES + 2))), [PIECES, PIECES, 2]);
        let compressed = turns(ResponseBody::gzip(pieces(10)));
        assert!(compressed.len() >= 10 && compressed.iter().all(|n| *n <= PIECES_COMPRESSED));
    }

    #[test]
    fn what_is_held_until_silence_is_let_go_when_nothing_is_to_be_sent() {
        struct Told(std::sync::Arc<()>);
        let held = std::sync::Arc::new(());
        let first = stream::iter([Bytes::from_static(b"state")]);
        let body = ResponseBody::stream(first.chain(stream::pending()).boxed());
        let mut body = body.until_silent(Told(held.clone()));
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || std::pin::Pin::new(&mut body).poll_frame(&mut context).is_pending();
        assert!(!poll());
        assert_eq!(std::sync::Arc::strong_count(&held), 2);
        assert!(poll());
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
        let _ = Told(held).0;
    }
}
