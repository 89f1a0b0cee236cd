//! What a server is told about who its users are, beside what its own cluster can tell: tokens of
//! a file, issuers of tokens elsewhere, a webhook that knows more of them, a proxy in front, and
//! whether nobody may ask.
//!
//! It knows no requests: [`crate::authn`] asks it about each.

mod configuration;
mod front_proxy;
mod issuer;
mod token_file;
mod webhook;

use std::fs;
use std::path::Path;

use crate::user::Tokens;

pub use configuration::ConfigurationError;
pub(crate) use configuration::together;
pub(crate) use front_proxy::clear_usual_headers;
pub use front_proxy::{FrontProxy, FrontProxyError, FrontProxyHeaders};
pub use issuer::IssuerSettings;
pub(crate) use issuer::{Circumstances, Issuer};
pub use token_file::TokenFileError;
pub(crate) use webhook::{Asked, Known};
pub use webhook::{TokenReviewVersion, TokenWebhook};

pub use crate::webhook_client::{KubeconfigError, WebhookEndpoint};

/// How users of the network are known, beside client certificates and tokens of service accounts.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// Who is known by a bearer token.
    pub tokens: Tokens,
    /// Whether bootstrap tokens, which are Secrets in `kube-system`, are good for requests.
    pub bootstrap_tokens: bool,
    /// What a request without any credential is.
    pub anonymous: Anonymous,
    /// Who else issues tokens.
    pub issuers: Vec<IssuerSettings>,
    /// Who is asked about tokens that nobody else knows.
    pub webhook: Option<TokenWebhook>,
    /// The proxy whose word on users is taken.
    pub front_proxy: Option<FrontProxy>,
}

/// Whether requests without a credential are those of `system:anonymous`, or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anonymous {
    /// Whether any are let through.
    pub enabled: bool,
    /// For which paths; for all, if there are none.
    pub paths: Vec<String>,
}

impl Default for Anonymous {
    fn default() -> Self {
        Self { enabled: true, paths: Vec::new() }
    }
}

impl Anonymous {
    pub(crate) fn covers(&self, path: &str) -> bool {
        self.enabled && (self.paths.is_empty() || self.paths.iter().any(|known| known == path))
    }
}

impl Authentication {
    /// Reads a file of tokens: `token,user,uid,"group1,group2"` on each line, as
    /// `--token-auth-file` of kube-apiserver.
    pub fn read_tokens(&self, path: &Path) -> Result<(), TokenFileError> {
        let text = fs::read_to_string(path).map_err(|error| TokenFileError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        for (token, user) in token_file::users(&text, path)? {
            self.tokens.insert(&token, user);
        }
        Ok(())
    }

    /// Reads an `AuthenticationConfiguration`, as `--authentication-config` of kube-apiserver.
    pub fn read_configuration(&mut self, path: &Path) -> Result<(), ConfigurationError> {
        let read = fs::read_to_string(path);
        let text = read.map_err(|error| ConfigurationError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        self.configure(&text, path.parent().unwrap_or(Path::new("")))
    }

    /// Takes over an `AuthenticationConfiguration` in YAML or JSON; files that it names are found
    /// from this folder.
    pub fn configure(&mut self, text: &str, folder: &Path) -> Result<(), ConfigurationError> {
        let (issuers, anonymous) = configuration::parse(text, folder)?;
        self.issuers = issuers;
        if let Some(anonymous) = anonymous {
            self.anonymous = anonymous;
        }
        Ok(())
    }
}
