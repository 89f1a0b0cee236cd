//! Rotates a log on the disk.

use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

use super::plan::{COMPRESSED, LogPolicy, Rotation, UNFINISHED, plan};

/// Tells a runtime that the log of a container was renamed.
pub(crate) trait ReopenLog: Send + Sync {
    fn reopen(&self, container: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// Why a log was not rotated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RotateError {
    #[error("cannot rotate {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("failed to reopen container log {container:?}: {why}")]
    Reopen { container: String, why: String },
}

/// Rotates the log of a running container if it is too large; says whether it was.
pub(crate) async fn rotate(
    container: &str,
    log: &Path,
    policy: LogPolicy,
    runtime: &impl ReopenLog,
    now: Timestamp,
) -> Result<bool, RotateError> {
    let reopen = || async {
        runtime
            .reopen(container)
            .await
            .map_err(|why| RotateError::Reopen { container: container.to_owned(), why })
    };
    let size = match fs::metadata(log) {
        Ok(metadata) => metadata.len(),
        // A rotation was interrupted: the container still writes into the file with the other name.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            reopen().await?;
            0
        }
        Err(source) => return Err(RotateError::Io { path: log.to_owned(), source }),
    };
    if size < policy.size_max {
        return Ok(false);
    }
    let rotated = {
        // Something large may have to be compressed.
        let log = log.to_owned();
        let prepared = tokio::task::spawn_blocking(move || prepared(&log, policy, now));
        prepared.await.map_err(|error| RotateError::Io {
            path: container.into(),
            source: io::Error::other(error),
        })??
    };
    at(log, fs::rename(log, &rotated))?;
    if let Err(error) = reopen().await {
        // It is tried again the next time.
        at(&rotated, fs::rename(&rotated, log))?;
        return Err(error);
    }
    Ok(true)
}

/// Makes room for another file, and says how it is called.
fn prepared(log: &Path, policy: LogPolicy, now: Timestamp) -> Result<PathBuf, RotateError> {
    let directory = log.parent().unwrap_or(Path::new("."));
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let Rotation { remove, compress, rotated } =
        plan(&name, &at(directory, before(directory, &name))?, policy, now);
    for old in remove.iter().map(|name| directory.join(name)) {
        at(&old, fs::remove_file(&old))?;
    }
    for plain in compress.iter().map(|name| directory.join(name)) {
        at(&plain, compressed(&plain))?;
    }
    Ok(directory.join(rotated))
}

/// The files that were rotated before.
fn before(directory: &Path, log: &str) -> io::Result<Vec<String>> {
    let prefix = format!("{log}.");
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) {
            found.push(name);
        }
    }
    Ok(found)
}

fn compressed(path: &Path) -> io::Result<()> {
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut plain = File::open(path)?;
    let mode = plain.metadata()?.mode() & 0o7777;
    let unfinished = named(UNFINISHED);
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&unfinished)?;
    let mut encoder = GzEncoder::new(file, Compression::default());
    io::copy(&mut plain, &mut encoder)?;
    encoder.finish()?;
    fs::rename(&unfinished, named(COMPRESSED))?;
    fs::remove_file(path)
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, RotateError> {
    result.map_err(|source| RotateError::Io { path: path.to_owned(), source })
}
