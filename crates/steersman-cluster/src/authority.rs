//! Lends the keys of the cluster to its controllers, which know nothing of API servers.

use steersman::clock;
use steersman_apiserver::identity::Identity;
use steersman_apiserver::pki::{CertificateRequest, SigningError, sign_request};
use steersman_apiserver::{SecretToken, sign_for_secret};
use steersman_controllers::{Authority, CertificateOf, NoCertificate, TokenOf};

/// The keys of a cluster.
pub(crate) struct Keys(pub(crate) Identity);

impl Authority for Keys {
    fn certify(&self, asked: CertificateOf<'_>) -> Result<String, NoCertificate> {
        let CertificateOf { request, signer_name, usages, expiration_seconds, lifetime_max } =
            asked;
        let asked =
            CertificateRequest { request, signer_name, usages, expiration_seconds, lifetime_max };
        sign_request(&self.0, asked, clock::now()).map_err(|error| match error {
            SigningError::OtherSigner => NoCertificate::OtherSigner,
            SigningError::Refused(why) => NoCertificate::Refused(why),
            error => NoCertificate::Failed(error.to_string()),
        })
    }

    fn sign_token(&self, token: TokenOf<'_>) -> Result<String, String> {
        let TokenOf { namespace, secret, account, account_uid } = token;
        let token = SecretToken { namespace, secret, account, account_uid };
        sign_for_secret(&self.0, token).map_err(|error| error.to_string())
    }
}
