//! Reads a file from its beginning to its end through a window, in large steps.

use std::io;

use super::files::{File, Files};

/// How much is read at once, at least.
const WINDOW: usize = 1024 * 1024;

/// A file, and a part of it in memory.
pub(super) struct Reader {
    file: Box<dyn File>,
    /// How large the file was when it was opened; what is appended later does not count.
    size: u64,
    window: Vec<u8>,
    /// Where in the file the window begins.
    start: u64,
    /// How much of the window is filled.
    filled: usize,
}

impl Reader {
    pub(super) fn open(files: &dyn Files, name: &str) -> io::Result<Self> {
        let file = files.open(name)?;
        let size = file.size()?;
        Ok(Self { file, size, window: Vec::new(), start: 0, filled: 0 })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// So many bytes from an offset on; they must lie within the file.
    pub(super) fn bytes(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = offset + length as u64;
        if offset < self.start || end > self.start + self.filled as u64 {
            self.fill(offset, length)?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.window[from..from + length])
    }

    fn fill(&mut self, offset: u64, length: usize) -> io::Result<()> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        if length > left {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let filled = left.min(length.max(WINDOW));
        if self.window.len() < filled {
            self.window.resize(filled, 0);
        }
        self.filled = 0;
        self.file.read_at(offset, &mut self.window[..filled])?;
        (self.start, self.filled) = (offset, filled);
        Ok(())
    }
}
