//! The body of an answer: all at once, compressed piece by piece, or the events of a watch.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body::{Body, Frame, SizeHint};

/// How much is written or compressed at a time: a large list must not hold up other requests.
pub(super) const PIECE: usize = 64 * 1024;

/// The body of an answer: all at once, or the events of a watch as they happen.
pub struct ResponseBody(Content);

enum Content {
    Whole(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl ResponseBody {
    /// A body of pieces that come one by one.
    pub(crate) fn stream(pieces: BoxStream<'static, Bytes>) -> Self {
        Self(Content::Stream(pieces))
    }

    /// A body whose pieces are made when there is room to send them: what a client does not
    /// read takes no memory.
    pub(crate) fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self::stream(stream::iter(pieces).boxed())
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
        }
    }

    /// The same, compressed.
    pub(crate) fn gzip(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let pieces = stream::unfold((Some(encoder), pieces), |(encoder, pieces)| {
            std::future::ready(encoder.map(|encoder| compress(encoder, pieces)))
        });
        Self::stream(pieces.filter(|piece| std::future::ready(!piece.is_empty())).boxed())
    }
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
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(events) => {
                events.as_mut().poll_next(context).map(|item| item.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
