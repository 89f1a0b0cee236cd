//! Where a webhook is: a kubeconfig file, of which the current context counts.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::ClientIdentity;

/// Where a webhook is, who vouches for it, and what the server shows it of itself.
#[derive(Clone)]
pub struct WebhookEndpoint {
    pub(crate) url: String,
    /// The authorities in PEM; none are the system's.
    pub(crate) authorities: Vec<u8>,
    /// A certificate and its key, which are shown.
    pub(crate) identity: Option<ClientIdentity>,
    /// A bearer token.
    pub(crate) token: Option<String>,
}

impl std::fmt::Debug for WebhookEndpoint {
    /// Without what is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookEndpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why a kubeconfig names no webhook.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not a kubeconfig, or one that cannot be used here.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
}

impl WebhookEndpoint {
    /// A webhook at a URL that somebody vouches for whom the system trusts.
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), authorities: Vec::new(), identity: None, token: None }
    }

    /// Reads a kubeconfig file.
    pub fn of_kubeconfig(path: &Path) -> Result<Self, KubeconfigError> {
        let text = std::fs::read_to_string(path);
        let text =
            text.map_err(|source| KubeconfigError::Read { path: path.to_owned(), source })?;
        let file = Kubeconfig { path };
        let document: Document =
            serde_saphyr::from_str(&text).map_err(|error| file.wrong(error.to_string()))?;
        file.endpoint(document)
    }
}

/// The file that is being read.
struct Kubeconfig<'a> {
    path: &'a Path,
}

impl Kubeconfig<'_> {
    fn wrong(&self, why: impl Into<String>) -> KubeconfigError {
        KubeconfigError::Malformed { path: self.path.to_owned(), why: why.into() }
    }

    fn endpoint(&self, document: Document) -> Result<WebhookEndpoint, KubeconfigError> {
        let Document { clusters, users, contexts, current_context } = document;
        let missing = |what: &str, name: &str| self.wrong(format!("there is no {what} {name:?}"));
        let context = contexts.into_iter().find(|context| context.name == current_context);
        let Context { cluster, user } =
            context.ok_or_else(|| missing("context", &current_context))?.context;
        let found = clusters.into_iter().find(|known| known.name == cluster);
        let cluster = found.ok_or_else(|| missing("cluster", &cluster))?.cluster;
        if cluster.insecure_skip_tls_verify {
            return Err(self.wrong("insecure-skip-tls-verify is not supported"));
        }
        if !cluster.server.starts_with("https://") {
            return Err(self.wrong(format!("the server must be https, not {}", cluster.server)));
        }
        let authority = (cluster.certificate_authority_data, cluster.certificate_authority);
        let found = users.into_iter().find(|known| known.name == user);
        let user = found.and_then(|found| found.user).unwrap_or_default();
        let certificate = self.content((user.client_certificate_data, user.client_certificate))?;
        let key = self.content((user.client_key_data, user.client_key))?;
        let token = match (user.token, user.token_file) {
            (Some(token), _) => Some(token),
            (None, Some(file)) => {
                let bytes = self.read(&file)?;
                Some(String::from_utf8_lossy(&bytes).trim().to_owned())
            }
            (None, None) => None,
        };
        Ok(WebhookEndpoint {
            url: cluster.server,
            authorities: self.content(authority)?.unwrap_or_default(),
            identity: certificate
                .zip(key)
                .map(|(certificate, key)| ClientIdentity { certificate, key }),
            token: token.filter(|token| !token.is_empty()),
        })
    }

    /// What stands in a field in base64, or in the file that another names.
    fn content(
        &self,
        (data, file): (Option<String>, Option<PathBuf>),
    ) -> Result<Option<Vec<u8>>, KubeconfigError> {
        match (data, file) {
            (Some(data), _) => {
                let decoded = STANDARD.decode(data.trim());
                decoded.map(Some).map_err(|error| self.wrong(error.to_string()))
            }
            (None, Some(file)) => self.read(&file).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Reads a file, which is named as seen from the kubeconfig.
    fn read(&self, file: &Path) -> Result<Vec<u8>, KubeconfigError> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(file);
        std::fs::read(&path).map_err(|source| KubeconfigError::Read { path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Document, Kubeconfig, KubeconfigError, WebhookEndpoint};

    fn read(text: &str) -> Result<WebhookEndpoint, KubeconfigError> {
        let document: Document = serde_saphyr::from_str(text).unwrap();
        Kubeconfig { path: Path::new("audit.conf") }.endpoint(document)
    }

    #[test]
    fn the_current_context_says_where_the_webhook_is_and_what_it_is_shown() {
        let text = "\
apiVersion: v1
kind: Config
clusters:
- name: other
  cluster: {server: 'https://other.test'}
- name: audit
  cluster: {server: 'https://audit.test/events', certificate-authority-data: Y2E=}
users:
- name: server
  user: {token: t0ken, client-certificate-data: Y2VydA==, client-key-data: a2V5}
contexts:
- name: webhook
  context: {cluster: audit, user: server}
current-context: webhook
";
        let endpoint = read(text).unwrap();
        assert_eq!(endpoint.url, "https://audit.test/events");
        assert_eq!(endpoint.authorities, b"ca");
        assert_eq!(endpoint.token.as_deref(), Some("t0ken"));
        let identity = endpoint.identity.as_ref().unwrap();
        assert_eq!((&identity.certificate[..], &identity.key[..]), (&b"cert"[..], &b"key"[..]));
        assert!(!format!("{endpoint:?}").contains("t0ken"));
        for (from, to, why) in [
            ("current-context: webhook", "", "there is no context \"\""),
            ("cluster: audit", "cluster: gone", "there is no cluster \"gone\""),
            ("https://audit", "http://audit", "the server must be https"),
            ("Y2E=", "'%%'", "Invalid"),
        ] {
            let error = read(&text.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
