//! The store's files: a log and a snapshot whose checksums are right, whatever they hold.
//!
//! Bytes alone would never pass a checksum, so an input is what stands in the frames, and the
//! target does the sums: a byte for each frame says how its header lies, two how long it is.

use std::fs;
use std::path::{Path, PathBuf};

use steersman_store::disk::{DiskStore, Options, backup};
use tokio::runtime::Runtime;

/// The store's identity.
const STORE: u64 = 7;

/// What a file holds, as its header and its frames say it.
struct File {
    magic: &'static [u8; 8],
    kind: u8,
    revision: u64,
}

/// A directory with one segment of a log.
pub(crate) fn log(bytes: &[u8]) {
    let file = File { magic: b"STEERLOG", kind: 1, revision: 2 };
    let directory = Directory::new("log");
    let name = format!("{:020}.log", file.revision);
    fs::write(directory.0.join(name), file.made_of(bytes)).expect("a file can be written");
    let first = open(&directory.0);
    // What was cut off stays cut off, and what was read is read again.
    if let Some(first) = first {
        assert_eq!(open(&directory.0), Some(first), "a store that opened opens as it was");
    }
}

/// A snapshot in a file of its own, and a store that is made of it.
pub(crate) fn snapshot(bytes: &[u8]) {
    let file = File { magic: b"STEERSNP", kind: 2, revision: 9 };
    let directory = Directory::new("snapshot");
    let path = directory.0.join("backup");
    fs::write(&path, file.made_of(bytes)).expect("a file can be written");
    let Ok(status) = backup::status(&path) else { return };
    let data = directory.0.join("data");
    let Ok(restored) = backup::restore(&path, &data, 0) else { return };
    assert_eq!(restored.keys, status.keys, "what is restored is what was saved");
    if let Some((revision, _)) = open(&data) {
        assert_eq!(revision, restored.revision.0, "it goes on where it was saved");
    }
}

/// Opens a store: the revision that it is at, and how many keys it has.
fn open(directory: &Path) -> Option<(u64, usize)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime: Runtime = runtime.expect("a runtime can be made");
    runtime.block_on(async {
        let options = Options { sync: false, ..Options::default() };
        let (store, opened) = DiskStore::open(directory, options).await.ok()?;
        store.close().await;
        Some((opened.revision.0, opened.keys))
    })
}

impl File {
    fn made_of(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(1u32.to_le_bytes());
        out.extend([0; 4]);
        out.extend(STORE.to_le_bytes());
        out.extend(self.revision.to_le_bytes());
        out.extend([0; 4]);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        let mut rest = bytes;
        let mut first = if self.kind == 1 { self.revision } else { 0 };
        while let [lie, low, high, more @ ..] = rest {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(more.len());
            let (payload, more) = more.split_at(length);
            first = self.frame(&mut out, *lie, first, payload);
            rest = more;
        }
        out.extend(rest); // an end that a crash tore
        out
    }

    /// Adds a frame; says which revision, or entry, comes next.
    fn frame(&self, out: &mut Vec<u8>, lie: u8, first: u64, payload: &[u8]) -> u64 {
        let count = u32::from(lie & 15);
        let shift = u64::from(lie >> 4 & 3);
        let oldest = if self.kind == 1 { first.saturating_sub(1 + shift) } else { self.revision };
        let length = match lie >> 6 {
            3 => u32::MAX,
            2 => payload.len() as u32 + 1,
            _ => payload.len() as u32,
        };
        let offset = out.len() as u64;
        let mut header = b"FRAM".to_vec();
        header.extend(length.to_le_bytes());
        header.extend((first + u64::from(shift == 3)).to_le_bytes());
        header.extend(oldest.to_le_bytes());
        header.extend(count.to_le_bytes());
        header.extend(crc32fast::hash(payload).to_le_bytes());
        header.extend([0; 4]);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header);
        hasher.update(&[self.kind]);
        for number in [STORE, self.revision, offset] {
            hasher.update(&number.to_le_bytes());
        }
        header.extend(hasher.finalize().to_le_bytes());
        out.extend(header);
        out.extend(payload);
        first + u64::from(count)
    }
}

/// A directory of this thread's own; gone when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        // In memory where there is such a place: nothing here is worth a disk.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let thread = std::thread::current().id();
        let name = format!("steersman-fuzz-{name}-{}-{thread:?}", std::process::id());
        let directory = above.join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory can be made");
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
