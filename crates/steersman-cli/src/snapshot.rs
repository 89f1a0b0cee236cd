//! `steersman snapshot`: saves a cluster that is on disk, and restores it.

use std::path::{Path, PathBuf};

use steersman_cluster::disk::OpenError;
use steersman_cluster::disk::backup::{self, Status};

use crate::arguments::{Output, Snapshot, SnapshotAction};
use crate::{failure, user_data};

/// Runs the command to its end.
pub(crate) fn run(snapshot: Snapshot) -> Result<(), String> {
    if snapshot.etcd.is_some() {
        return Err("a cluster on etcd is saved and restored by etcd's own tools: \
                    etcdctl snapshot save FILE, etcdutl snapshot restore FILE"
            .to_owned());
    }
    match snapshot.action {
        SnapshotAction::Save { file, data_dir } => save(&file, &user_data::cluster(data_dir)?),
        SnapshotAction::Restore { file, data_dir, bump_revision } => {
            restore(&file, data_dir, bump_revision)
        }
        SnapshotAction::Status { file, output } => status(&file, output),
    }
}

fn save(file: &Path, directory: &Path) -> Result<(), String> {
    if !directory.is_dir() {
        return Err(format!(
            "no cluster is kept in {}; say where it is with --data-dir (one in memory cannot be \
             saved, one on etcd is saved with etcdctl snapshot save)",
            directory.display()
        ));
    }
    let Status { revision, keys, bytes, .. } = backup::save(directory, file).map_err(told)?;
    say!("saved {keys} keys at revision {revision} to {} ({})", file.display(), size(bytes));
    Ok(())
}

fn restore(file: &Path, data_dir: Option<PathBuf>, bump_revision: u64) -> Result<(), String> {
    let usual = data_dir.is_none();
    let directory = user_data::cluster(data_dir)?;
    let restored = backup::restore(file, &directory, bump_revision).map_err(of_file)?;
    let Status { revision, keys, .. } = restored;
    say!("restored {keys} keys to {}, at revision {revision} now\n", directory.display());
    match usual {
        true => say!("Start it with: steersman up"),
        false => say!("Start it with: steersman up --data-dir {}", directory.display()),
    }
    Ok(())
}

fn status(file: &Path, output: Output) -> Result<(), String> {
    let Status { revision, keys, bytes, .. } = backup::status(file).map_err(of_file)?;
    match output {
        Output::Json => {
            say!("{{\"revision\":{revision},\"keys\":{keys},\"bytes\":{bytes}}}");
        }
        Output::Text => {
            say!("  revision     {revision}");
            say!("  keys         {keys}");
            say!("  size         {}", size(bytes));
            say!("  checksums    good");
        }
    }
    Ok(())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// What to say of a snapshot that cannot be read.
fn of_file(error: OpenError) -> String {
    match error {
        OpenError::Corrupt { file, offset, reason } => format!(
            "{} is no snapshot, or a damaged one: at byte {offset}: {reason}",
            file.display()
        ),
        error => told(error),
    }
}

fn told(error: OpenError) -> String {
    match error {
        OpenError::NotEmpty { .. } => format!("{error} (--data-dir DIR)"),
        error => failure::told(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        assert_eq!(size(812), "812 bytes");
        assert_eq!(size(45_678), "45 kB");
        assert_eq!(size(2_345_678), "2.3 MB");
    }
}
