//! Where a node keeps who it is: under the names that a kubelet has for it, in its own directory.
//!
//! A file is there whole or not at all, whenever the agent is killed: it is written beside its place
//! and moved there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::config::Kubeconfig;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Authorities, JoinError, access, signing};

/// The directory of one node.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
}

/// Where a cluster is, and who signs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) server: String,
    pub(super) authorities: Authorities,
}

/// A certificate and its key, and until when they are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    /// Both, in PEM.
    pem: String,
    /// Whose it is.
    user: String,
    /// Since when it is good, and this machine has it.
    pub(super) since: Timestamp,
    /// Until when it is good.
    pub(super) until: Timestamp,
}

impl Certificate {
    fn read(pem: String, had_since: Timestamp) -> Option<Self> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let user = parsed.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        let from = Timestamp::from_second(parsed.validity().not_before.timestamp()).ok()?;
        let until = Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()?;
        // A file from the future says nothing.
        let since = if had_since < until { from.max(had_since) } else { from };
        KeyPair::from_pem(&key_of(&pem)?).ok()?;
        Some(Self { pem, user, since, until })
    }

    /// One that is good from one moment to another, of nobody.
    #[cfg(test)]
    pub(super) fn of_times(since: Timestamp, until: Timestamp) -> Self {
        Self { pem: String::new(), user: String::new(), since, until }
    }

    /// Both, as kubeconfigs have it.
    pub(super) fn data(&self) -> String {
        STANDARD.encode(&self.pem)
    }
}

/// The part of a text that is a key.
fn key_of(pem: &str) -> Option<String> {
    let begin = pem.find("-----BEGIN PRIVATE KEY-----")?;
    Some(pem[begin..].to_owned())
}

impl Place {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    fn pki(&self) -> PathBuf {
        self.directory.join("pki")
    }

    fn current(&self) -> PathBuf {
        self.pki().join("kubelet-client-current.pem")
    }

    /// A key for which a certificate is being asked for.
    fn next_key(&self) -> PathBuf {
        self.pki().join("kubelet-client.key.tmp")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.directory.join("kubelet.conf")
    }

    /// Which cluster this node is a member of, if it is of one.
    pub(super) fn cluster(&self) -> Result<Option<Known>, JoinError> {
        let path = self.kubeconfig();
        let Some(text) = read(&path)? else { return Ok(None) };
        let kubeconfig = Kubeconfig::from_yaml(&text);
        let kubeconfig = kubeconfig.map_err(|error| JoinError::files(&path, error))?;
        let cluster = kubeconfig.clusters.into_iter().next().and_then(|named| named.cluster);
        let known = cluster.and_then(|cluster| {
            let authorities = Authorities::from_data(&cluster.certificate_authority_data?).ok()?;
            Some(Known { server: cluster.server?, authorities })
        });
        known.map(Some).ok_or_else(|| JoinError::files(&path, "it names no cluster"))
    }

    /// The certificate of a node of this name, if there is one.
    pub(super) fn certificate(&self, node: &str) -> Result<Option<Certificate>, JoinError> {
        let path = self.current();
        let Some(pem) = read(&path)? else { return Ok(None) };
        let since =
            fs::metadata(&path).and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let since = Timestamp::try_from(since).unwrap_or(Timestamp::UNIX_EPOCH);
        let found = Certificate::read(pem, since);
        Ok(found.filter(|found| found.user == signing::user(node)))
    }

    /// The key for which a certificate is asked for: one that was made before, or a new one.
    pub(super) fn key(&self) -> Result<KeyPair, JoinError> {
        let path = self.next_key();
        if let Some(text) = read(&path)?
            && let Ok(key) = KeyPair::from_pem(&text)
        {
            return Ok(key);
        }
        let key = KeyPair::generate().map_err(|error| JoinError::Key(error.to_string()))?;
        write(&path, &key.serialize_pem())?;
        Ok(key)
    }

    /// Keeps a certificate that was signed for the key.
    pub(super) fn keep(&self, certificate: &str, key: &KeyPair) -> Result<(), JoinError> {
        let end = if certificate.ends_with('\n') { "" } else { "\n" };
        write(&self.current(), &format!("{certificate}{end}{}", key.serialize_pem()))?;
        self.forget_key()
    }

    /// Forgets the key for which a certificate was asked for.
    pub(super) fn forget_key(&self) -> Result<(), JoinError> {
        let path = self.next_key();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(JoinError::files(&path, error))
            }
            _ => Ok(()),
        }
    }

    /// Keeps which cluster this node is a member of.
    pub(super) fn keep_cluster(&self, known: &Known) -> Result<(), JoinError> {
        let data = known.authorities.data();
        let cluster = json!({"server": known.server, "certificate-authority-data": data});
        let current = self.current();
        let user = json!({"client-certificate": current, "client-key": current});
        let kubeconfig = access::kubeconfig(&cluster, &user);
        // JSON is YAML.
        let text = serde_json::to_string_pretty(&kubeconfig).unwrap_or_default();
        write(&self.kubeconfig(), &text)
    }
}

fn read(path: &Path) -> Result<Option<String>, JoinError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JoinError::files(path, error)),
    }
}

/// Writes a file that only its owner may read, whole.
fn write(path: &Path, text: &str) -> Result<(), JoinError> {
    let written = || -> io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        let beside = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(directory)?.sync_all()
    };
    written().map_err(|error| JoinError::files(path, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place(name: &str) -> Place {
        let directory =
            std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        Place::new(&directory)
    }

    fn certificate(user: &str, key: &KeyPair) -> String {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, user);
        params.self_signed(key).unwrap().pem()
    }

    #[test]
    fn what_is_kept_is_found_again_and_only_its_owner_can_read_it() {
        let place = place("kept");
        assert_eq!(place.certificate("a").unwrap(), None);
        assert_eq!(place.cluster().unwrap(), None);
        let key = place.key().unwrap();
        let again = place.key().unwrap();
        assert_eq!(key.serialize_pem(), again.serialize_pem(), "it was asked for already");
        let signed = certificate("system:node:a", &key);
        place.keep(&signed, &key).unwrap();
        let found = place.certificate("a").unwrap().expect("it was kept");
        assert!(found.pem.contains(&signed) && found.pem.contains(&key.serialize_pem()));
        assert!(found.since > steersman::clock::now() - jiff::SignedDuration::from_mins(1));
        assert_eq!(place.certificate("b").unwrap(), None, "it is another's");
        assert_ne!(place.key().unwrap().serialize_pem(), key.serialize_pem(), "the next is new");
        let authorities = Authorities::from_pem(signed.as_bytes()).unwrap();
        let known = Known { server: "https://127.0.0.1:6443".into(), authorities };
        place.keep_cluster(&known).unwrap();
        assert_eq!(place.cluster().unwrap(), Some(known));
        for file in [place.current(), place.kubeconfig(), place.next_key()] {
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", file.display());
        }
        let kubeconfig = Kubeconfig::read_from(place.kubeconfig()).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("default-context"));
        fs::remove_dir_all(&place.directory).unwrap();
    }

    #[test]
    fn what_is_broken_counts_as_none() {
        let place = place("broken");
        let key = place.key().unwrap();
        for text in ["", "nonsense", &certificate("system:node:a", &key)] {
            write(&place.current(), text).unwrap();
            assert_eq!(place.certificate("a").unwrap(), None, "{text:?}");
        }
        write(&place.kubeconfig(), "{}").unwrap();
        assert!(place.cluster().is_err(), "somebody has to look at it");
        fs::remove_dir_all(&place.directory).unwrap();
    }
}
