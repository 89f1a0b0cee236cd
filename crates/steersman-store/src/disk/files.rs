//! The file system beneath a store: one directory, and the files in it.
//!
//! Everything the store asks of a disk goes through [`Files`] and [`File`], so that tests can put
//! a disk there that fails, fills up and loses power. What is written is only certain to be there
//! after a `sync`: of the file for its content, of the directory for names that came and went.

use std::fs;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The files of one directory, by name.
pub(super) trait Files: Send + Sync {
    /// What a name is called by people.
    fn path(&self, name: &str) -> PathBuf;

    /// Every name in the directory.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file to write to; one of that name loses its content.
    fn create(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens a file to read.
    fn open(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Opens a file to read and write.
    fn open_to_write(&self, name: &str) -> io::Result<Box<dyn File>>;

    /// Gives a file another name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes what happened to names durable.
    fn sync(&self) -> io::Result<()>;

    /// How many more bytes there is room for, if that can be told.
    fn available(&self) -> Option<u64>;

    /// How a large file is given up.
    fn pieces(&self) -> Pieces;
}

/// How much of a file is given up at once, and how long others may write before more is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    pub(super) bytes: u64,
    pub(super) pause: Duration,
}

/// An open file.
pub(super) trait File: Send {
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer from the offset on.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes everything or fails; then some of it may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file off after so many bytes.
    fn cut(&mut self, size: u64) -> io::Result<()>;

    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether it has no name any more, and so is gone once it is closed.
    fn is_removed(&self) -> bool;
}

/// How files are opened to write. Only their owner may read them: a cluster's secrets are in them.
pub(super) fn private() -> fs::OpenOptions {
    let mut options = fs::File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A real directory.
pub(super) struct Directory {
    path: PathBuf,
    /// Whether to wait for the disk.
    sync: bool,
    /// The directory itself once it was synced: to open it again could fail when it matters.
    opened: OnceLock<fs::File>,
}

impl Directory {
    pub(super) fn new(path: PathBuf, sync: bool) -> Self {
        Self { path, sync, opened: OnceLock::new() }
    }

    fn opened(&self) -> io::Result<&fs::File> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => {
                let opened = fs::File::open(&self.path)?;
                Ok(self.opened.get_or_init(|| opened))
            }
        }
    }

    fn boxed(&self, file: fs::File) -> Box<dyn File> {
        Box::new(RealFile { file, sync: self.sync })
    }
}

/// Makes a directory, and those above it, if it is not there, and makes their names durable. Only
/// its owner may look into it.
pub(super) fn create_directory(path: &Path, sync: bool) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    for created in missing {
        // A path of one part lies in the working directory.
        let above = created.parent().filter(|above| !above.as_os_str().is_empty());
        Directory::new(above.unwrap_or(Path::new(".")).to_owned(), sync).sync()?;
    }
    Ok(())
}

struct RealFile {
    file: fs::File,
    sync: bool,
}

impl Files for Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        fs::read_dir(&self.path)?.map(name).collect()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        let file = private().create(true).truncate(true).open(self.path(name))?;
        Ok(self.boxed(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.boxed(fs::File::open(self.path(name))?))
    }

    fn open_to_write(&self, name: &str) -> io::Result<Box<dyn File>> {
        Ok(self.boxed(fs::File::options().read(true).write(true).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        // Only Unix can open a directory to sync it; elsewhere names are the system's business.
        if self.sync && cfg!(unix) { self.opened()?.sync_all() } else { Ok(()) }
    }

    #[cfg(unix)]
    fn available(&self) -> Option<u64> {
        use std::os::unix::ffi::OsStrExt;
        let disk = rustix::fs::statvfs(self.path.as_os_str().as_bytes()).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }

    #[cfg(not(unix))]
    fn available(&self) -> Option<u64> {
        None
    }

    fn pieces(&self) -> Pieces {
        Pieces { bytes: 4 * 1024 * 1024, pause: Duration::from_millis(10) }
    }
}

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).read_exact(buffer)
    }

    #[cfg(unix)]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, SeekFrom, Write};
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.sync { self.file.sync_data() } else { Ok(()) }
    }

    #[cfg(unix)]
    fn is_removed(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    #[cfg(not(unix))]
    fn is_removed(&self) -> bool {
        false // A file that is open cannot be removed.
    }
}
