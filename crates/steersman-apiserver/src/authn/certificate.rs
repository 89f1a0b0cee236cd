//! What the client certificate of a connection is worth.
//!
//! It is verified once, when the connection begins, and then only its time is looked at: a
//! connection may last longer than the certificate.

use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::authentication::{FrontProxy, FrontProxyHeaders};
use crate::pki::ClientAuthorities;
use crate::user::User;

/// A client certificate, judged.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate {
    /// The user, if it names one, or why it is not trusted.
    user: Result<Option<Arc<User>>, String>,
    /// Whether it is that of the proxy in front, whose word on users is taken.
    is_proxy: bool,
    /// The first and the last second at which it is good.
    valid: (i64, i64),
}

impl ClientCertificate {
    /// Judges the certificates that a client showed, of which the first is its own.
    pub(crate) fn judge(
        chain: &[CertificateDer<'_>],
        clients: &ClientAuthorities,
        proxy: Option<&FrontProxy>,
        now: Timestamp,
    ) -> Self {
        let user = clients.vouch(chain, now).map_err(|error| error.to_string());
        let own = chain.first().map_or(&[][..], |own| own);
        let user = user.and_then(|()| User::of_certificate(own).map_err(|error| error.to_string()));
        let user = user.map(|user| user.map(Arc::new));
        // Where one authority vouches for clients and proxies alike, only a name tells them apart:
        // without one, every client could say that it is somebody else.
        let is_proxy = proxy.is_some_and(|proxy| {
            proxy.authorities.vouch(chain, now).is_ok()
                && proxy.allows(&common_name(own))
                && (user.is_err() || !proxy.allowed_names.is_empty())
        });
        Self { user, is_proxy, valid: validity(chain) }
    }

    /// The certificate of somebody who is known already.
    pub(crate) fn of(user: User) -> Self {
        Self { user: Ok(Some(Arc::new(user))), is_proxy: false, valid: (i64::MIN, i64::MAX) }
    }

    /// Who came with it, if it is good: a user, or the proxy in front.
    pub(crate) fn holder(&self) -> Option<&str> {
        match &self.user {
            Ok(Some(user)) => Some(&user.name),
            _ => self.is_proxy.then_some("the proxy in front"),
        }
    }

    /// Whose request it is that came over the connection, if it says so: a proxy names another in
    /// its headers. Or why it is nobody's.
    pub(super) fn user(
        &self,
        proxied: Option<(&FrontProxyHeaders, &HeaderMap)>,
        now: Timestamp,
    ) -> Result<Option<Arc<User>>, String> {
        if !(self.valid.0..=self.valid.1).contains(&now.as_second()) {
            return Err("x509: certificate has expired or is not yet valid".to_owned());
        }
        if self.is_proxy
            && let Some((names, headers)) = proxied
            && let Some(user) = names.user(headers)
        {
            return Ok(Some(Arc::new(user)));
        }
        self.user.clone()
    }
}

fn common_name(certificate: &[u8]) -> String {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return String::new() };
    let name = certificate.subject().iter_common_name().last();
    name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
}

/// When all certificates of a chain are good.
fn validity(chain: &[CertificateDer<'_>]) -> (i64, i64) {
    let mut valid = (i64::MIN, i64::MAX);
    for certificate in chain {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { continue };
        let own = certificate.validity();
        valid.0 = valid.0.max(own.not_before.timestamp());
        valid.1 = valid.1.min(own.not_after.timestamp());
    }
    valid
}
