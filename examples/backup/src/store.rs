//! What is outside of the cluster: buckets. A real operator would ask a cloud for them.

use std::future::Future;
use std::io;
use std::path::PathBuf;

/// Where buckets are. All of it may be asked again: whoever asks may not know how far it came.
pub trait Store: Send + Sync + 'static {
    /// Makes a bucket, unless it is there.
    fn create(&self, bucket: &str) -> impl Future<Output = io::Result<()>> + Send;

    /// Deletes a bucket and what is in it, if it is there.
    fn delete(&self, bucket: &str) -> impl Future<Output = io::Result<()>> + Send;
}

/// A store that pretends: a bucket is a folder, such as one on a shared volume. Folders are made at
/// once here; what takes its time, as a cloud does, is awaited.
#[derive(Clone, Debug)]
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    /// Buckets are folders in this one.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Store for Folders {
    async fn create(&self, bucket: &str) -> io::Result<()> {
        std::fs::create_dir_all(self.root.join(bucket))
    }

    async fn delete(&self, bucket: &str) -> io::Result<()> {
        match std::fs::remove_dir_all(self.root.join(bucket)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}
