//! Where the stores keep what is measured: all on one file system, which must be a disk's.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory under which every store gets one of its own.
pub(crate) struct Place {
    root: PathBuf,
}

/// A directory that goes when dropped.
pub(crate) struct Directory {
    path: PathBuf,
}

impl Place {
    /// Below the given directory, or beside this program, which is where cargo builds.
    pub(crate) fn new(given: Option<&Path>) -> Result<Self, String> {
        let parent = match given {
            Some(given) => given.to_owned(),
            None => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                program.parent().ok_or("this program lies nowhere")?.to_owned()
            }
        };
        let root = parent.join(format!("bench-store-{}", std::process::id()));
        fs::create_dir_all(&root).map_err(|error| failed(&root, &error))?;
        let root = root.canonicalize().map_err(|error| failed(&root, &error))?;
        Ok(Self { root })
    }

    /// An empty directory.
    pub(crate) fn empty(&self, name: &str) -> Result<Directory, String> {
        let path = self.root.join(name);
        fs::create_dir_all(&path).map_err(|error| failed(&path, &error))?;
        Ok(Directory { path })
    }

    /// Says where it is, and on what.
    pub(crate) fn description(&self) -> String {
        let kind = fs::read_to_string("/proc/self/mountinfo").ok().and_then(|mounts| {
            let mounts = mounts.lines().filter_map(mount);
            let around = mounts.filter(|(point, _)| self.root.starts_with(point));
            // The last of several on one point covers the others.
            around.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
        });
        let kind = kind.unwrap_or_else(|| "an unknown file system".to_owned());
        let warning =
            if kind == "tmpfs" { ", which is no disk: nothing here is durable" } else { "" };
        format!("in {} on {kind}{warning}", self.root.display())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How much of the disk it takes once that has not changed for a second: stores give space
    /// back when they come to it.
    pub(crate) async fn settled_megabytes(&self) -> Result<f64, String> {
        let mut last = self.megabytes()?;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.megabytes()?;
            if now == last {
                return Ok(now);
            }
            last = now;
        }
    }

    /// How much of the disk it takes, in megabytes.
    pub(crate) fn megabytes(&self) -> Result<f64, String> {
        Ok(allocated(&self.path)? as f64 / 1e6)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The bytes that the file system has set aside for a directory, as `du` counts them. Files that
/// go meanwhile do not count.
fn allocated(directory: &Path) -> Result<u64, String> {
    const BLOCK: u64 = 512;
    let mut bytes = 0;
    for entry in fs::read_dir(directory).map_err(|error| failed(directory, &error))? {
        let path = entry.map_err(|error| failed(directory, &error))?.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        bytes += if metadata.is_dir() { allocated(&path)? } else { metadata.blocks() * BLOCK };
    }
    Ok(bytes)
}

/// The mount point and the kind of file system of a line of `mountinfo`.
fn mount(line: &str) -> Option<(&str, &str)> {
    let (mount, system) = line.split_once(" - ")?;
    Some((mount.split(' ').nth(4)?, system.split(' ').next()?))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_tells_its_point_and_its_file_system() {
        let line = "36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext4 /dev/root rw";
        assert_eq!(mount(line), Some(("/mnt/parent", "ext4")));
        assert_eq!(mount("nothing"), None);
    }
}
