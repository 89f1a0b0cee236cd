//! A file that is put aside when it is full, and begun anew. What was put aside too long ago, or is
//! too much, is removed. Names are those that kube-apiserver gives: `audit-2025-01-31T13-05-59.000.log`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How the moment at which a file was put aside is written into its name.
const FORMAT: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// When files are put aside, and which of them stay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// How large a file gets, in bytes.
    pub(super) size: u64,
    /// How long those stay that were put aside; for ever if it is zero.
    pub(super) age: Duration,
    /// How many of them stay; all if it is zero.
    pub(super) backups: usize,
}

/// A file that is put aside when it is full.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    limits: Limits,
    file: File,
    /// How much of it is whole lines.
    size: u64,
    /// When it was last put aside: the next time is later, by at least what names tell apart.
    last: Timestamp,
}

impl Rotating {
    /// Opens a file, or goes on with one that is there.
    pub(super) fn open(path: &Path, limits: Limits) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let file = opened(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), limits, file, size, last: Timestamp::UNIX_EPOCH })
    }

    /// Appends lines at a moment. If that fails, nothing of them is left behind, if that can be
    /// helped.
    pub(super) fn append(&mut self, lines: &[u8], now: Timestamp) -> io::Result<()> {
        let more = lines.len() as u64;
        if self.size > 0 && self.size + more > self.limits.size {
            self.put_aside(now)?;
        }
        if let Err(error) = self.file.write_all(lines) {
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += more;
        Ok(())
    }

    fn put_aside(&mut self, now: Timestamp) -> io::Result<()> {
        let mut now = now.max(self.last + SignedDuration::from_millis(1));
        let mut aside = self.aside(now);
        while aside.exists() {
            now += SignedDuration::from_millis(1);
            aside = self.aside(now);
        }
        fs::rename(&self.path, &aside)?;
        self.file = opened(&self.path)?;
        self.size = 0;
        self.last = now;
        self.remove_old(now);
        Ok(())
    }

    /// The name of a file that is put aside at a moment.
    fn aside(&self, moment: Timestamp) -> PathBuf {
        let moment = moment.to_zoned(TimeZone::UTC).strftime(FORMAT).to_string();
        let (stem, extension) = self.parts();
        self.path.with_file_name(format!("{stem}-{moment}{extension}"))
    }

    /// The name of the file before and from its last dot.
    fn parts(&self) -> (String, String) {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        match name.rfind('.') {
            Some(dot) => (name[..dot].to_owned(), name[dot..].to_owned()),
            None => (name, String::new()),
        }
    }

    /// Removes what was put aside too long ago, and what is too much. What cannot be removed stays.
    fn remove_old(&self, now: Timestamp) {
        let Limits { age, backups, .. } = self.limits;
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        for (index, (moment, path)) in self.put_aside_so_far().into_iter().enumerate() {
            let too_old = !age.is_zero() && now.duration_since(moment) > age;
            let too_many = backups > 0 && index >= backups;
            if (too_old || too_many)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::warn!(%error, path = %path.display(), "cannot remove an old audit log");
            }
        }
    }

    /// The files that were put aside, the latest first.
    fn put_aside_so_far(&self) -> Vec<(Timestamp, PathBuf)> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let (stem, extension) = self.parts();
        let moment = |name: &str| {
            let rest = name.strip_prefix(&stem)?.strip_prefix('-')?;
            let moment = DateTime::strptime(FORMAT, rest.strip_suffix(&extension)?).ok()?;
            Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp())
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<(Timestamp, PathBuf)> = entries
            .filter_map(|entry| Some((moment(&entry.file_name().to_string_lossy())?, entry.path())))
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        found
    }
}

/// Only whoever runs the server reads what is audited.
fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use jiff::Timestamp;

    use super::{Limits, Rotating};

    fn now() -> Timestamp {
        "2025-01-31T13:05:59Z".parse().unwrap()
    }

    /// A directory that goes when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_full_file_is_put_aside_and_only_so_many_stay() {
        let folder = Folder::new("steersman-audit-rotation");
        let path = folder.0.join("audit.log");
        let limits = Limits { size: 10, age: Duration::ZERO, backups: 2 };
        let mut file = Rotating::open(&path, limits).unwrap();
        for line in ["first\n", "second\n", "third\n", "4th\n", "fifth\n", "sixth\n"] {
            file.append(line.as_bytes(), now()).unwrap();
        }
        let names = folder.names();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "sixth\n");
        assert_eq!(names[0], "audit-2025-01-31T13-05-59.002.log");
        let kept = fs::read_to_string(folder.0.join(&names[1])).unwrap();
        assert_eq!(kept, "fifth\n");
        let older = fs::read_to_string(folder.0.join(&names[0])).unwrap();
        assert_eq!(older, "third\n4th\n");
        drop(file);
        let mut file = Rotating::open(&path, limits).unwrap();
        file.append(b"7\n", now()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "sixth\n7\n");
    }

    #[test]
    fn what_is_too_old_goes_and_what_is_not_ours_stays() {
        let folder = Folder::new("steersman-audit-age");
        let path = folder.0.join("audit.log");
        let names = ["audit-2001-02-03T04-05-06.789.log", "audit-notes.log", "other.log"];
        for name in names {
            fs::write(folder.0.join(name), "x").unwrap();
        }
        let day = Duration::from_secs(24 * 60 * 60);
        let limits = Limits { size: 1, age: day, backups: 0 };
        let mut file = Rotating::open(&path, limits).unwrap();
        file.append(b"a\n", now()).unwrap();
        file.append(b"b\n", now()).unwrap();
        let found = folder.names();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(!found.iter().any(|name| name == names[0]), "{found:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_and_not_the_end() {
        let limits = Limits { size: 1 << 20, ..Limits::default() };
        let mut file = Rotating::open("/dev/full".as_ref(), limits).unwrap();
        assert!(file.append(b"a\n", now()).is_err());
        assert!(file.append(b"b\n", now()).is_err());
    }
}
