//! Users: who asks, by a client certificate, a bearer token that someone was given, or nobody.
//!
//! The common name of a certificate is the user, its organisations are the groups. How a request
//! comes to its user is in [`crate::authn`], whom users act as in [`crate::impersonation`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

use http::Extensions;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use x509_parser::der_parser::{Oid, oid};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of everybody who is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of nobody.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of nobody.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// Where a user's extra tells by which credential it is known.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// What it says there of a token that has an id.
pub(crate) fn token_id(id: &str) -> String {
    format!("JTI={id}")
}

/// What of a certificate's subject is the uid of the user.
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

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

    /// Whom a request comes from, as its extensions say.
    pub(crate) fn among(extensions: &Extensions) -> Option<&Self> {
        let shared = extensions.get::<Arc<Self>>().map(|user| &**user);
        shared.or_else(|| extensions.get())
    }

    /// The same, taken out of them.
    pub(crate) fn taken_from(extensions: &mut Extensions) -> Option<Arc<Self>> {
        let shared = extensions.remove::<Arc<Self>>();
        shared.or_else(|| extensions.remove::<Self>().map(Arc::new))
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

    /// The user of a `UserInfo`.
    pub(crate) fn of_info(info: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let list = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
        let extra = info["extra"].as_object().into_iter().flatten();
        Self {
            name: text(&info["username"]),
            groups: list(&info["groups"]),
            uid: text(&info["uid"]),
            extra: extra.map(|(key, values)| (key.clone(), list(values))).collect(),
        }
    }

    /// Whether nobody vouched for this user.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// This user as one who is known: of `system:authenticated`, unless its groups say something
    /// else about that.
    #[must_use]
    pub(crate) fn authenticated(mut self) -> Self {
        let says = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.name != ANONYMOUS && !self.groups.iter().any(says) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// The user of a verified client certificate, in DER; none if it names nobody.
    pub fn of_certificate(der: &[u8]) -> Result<Option<Self>, CertificateUserError> {
        let parsed = X509Certificate::from_der(der);
        let (_, certificate) = parsed.map_err(|_| CertificateUserError::Malformed)?;
        let subject = certificate.subject();
        let text = |attribute: &AttributeTypeAndValue<'_>| {
            attribute.as_str().map(str::to_owned).unwrap_or_default()
        };
        let name = subject.iter_common_name().last().map(text).unwrap_or_default();
        if name.is_empty() {
            return Ok(None);
        }
        let uids: Vec<String> = subject.iter_by_oid(&UID).map(text).collect();
        let uid = match uids.as_slice() {
            [] => String::new(),
            [uid] if !uid.is_empty() => uid.clone(),
            [_] => return Err(CertificateUserError::EmptyUid),
            _ => return Err(CertificateUserError::Uids(uids)),
        };
        let print = digest(&SHA256, der);
        let print: String = print.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let extra = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={print}")])].into();
        let groups = subject.iter_organization().map(text).collect();
        Ok(Some(Self { name, groups, uid, extra }.authenticated()))
    }
}

/// Why a certificate, though verified, does not say whose it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateUserError {
    /// It is none.
    #[error("the certificate cannot be read")]
    Malformed,
    /// There is a uid, without a letter.
    #[error("UID cannot be an empty string")]
    EmptyUid,
    /// There are several uids.
    #[error("expected 1 UID, but found multiple: {0:?}")]
    Uids(Vec<String>),
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
}
