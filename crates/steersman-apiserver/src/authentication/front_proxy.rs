//! A proxy in front of the server that has found out who its clients are, and says so in headers.
//! Its word is taken if its own certificate is one of the right authority, and only then.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::pki::{ClientAuthorities, PkiError};
use crate::user::User;

/// Whose word on users is taken, and in which headers it stands.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// Who vouches for the proxy's certificate.
    pub authorities: ClientAuthorities,
    /// The common names that the proxy's certificate may have; any, if there are none.
    pub allowed_names: Vec<String>,
    /// Where the user stands.
    pub headers: FrontProxyHeaders,
}

/// The headers in which a proxy names the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontProxyHeaders {
    /// Where the name stands: the first of them that says something counts.
    pub username: Vec<String>,
    /// Where the uid stands.
    pub uid: Vec<String>,
    /// Where groups stand, one in each value.
    pub group: Vec<String>,
    /// How headers begin whose rest is the key of an extra.
    pub extra_prefix: Vec<String>,
}

impl Default for FrontProxyHeaders {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            username: one("x-remote-user"),
            uid: one("x-remote-uid"),
            group: one("x-remote-group"),
            extra_prefix: one("x-remote-extra-"),
        }
    }
}

/// Why a ConfigMap does not say how to know the server in front.
#[derive(Debug, thiserror::Error)]
pub enum FrontProxyError {
    /// It lacks something.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// It says something else in its place.
    #[error("{field} is no list of names: {reason}")]
    Malformed {
        /// Where.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Its authorities cannot be read.
    #[error("requestheader-client-ca-file cannot be read")]
    Authorities(#[from] PkiError),
}

impl FrontProxy {
    /// What the ConfigMap `extension-apiserver-authentication` in `kube-system` says of the server
    /// in front.
    ///
    /// # Errors
    ///
    /// If it does not say enough.
    pub fn from_config_map(map: &Value) -> Result<Self, FrontProxyError> {
        let list = |field: &'static str| match map["data"][field].as_str() {
            None => Ok(Vec::new()),
            Some(text) => serde_json::from_str::<Vec<String>>(text)
                .map_err(|error| FrontProxyError::Malformed { field, reason: error.to_string() }),
        };
        let authority = map["data"]["requestheader-client-ca-file"].as_str();
        let authority =
            authority.ok_or(FrontProxyError::Missing("requestheader-client-ca-file"))?;
        let headers = FrontProxyHeaders {
            username: list("requestheader-username-headers")?,
            uid: list("requestheader-uid-headers")?,
            group: list("requestheader-group-headers")?,
            extra_prefix: list("requestheader-extra-headers-prefix")?,
        };
        if headers.username.is_empty() {
            return Err(FrontProxyError::Missing("requestheader-username-headers"));
        }
        Ok(Self {
            authorities: ClientAuthorities::from_pem(authority.as_bytes())?,
            allowed_names: list("requestheader-allowed-names")?,
            headers,
        })
    }

    /// Whether a certificate of this common name, which the authorities vouch for, is a proxy's.
    pub(crate) fn allows(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }
}

impl FrontProxyHeaders {
    /// The user that a proxy names, if it names one.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name)).map(text);
            values.find(|value| !value.is_empty()).unwrap_or_default()
        };
        let name = first(&self.username);
        if name.is_empty() {
            return None;
        }
        let groups = self.group.iter().flat_map(|name| headers.get_all(name)).map(text);
        let groups = groups.filter(|group| !group.is_empty()).collect();
        let uid = first(&self.uid);
        let user = User { name, groups, uid, extra: self.extra(headers) };
        Some(user.authenticated())
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in self.extra_prefix.iter().map(|prefix| prefix.to_lowercase()) {
            for (name, value) in headers {
                let Some(key) = name.as_str().strip_prefix(&prefix) else { continue };
                let key =
                    crate::request::decode(key).map_or_else(|_| key.to_owned(), Cow::into_owned);
                extra.entry(key).or_default().push(text(value));
            }
        }
        extra
    }

    /// Removes what only a proxy may say, so that nobody behind takes it for true.
    pub(crate) fn clear(&self, headers: &mut HeaderMap) {
        for name in [&self.username, &self.uid, &self.group].into_iter().flatten() {
            headers.remove(name);
        }
        for prefix in self.extra_prefix.iter().map(|prefix| prefix.to_lowercase()) {
            let names = headers.keys().filter(|name| name.as_str().starts_with(&prefix));
            let names: Vec<_> = names.cloned().collect();
            for name in names {
                headers.remove(name);
            }
        }
    }
}

/// Removes the headers in which proxies usually name users, also where no proxy is known.
pub(crate) fn clear_usual_headers(headers: &mut HeaderMap) {
    let usual = headers.keys().filter(|name| name.as_str().starts_with("x-remote-"));
    let usual: Vec<HeaderName> = usual.cloned().collect();
    for name in usual {
        headers.remove(name);
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName};

    use super::{FrontProxyHeaders, clear_usual_headers};

    #[test]
    fn a_proxy_names_the_user_in_headers_and_they_are_gone_afterwards() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "jane"),
            ("x-remote-uid", "u1"),
            ("x-remote-group", "dev"),
            ("x-remote-group", ""),
            ("x-remote-group", "ops"),
            ("x-remote-extra-acme.com%2fproject", "p"),
            ("accept", "*/*"),
        ] {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let names = FrontProxyHeaders::default();
        let user = names.user(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "u1"));
        assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(user.extra["acme.com/project"], ["p"]);
        let mut usual = headers.clone();
        clear_usual_headers(&mut usual);
        names.clear(&mut headers);
        assert_eq!(usual, headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
        assert_eq!(names.user(&headers), None);
    }
}
