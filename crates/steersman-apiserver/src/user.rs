//! Users: who asks, by a client certificate, a bearer token that someone was given, or nobody.
//!
//! The common name of a certificate is the user, its organisations are the groups. A token that
//! is not known is refused; a request without either comes from nobody, who is a user as well.
//! Tokens of service accounts are known by their signature ([`crate::authn`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

use http::{HeaderMap, header};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::status::{Result, Status};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of everybody who is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of nobody.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of nobody.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, such as `system:kube-scheduler`.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is unique about the user, such as the uid of a service account.
    pub uid: String,
    /// What else is known, such as the pod that a token belongs to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of the network: everybody who is known belongs to `system:authenticated`.
    pub fn known(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        groups.push(AUTHENTICATED.to_owned());
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The one who calls from within the process.
    pub fn in_process() -> Self {
        Self::known("system:admin", &[MASTERS])
    }

    /// A service account, as its tokens make it known.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let group = format!("system:serviceaccounts:{namespace}");
        let name = format!("system:serviceaccount:{namespace}:{name}");
        Self::known(&name, &["system:serviceaccounts", &group])
    }

    /// Nobody.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// The fields of a `UserInfo`; what is empty is left out.
    pub fn to_fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = vec![("username", self.name.as_str().into())];
        if !self.uid.is_empty() {
            fields.push(("uid", self.uid.as_str().into()));
        }
        if !self.groups.is_empty() {
            fields.push(("groups", self.groups.clone().into()));
        }
        if !self.extra.is_empty() {
            fields.push(("extra", json!(self.extra)));
        }
        fields
    }

    /// A `UserInfo`.
    pub(crate) fn to_info(&self) -> Value {
        let fields = self.to_fields().into_iter();
        Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Whether nobody vouched for this user.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// The user of a verified client certificate, in DER.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().find_map(|name| name.as_str().ok())?;
        let groups: Vec<&str> =
            subject.iter_organization().filter_map(|group| group.as_str().ok()).collect();
        Some(Self::known(name, &groups))
    }
}

/// Users by their bearer token. Clones share the table.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<RwLock<HashMap<String, User>>>);

impl Tokens {
    /// Lets a token stand for a user.
    pub fn insert(&self, token: &str, user: User) {
        let mut users = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        users.insert(token.to_owned(), user);
    }

    /// The user of a token.
    pub fn user(&self, token: &str) -> Option<User> {
        let users = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        users.get(token).cloned()
    }

    /// Who a request from the network comes from; `certificate` is the user of its connection.
    pub fn authenticate(&self, headers: &HeaderMap, certificate: Option<&User>) -> Result<User> {
        if let Some(user) = certificate {
            return Ok(user.clone());
        }
        if !headers.contains_key(header::AUTHORIZATION) {
            return Ok(User::anonymous());
        }
        bearer_token(headers).and_then(|token| self.user(token)).ok_or_else(Status::unauthorized)
    }
}

/// The token of a request, if it has one.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::{Tokens, User};
    use http::{HeaderMap, header};

    #[test]
    fn a_known_token_is_its_user_an_unknown_one_is_refused_and_none_is_anonymous() {
        let tokens = Tokens::default();
        tokens.insert("secret", User::known("jane", &["dev"]));
        let mut headers = HeaderMap::new();
        assert!(tokens.authenticate(&headers, None).unwrap().is_anonymous());
        headers.insert(header::AUTHORIZATION, "Bearer secret".parse().unwrap());
        assert_eq!(tokens.authenticate(&headers, None).unwrap().name, "jane");
        headers.insert(header::AUTHORIZATION, "Bearer guess".parse().unwrap());
        assert_eq!(tokens.authenticate(&headers, None).unwrap_err().code, 401);
    }
}
