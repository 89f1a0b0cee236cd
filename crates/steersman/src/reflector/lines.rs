//! The lines of a watch, without copies where a line arrives in one piece.

use std::io::BufRead;
use std::pin::Pin;

use bytes::Bytes;
use http_body::Body as _;
use kube::client::Body;

/// No event is as long as this; a server that sends none of them ends must not fill the memory.
const LINE_MAX: usize = 64 << 20;

/// Splits a body into lines.
pub(super) struct Lines {
    body: Body,
    /// What was received and not yet given.
    chunk: Bytes,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self { body, chunk: Bytes::new(), partial: Vec::new() }
    }

    /// The next line that is not empty; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            while let Some(line) = self.split() {
                if !line.trim_ascii().is_empty() {
                    return Some(Ok(line));
                }
            }
            if self.partial.len() > LINE_MAX {
                return Some(Err("an event is too long".to_owned()));
            }
            match next_data(&mut self.body).await {
                Some(Ok(data)) => self.chunk = data,
                Some(Err(error)) => return Some(Err(error.to_string())),
                // What follows the last line break may be an event that was cut: who reads it
                // will notice.
                None if self.partial.is_empty() => return None,
                None => return Some(Ok(std::mem::take(&mut self.partial).into())),
            }
        }
    }

    /// Takes a line off the chunk, or puts aside what is left of it.
    fn split(&mut self) -> Option<Bytes> {
        let length = (&self.chunk[..]).skip_until(b'\n').unwrap_or(0);
        let piece = self.chunk.split_to(length);
        if !piece.ends_with(b"\n") {
            self.partial.extend_from_slice(&piece);
            return None;
        }
        if self.partial.is_empty() {
            return Some(piece);
        }
        self.partial.extend_from_slice(&piece);
        Some(std::mem::take(&mut self.partial).into())
    }
}

/// The next piece of data of a body.
pub(super) async fn next_data(body: &mut Body) -> Option<Result<Bytes, kube::Error>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            Ok(Err(_trailers)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}
