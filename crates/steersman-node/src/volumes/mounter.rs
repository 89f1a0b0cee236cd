//! What is mounted on the node.

use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags};

use super::system::{answered, bytes};

/// The kernel takes so much and cuts off the rest.
const OPTIONS_MAX: usize = 4096;

/// Something to be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewMount {
    /// A directory in memory, of at most this many bytes.
    Tmpfs { target: PathBuf, size: Option<i64> },
    /// A directory in huge pages of this size.
    HugePages { target: PathBuf, page: String },
    /// What is here also there.
    Bind { source: PathBuf, target: PathBuf },
    /// The same, but there it can only be read.
    ReadOnlyBind { source: PathBuf, target: PathBuf },
    /// A file system of this kind that can only be read.
    ReadOnly { kind: String, source: String, options: String, target: PathBuf },
}

/// Mounts and unmounts.
pub(crate) trait Mounter: Send + Sync {
    fn mount(&self, mount: &NewMount) -> io::Result<()>;

    fn unmount(&self, target: &Path) -> io::Result<()>;

    /// Everything that is mounted in a directory or on it, what was mounted last first.
    fn mounted_below(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Whether something is mounted on this very path.
    fn is_mounted(&self, target: &Path) -> io::Result<bool> {
        Ok(self.mounted_below(target)?.iter().any(|path| path == target))
    }
}

/// The mounts of this process, which needs the right to change them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinuxMounter;

impl Mounter for LinuxMounter {
    fn mount(&self, mount: &NewMount) -> io::Result<()> {
        let nothing = MountFlags::empty();
        answered(match mount {
            NewMount::Tmpfs { target, size } => {
                let size = size.map(|size| format!("size={size}")).unwrap_or_default();
                let size = text(size)?;
                rustix::mount::mount("tmpfs", bytes(target), "tmpfs", nothing, size.as_c_str())
            }
            NewMount::HugePages { target, page } => {
                let page = text(format!("pagesize={page}"))?;
                rustix::mount::mount("nodev", bytes(target), "hugetlbfs", nothing, page.as_c_str())
            }
            NewMount::Bind { source, target } => {
                rustix::mount::mount_bind(bytes(source), bytes(target))
            }
            NewMount::ReadOnlyBind { source, target } => {
                let again = MountFlags::BIND | MountFlags::RDONLY;
                rustix::mount::mount_bind(bytes(source), bytes(target))
                    .and_then(|()| rustix::mount::mount_remount(bytes(target), again, c""))
            }
            NewMount::ReadOnly { kind, source, options, target } => {
                let (source, kind) = (text(source.clone())?, text(kind.clone())?);
                let Fitting { options, directory: _open } = Fitting::of(options)?;
                let options = text(options)?;
                let read_only = MountFlags::RDONLY;
                rustix::mount::mount(&*source, bytes(target), &*kind, read_only, options.as_c_str())
            }
        })
    }

    fn unmount(&self, target: &Path) -> io::Result<()> {
        answered(rustix::mount::unmount(bytes(target), UnmountFlags::NOFOLLOW))
    }

    fn mounted_below(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        // Mounts are listed by their real paths.
        let directory = match directory.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            real => real?,
        };
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let below = mount_points(&mounts).into_iter().filter(|path| path.starts_with(&directory));
        Ok(below.rev().collect())
    }
}

/// Options that the kernel takes, however many layers they name.
struct Fitting {
    options: String,
    /// The directory that they name by its descriptor, which has to be open meanwhile.
    directory: Option<OwnedFd>,
}

impl Fitting {
    /// The same options. If they are too long, the directory that all layers are in is named by its
    /// descriptor.
    fn of(options: &str) -> io::Result<Self> {
        if options.len() < OPTIONS_MAX {
            return Ok(Self { options: options.to_owned(), directory: None });
        }
        let Some(common) = common_directory(options) else { return Err(too_long(options)) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = answered(rustix::fs::open(common, flags, Mode::empty()))?;
        let short = format!("/proc/self/fd/{}/", directory.as_raw_fd());
        let options = options.replace(common, &short);
        if options.len() >= OPTIONS_MAX {
            return Err(too_long(&options));
        }
        Ok(Self { options, directory: Some(directory) })
    }
}

/// The directory that all layers are below, with the slash at its end.
fn common_directory(options: &str) -> Option<&str> {
    let layers = options.split(',').find_map(|option| option.strip_prefix("lowerdir="))?;
    let mut layers = layers.split(':');
    let first = layers.next()?;
    let common = layers.fold(first.len(), |length, layer| {
        let same = first.bytes().zip(layer.bytes()).take_while(|(one, other)| one == other);
        length.min(same.count())
    });
    let end = first.get(..common)?.rfind('/')?;
    Some(&first[..=end]).filter(|directory| directory.len() > 1)
}

fn too_long(options: &str) -> io::Error {
    io::Error::other(format!("an image of too many layers: {} bytes of options", options.len()))
}

fn text(text: String) -> io::Result<CString> {
    CString::new(text).map_err(io::Error::from)
}

/// The mount points of a `mountinfo`, in their order.
fn mount_points(text: &str) -> Vec<PathBuf> {
    let fifth = |line: &str| line.split(' ').nth(4).map(unescaped);
    text.lines().filter_map(fifth).collect()
}

/// Spaces and the like are written as `\040`.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_spaces() {
        let text = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                    40 22 0:30 / /a\\040b/c\\134d rw shared:1 master:2 - tmpfs tmpfs rw\n";
        let found = mount_points(text);
        assert_eq!(found, [PathBuf::from("/"), PathBuf::from("/a b/c\\d")]);
    }

    #[test]
    fn many_layers_are_named_below_one_directory() {
        let here = std::env::temp_dir();
        let layers = |count: usize| {
            let layer = |number| format!("{}/a-long-name-of-layers/{number}/fs", here.display());
            let layers: Vec<String> = (0..count).map(layer).collect();
            format!("index=off,lowerdir={}", layers.join(":"))
        };
        let few = layers(3);
        assert_eq!(Fitting::of(&few).unwrap().options, few);
        let below = here.join("a-long-name-of-layers");
        let common = format!("{}/", below.display());
        assert_eq!(common_directory(&few), Some(common.as_str()));
        assert_eq!(common_directory("lowerdir=/a/1:/a/12"), Some("/a/"));
        for nothing in ["lowerdir=/a:/b", "lowerdir=a", "index=off"] {
            assert_eq!(common_directory(nothing), None, "{nothing}");
        }
        std::fs::create_dir_all(&below).unwrap();
        let many = Fitting::of(&layers(150)).unwrap();
        let number = many.directory.as_ref().unwrap().as_raw_fd();
        let begins = format!("index=off,lowerdir=/proc/self/fd/{number}/0/fs:/proc/self/fd/");
        assert!(many.options.starts_with(&begins), "{}", many.options);
        assert!(many.options.len() < OPTIONS_MAX);
        assert!(Fitting::of(&layers(500)).is_err());
        std::fs::remove_dir(&below).unwrap();
    }

    #[test]
    fn the_kernel_lists_its_own_file_system() {
        let found = LinuxMounter.mounted_below(Path::new("/proc")).unwrap();
        assert!(found.contains(&PathBuf::from("/proc")), "{found:?}");
        assert!(LinuxMounter.is_mounted(Path::new("/proc")).unwrap());
        assert!(!LinuxMounter.is_mounted(Path::new("/proc/self")).unwrap());
        assert!(!LinuxMounter.is_mounted(Path::new("/no/such/path")).unwrap());
    }
}
