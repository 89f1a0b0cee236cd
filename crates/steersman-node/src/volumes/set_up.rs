//! Makes volumes on the file system as they were planned, and removes them.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::host_path::{self, HostPathError};
use super::mounter::{Mounter, NewMount};
use super::ownership::{Group, give_to};
use super::plan::{Backing, Medium, VolumePlan, fs_group};
use super::writer::{self, WriteError, allow_missing};

/// Why a volume could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    #[error(transparent)]
    HostPath(#[from] HostPathError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("path {path:?} does not exist")]
    Missing { path: std::path::PathBuf },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// To whom a Pod's volumes are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) group: Option<u32>,
    /// Whether volumes that outlive the Pod are left alone if their root has the group.
    pub(crate) on_root_mismatch: bool,
}

impl Ownership {
    /// As a Pod says.
    pub(crate) fn of(pod: &Pod) -> Self {
        let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        let policy = context.and_then(|it| it.fs_group_change_policy.as_deref());
        Self { group: fs_group(pod), on_root_mismatch: policy == Some("OnRootMismatch") }
    }

    fn give(self, path: &Path, read_only: bool, lasting: bool) -> io::Result<()> {
        let only_if_root_differs = lasting && self.on_root_mismatch;
        match self.group {
            Some(id) => give_to(path, Group { id, read_only, only_if_root_differs }),
            None => Ok(()),
        }
    }
}

/// Makes a volume. What is there already stays, but for files that have changed.
pub(crate) fn set_up(
    volume: &VolumePlan,
    ownership: Ownership,
    mounter: &impl Mounter,
    now: Timestamp,
) -> Result<(), SetUpError> {
    let path = &volume.path;
    match &volume.backing {
        Backing::Empty(medium) => {
            if make(path, medium, mounter)? {
                ownership.give(path, false, false)?;
            }
        }
        Backing::Files { medium, payload, nested } => {
            make(path, medium, mounter)?;
            for inner in nested {
                DirBuilder::new().recursive(true).mode(0o755).create(path.join(inner))?;
            }
            writer::write(path, payload, now, || ownership.give(path, true, false))?;
        }
        Backing::Host { kind } => host_path::check(path, kind)?,
        Backing::Local => {
            if !path.exists() {
                return Err(SetUpError::Missing { path: path.clone() });
            }
            if !volume.read_only {
                ownership.give(path, false, true)?;
            }
        }
        Backing::Image { .. } => {}
    }
    Ok(())
}

/// Makes a directory that everybody may use, on its medium; says whether it is new.
fn make(path: &Path, medium: &Medium, mounter: &impl Mounter) -> io::Result<bool> {
    let mount = match medium {
        Medium::Disk => None,
        Medium::Memory { size } => Some(NewMount::Tmpfs { target: path.to_owned(), size: *size }),
        Medium::HugePages { page } => {
            Some(NewMount::HugePages { target: path.to_owned(), page: page.clone() })
        }
    };
    let there = match &mount {
        Some(_) => mounter.is_mounted(path)?,
        None => path.is_dir(),
    };
    if there {
        return Ok(false);
    }
    DirBuilder::new().recursive(true).mode(0o777).create(path)?;
    if let Some(mount) = &mount {
        mounter.mount(mount)?;
    }
    // Whatever the mask of this process is.
    fs::set_permissions(path, Permissions::from_mode(0o777))?;
    Ok(true)
}

/// Removes a Pod's directory with all that is mounted in it. Nothing is removed as long as something
/// is still mounted: it could be somebody's data.
pub(crate) fn tear_down(pod_directory: &Path, mounter: &impl Mounter) -> io::Result<()> {
    for target in mounter.mounted_below(pod_directory)? {
        mounter.unmount(&target)?;
    }
    let left = mounter.mounted_below(pod_directory)?;
    if let Some(path) = left.first() {
        return Err(io::Error::other(format!("{} is still mounted", path.display())));
    }
    allow_missing(fs::remove_dir_all(pod_directory))
}
