//! The frames of WebSocket (RFC 6455), as far as a watch needs them: messages of one frame to the
//! client, and of what the client sends whether it asks for a sign of life or goes.

use std::io;

use bytes::{Buf, BytesMut};

/// The last frame of a message.
const LAST: u8 = 0x80;

/// The bit that says that a frame is masked, as all are that a client sends.
const MASKED: u8 = 0x80;

/// The largest frame that is no message.
const CONTROL_MAX: u64 = 125;

/// The reason for a goodbye: everything was said.
const NORMAL: u16 = 1000;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

/// Appends a message.
pub(super) fn write(out: &mut Vec<u8>, kind: Kind, message: &[u8]) {
    out.push(LAST | kind as u8);
    match message.len() {
        short @ 0..=125 => out.push(short as u8),
        length @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(message);
}

/// Says that nothing follows.
pub(super) fn goodbye() -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, Kind::Close, &NORMAL.to_be_bytes());
    out
}

/// What a client has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It wants to know whether somebody is there, and to read this in the answer.
    Ping(Vec<u8>),
    /// It goes.
    Goodbye,
    /// Something that nobody listens to.
    Other,
}

/// What has come from a client. Of messages nothing is kept, however long they are.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: BytesMut,
    /// How much of what comes is still of a message.
    skipped: u64,
}

impl Inbox {
    /// Where to put what comes next, with room for so much.
    pub(super) fn room(&mut self, bytes: usize) -> &mut BytesMut {
        self.bytes.reserve(bytes);
        &mut self.bytes
    }

    /// The next frame, if enough of it has come.
    pub(super) fn next(&mut self) -> io::Result<Option<Heard>> {
        self.skip();
        let Some((head, length, mask)) = self.head()? else { return Ok(None) };
        let opcode = self.bytes[0] & 0x0f;
        let is_control = opcode & 0x08 != 0;
        if !is_control {
            self.bytes.advance(head);
            self.skipped = length;
            self.skip();
            return Ok(Some(Heard::Other));
        }
        let length = usize::try_from(length).map_err(|_| broken())?;
        if self.bytes.len() < head + length {
            return Ok(None);
        }
        self.bytes.advance(head);
        let payload = self.bytes.split_to(length);
        let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        Ok(Some(match opcode {
            opcode if opcode == Kind::Ping as u8 => Heard::Ping(payload.collect()),
            opcode if opcode == Kind::Close as u8 => Heard::Goodbye,
            _ => Heard::Other,
        }))
    }

    fn skip(&mut self) {
        let now = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.advance(now);
        self.skipped -= now as u64;
    }

    /// How long the head of a frame is and what follows it, and its mask.
    fn head(&self) -> io::Result<Option<(usize, u64, [u8; 4])>> {
        let &[first, second, ref rest @ ..] = &self.bytes[..] else { return Ok(None) };
        if second & MASKED == 0 {
            return Err(broken());
        }
        let (length, rest) = match second & !MASKED {
            126 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        if first & 0x08 != 0 && length > CONTROL_MAX {
            return Err(broken());
        }
        let mask = rest.split_first_chunk();
        Ok(mask.map(|(mask, rest)| (self.bytes.len() - rest.len(), length, *mask)))
    }
}

/// A client does not speak the protocol.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no frame of WebSocket")
}

#[cfg(test)]
mod tests {
    use super::{Heard, Inbox, Kind, write};

    /// A frame as a client sends it.
    fn sent(kind: Kind, message: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        write(&mut frame, kind, message);
        let mask = [1, 2, 3, 4];
        let head = frame.len() - message.len();
        frame[1] |= 0x80;
        let masked = message.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        let masked: Vec<u8> = masked.collect();
        frame.truncate(head);
        [frame, mask.to_vec(), masked].concat()
    }

    #[test]
    fn a_frame_says_how_long_it_is() {
        for (length, head) in [
            (5, vec![0x81, 5]),
            (300, vec![0x81, 126, 1, 44]),
            (70_000, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]),
        ] {
            let mut out = Vec::new();
            write(&mut out, Kind::Text, &vec![b'a'; length]);
            assert_eq!(out.len(), head.len() + length);
            assert!(out.starts_with(&head));
        }
    }

    #[test]
    fn frames_are_heard_however_they_are_cut_and_messages_are_not_kept() {
        let all = [
            sent(Kind::Text, &[b'x'; 70_000]),
            sent(Kind::Ping, b"there?"),
            sent(Kind::Binary, &[0; 200]),
            sent(Kind::Close, &[]),
        ]
        .concat();
        for cut in [1, 7, 4096, all.len()] {
            let mut inbox = Inbox::default();
            let mut heard = Vec::new();
            for piece in all.chunks(cut) {
                inbox.room(piece.len()).extend_from_slice(piece);
                while let Some(next) = inbox.next().unwrap() {
                    heard.push(next);
                }
                assert!(inbox.bytes.len() < 200);
            }
            let ping = Heard::Ping(b"there?".to_vec());
            assert_eq!(heard, [Heard::Other, ping, Heard::Other, Heard::Goodbye]);
        }
    }

    #[test]
    fn what_is_not_masked_or_too_long_for_a_sign_is_no_frame() {
        let mut plain = Vec::new();
        write(&mut plain, Kind::Text, b"hello");
        for frame in [plain, sent(Kind::Ping, &[0; 126])] {
            let mut inbox = Inbox::default();
            inbox.room(frame.len()).extend_from_slice(&frame);
            assert!(inbox.next().is_err());
        }
    }
}
