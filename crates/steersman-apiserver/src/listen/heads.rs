//! A connection of HTTP/1.1 on which a request that has begun must get on. Between requests a client
//! may be silent for as long as its [place](super::places) lets it; hyper's own clock would run then,
//! too, and cut off whoever asks again at that moment.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::places::Place;

/// How long the head of a request may take to arrive, from its first byte or, for the first request,
/// from the handshake; Kubernetes' time.
const HEAD: Duration = Duration::from_secs(32);

/// A stream that ends when the head of a request does not.
#[derive(Debug)]
pub(super) struct Heads<S> {
    stream: S,
    place: Arc<Place>,
    /// How many requests there were when the one began whose head is awaited.
    begun: Option<u64>,
    /// When to give up; it runs only while a head is awaited.
    deadline: Pin<Box<Sleep>>,
    /// Whether anybody looks: heads in HTTP/2 come among other things.
    watched: bool,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S, place: Arc<Place>, watched: bool) -> Self {
        let begun = place.awaits_request();
        let deadline = Box::pin(tokio::time::sleep(HEAD));
        Self { stream, place, begun, deadline, watched }
    }

    /// Something has come: it is part of a head unless a request is under way.
    fn came(&mut self) {
        let awaited = self.place.awaits_request();
        if awaited.is_some() && awaited != self.begun {
            self.deadline.as_mut().reset(Instant::now() + HEAD);
        }
        self.begun = awaited;
    }

    /// Nothing has come: that is an error where a head has been awaited for too long.
    fn nothing_came(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.begun.is_none() || self.place.awaits_request() != self.begun {
            self.begun = None;
            return Poll::Pending;
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "a request does not get on")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if !self.watched {
            return read;
        }
        match read {
            Poll::Pending => self.nothing_came(context),
            read => {
                self.came();
                read
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::listen::places::{Limits, Places};

    const LONG: Duration = Duration::from_secs(24 * 60 * 60);

    fn connected(watched: bool) -> (DuplexStream, Heads<DuplexStream>, Arc<Place>) {
        let place = Places::new(Limits::of(16)).enter(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let (client, server) = tokio::io::duplex(16);
        (client, Heads::new(server, Arc::clone(&place), watched), place)
    }

    async fn read(heads: &mut Heads<DuplexStream>) -> io::Result<u8> {
        tokio::time::timeout(LONG, heads.read_u8()).await.unwrap_or(Ok(0))
    }

    fn is_late(read: io::Result<u8>) -> bool {
        read.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_is_awaited_from_the_beginning() {
        let (_client, mut heads, _place) = connected(true);
        let start = Instant::now();
        assert!(is_late(read(&mut heads).await));
        assert_eq!(start.elapsed(), HEAD);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_be_silent_between_requests_but_not_within_one() {
        let (mut client, mut heads, place) = connected(true);
        client.write_all(b"ab").await.unwrap();
        assert_eq!(read(&mut heads).await.unwrap(), b'a');
        let request = place.asked();
        assert_eq!(read(&mut heads).await.unwrap(), b'b');
        assert_eq!(read(&mut heads).await.unwrap(), 0, "a body may take longer than a head");
        drop(request);
        assert_eq!(read(&mut heads).await.unwrap(), 0, "nothing has begun");
        client.write_all(b"cd").await.unwrap();
        assert_eq!(read(&mut heads).await.unwrap(), b'c');
        tokio::time::advance(HEAD / 2).await;
        // More of it gives no more time.
        assert_eq!(read(&mut heads).await.unwrap(), b'd');
        let start = Instant::now();
        assert!(is_late(read(&mut heads).await));
        assert_eq!(start.elapsed(), HEAD / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_looks_at_what_is_no_connection_of_requests_or_has_frames() {
        let (mut client, mut heads, place) = connected(true);
        drop(place.asked());
        place.left();
        client.write_all(b"a").await.unwrap();
        assert_eq!(read(&mut heads).await.unwrap(), b'a');
        assert_eq!(read(&mut heads).await.unwrap(), 0);
        let (_client, mut heads, _place) = connected(false);
        assert_eq!(read(&mut heads).await.unwrap(), 0);
    }
}
