//! A connection whose other end must read: what was written and is not taken for a minute ends
//! it, so that a client that stopped reading keeps neither its answers in memory nor its place.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a write may wait for the other end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream that ends when a write gets nowhere.
#[derive(Debug)]
pub(super) struct Impatient<S> {
    stream: S,
    /// When to give up; it runs only while a write waits.
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Impatient<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(tokio::time::sleep(PATIENCE)), waiting: false }
    }

    /// Passes progress on; without any, waits no longer than there is patience.
    fn judge<T>(
        &mut self,
        progress: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.waiting = false;
            return progress;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + PATIENCE);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(progress, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(progress, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(progress, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(progress, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_reads_ends_the_connection() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let start = Instant::now();
        let written = Impatient::new(ours).write_all(&[0; 64]).await;
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert_eq!(start.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_borne_with_as_long_as_it_reads() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let reader = tokio::spawn(async move {
            let mut piece = [0; 16];
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
        });
        Impatient::new(ours).write_all(&[0; 64]).await.unwrap();
        reader.await.unwrap();
    }
}
