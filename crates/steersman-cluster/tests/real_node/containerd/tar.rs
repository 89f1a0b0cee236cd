//! Writes the oldest tar format that everybody reads.

const BLOCK: usize = 512;

/// An archive under way.
#[derive(Default)]
pub(crate) struct Tar {
    bytes: Vec<u8>,
}

/// What an entry is.
pub(crate) enum Entry<'a> {
    Directory,
    File { mode: u32, content: &'a [u8] },
    Link(&'a str),
}

impl Tar {
    pub(crate) fn add(&mut self, name: &str, entry: &Entry<'_>) {
        let (kind, mode, content, target): (u8, u32, &[u8], &str) = match entry {
            Entry::Directory => (b'5', 0o755, &[], ""),
            Entry::File { mode, content } => (b'0', *mode, content, ""),
            Entry::Link(target) => (b'2', 0o777, &[], target),
        };
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, name.as_bytes());
        put(100, format!("{mode:07o}\0").as_bytes());
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, target.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}
