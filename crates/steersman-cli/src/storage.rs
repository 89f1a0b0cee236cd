//! From flags to a store, and from a store to what is said of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use steersman_cluster::encryption::{self, Encryption};
use steersman_cluster::{Cluster, Storage, etcd};

use crate::arguments::{EtcdFlags, StorageFlags, Sync};
use crate::failure::told;
use crate::user_data;

/// Where the password of etcd's user is if no file has it.
const PASSWORD: &str = "STEERSMAN_ETCD_PASSWORD";

/// The store that the flags ask for.
pub(crate) fn chosen(flags: &StorageFlags, history: Duration) -> Result<Storage, String> {
    if flags.memory {
        return Ok(Storage::Memory);
    }
    if !flags.etcd.endpoints.is_empty() {
        return Ok(Storage::Etcd(Box::new(options(&flags.etcd, history)?)));
    }
    let directory = user_data::cluster(flags.data_dir.clone())
        .map_err(|error| format!("{error}, or keep it in memory with --memory"))?;
    Ok(Storage::Disk { directory, sync: flags.sync == Sync::On })
}

/// How what is stored is encrypted.
pub(crate) fn encryption(flags: &StorageFlags) -> Result<Option<Encryption>, String> {
    let Some(file) = &flags.encryption_provider_config else { return Ok(None) };
    let read = encryption::read(file);
    let refused = |why| format!("--encryption-provider-config {}: {why}", file.display());
    read.map(Some).map_err(|error| refused(one_line(&told(&error))))
}

/// Whatever a parser has to say.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

fn options(flags: &EtcdFlags, history: Duration) -> Result<etcd::Options, String> {
    let certificate = match (&flags.certfile, &flags.keyfile) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        _ => None,
    };
    let user = match &flags.user {
        Some(name) => Some((name.clone(), password(flags.password_file.as_deref())?)),
        None => None,
    };
    let ca = flags.cafile.as_deref().map(read).transpose()?;
    let options = etcd::Options::new(flags.endpoints.clone());
    Ok(etcd::Options { ca, certificate, user, compaction: Some(history), ..options })
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, String> {
    let path = path.as_ref();
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn password(file: Option<&Path>) -> Result<String, String> {
    let Some(file) = file else {
        return std::env::var(PASSWORD).map_err(|_| {
            format!("--etcd-user needs a password: --etcd-password-file FILE, or {PASSWORD} in the environment")
        });
    };
    let text = String::from_utf8(read(file)?);
    let text = text.map_err(|_| format!("{} is not text", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// What there is to say of the store of a cluster that has started: a line each.
pub(crate) fn described(cluster: &Cluster, storage: &Storage) -> Vec<String> {
    match storage {
        Storage::Memory | Storage::Existing(_) => {
            vec!["in memory, gone when this stops".to_owned()]
        }
        Storage::Disk { directory, sync } => {
            let mut lines = vec![shown(directory)];
            lines.extend(cluster.opened().map(|opened| match opened.bytes {
                0 => "new".to_owned(),
                _ => opened.to_string(),
            }));
            if !sync {
                lines.push("not synced: a power failure may damage it".to_owned());
            }
            lines
        }
        Storage::Etcd(options) => {
            let keys = cluster.store().stats().keys;
            let elected = "controllers run on one of the servers that share it, by election";
            vec![
                format!("etcd at {}", options.endpoints.join(", ")),
                format!("{keys} keys read"),
                elected.to_owned(),
            ]
        }
    }
}

/// The whole path, so that it can be found from elsewhere.
fn shown(directory: &Path) -> String {
    let whole = std::path::absolute(directory).unwrap_or_else(|_| PathBuf::from(directory));
    whole.display().to_string()
}
