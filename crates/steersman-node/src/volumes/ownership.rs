//! Gives a volume to the group of its Pod, so that containers that run as other users can use it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

const READ_WRITE: u32 = 0o660;
const READ: u32 = 0o440;
const EXECUTE: u32 = 0o110;
/// What is made in a directory later belongs to its group too.
const SET_GROUP: u32 = 0o2000;

/// Who is to own a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) id: u32,
    pub(super) read_only: bool,
    /// Whether all of it is left alone if its root is as it should be.
    pub(super) only_if_root_differs: bool,
}

/// Gives everything in a directory to a group. What cannot be changed, such as a file on a foreign
/// file system, is told and passed over, as a kubelet does.
pub(super) fn give_to(directory: &Path, group: Group) -> io::Result<()> {
    if group.only_if_root_differs && !group.differs(&fs::metadata(directory)?) {
        return Ok(());
    }
    let mut ahead = vec![directory.to_owned()];
    // Roots last: an interrupted change is seen, and done again.
    let mut directories = Vec::new();
    while let Some(path) = ahead.pop() {
        for entry in fs::read_dir(&path)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_dir() {
                ahead.push(path);
            } else {
                group.change(&path, &metadata);
            }
        }
        directories.push(path);
    }
    for path in directories.iter().rev() {
        group.change(path, &fs::symlink_metadata(path)?);
    }
    Ok(())
}

impl Group {
    fn mask(self, directory: bool) -> u32 {
        let files = if self.read_only { READ } else { READ_WRITE };
        if directory { files | EXECUTE | SET_GROUP } else { files }
    }

    fn differs(self, root: &Metadata) -> bool {
        let mask = self.mask(true);
        root.gid() != self.id || !root.is_dir() || root.mode() & mask != mask
    }

    fn change(self, path: &Path, metadata: &Metadata) {
        if let Err(error) = lchown(path, None, Some(self.id)) {
            tracing::warn!(?path, %error, "cannot give a file to the group of its Pod");
        }
        // The mode of a link means nothing, and changing it would change what it leads to.
        if metadata.is_symlink() {
            return;
        }
        let mode = (metadata.mode() & 0o7777) | self.mask(metadata.is_dir());
        if let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode)) {
            tracing::warn!(?path, %error, "cannot change the mode of a file");
        }
    }
}
