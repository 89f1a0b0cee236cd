//! The tokens of service accounts: signed by the server, bound to objects, and known again.
//!
//! A token is a JWT signed with ES256. The cluster's [`SigningKey`](crate::identity::SigningKey)
//! signs and verifies, [`claims`] says what a token states, [`crate::authn`] whether that is
//! still true: its time, its audience, its account and what it is bound to. Who asks for one goes
//! through `serviceaccounts/token`; those that lie in Secrets are signed with [`sign_for_secret`].

pub(crate) mod claims;
pub(crate) mod jwt;
mod signer;

pub use signer::{SecretToken, sign_for_secret};
pub(crate) use signer::{Signer, Statement};

/// Who issues tokens, and the audience of those that are meant for this server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Who issues the tokens that lie in Secrets.
pub(crate) const SECRET_ISSUER: &str = "kubernetes/serviceaccount";
