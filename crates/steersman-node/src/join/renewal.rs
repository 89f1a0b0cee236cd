//! The membership of a node: with a certificate that is renewed before it ends.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use steersman::clock;
use tokio::time::sleep;

use super::access::{As, Replaceable, client};
use super::place::{Certificate, Known, Place};
use super::{Join, JoinError, Trust, discovery, signing};

/// How often to look at the clock, which somebody may set.
const LOOK: Duration = Duration::from_secs(60);
/// When to try again what failed, at first and later.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_secs(120);

/// A node that is a member of a cluster.
pub struct Membership {
    place: Place,
    node: String,
    known: Known,
    access: Replaceable,
    certificate: Certificate,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { node, known, .. } = self;
        f.debug_struct("Membership")
            .field("node", node)
            .field("server", &known.server)
            .finish_non_exhaustive()
    }
}

impl Membership {
    /// The one that a directory holds, unless there is none, or its certificate has ended. The server
    /// may have moved meanwhile.
    pub async fn kept(
        directory: &Path,
        node: &str,
        server: Option<&str>,
    ) -> Result<Option<Self>, JoinError> {
        let place = Place::new(directory);
        let Some(certificate) = place.certificate(node)? else { return Ok(None) };
        let Some(mut known) = place.cluster()? else { return Ok(None) };
        if certificate.until <= clock::of_system() {
            tracing::warn!(until = %certificate.until, "the certificate of this node has ended");
            return Ok(None);
        }
        if let Some(server) = server.filter(|server| *server != known.server) {
            server.clone_into(&mut known.server);
            place.keep_cluster(&known)?;
        }
        Self::new(place, node, known, certificate).await.map(Some)
    }

    /// A new one, which the directory holds from now on.
    pub async fn of(join: &Join, directory: &Path, node: &str) -> Result<Self, JoinError> {
        let server = join.server.trim_end_matches('/');
        let authorities = match &join.trust {
            Trust::Authorities(authorities) => authorities.clone(),
            Trust::Hashes(hashes) => discovery::authorities(server, &join.token, hashes).await?,
        };
        let place = Place::new(directory);
        let known = Known { server: server.to_owned(), authorities };
        let bearer = client(server, Some(&known.authorities), As::Token(&join.token)).await?;
        let certificate = obtain(&place, &bearer, server, node).await?;
        place.keep_cluster(&known)?;
        Self::new(place, node, known, certificate).await
    }

    async fn new(
        place: Place,
        node: &str,
        known: Known,
        certificate: Certificate,
    ) -> Result<Self, JoinError> {
        let who = As::Certificate(certificate.data());
        let access = Replaceable::new(client(&known.server, Some(&known.authorities), who).await?);
        Ok(Self { place, node: node.to_owned(), known, access, certificate })
    }

    /// The client of this node. It goes on with the new certificate when there is one.
    pub fn client(&self) -> kube::Client {
        self.access.client()
    }

    /// Renews the certificate before it ends, for ever.
    pub async fn keep(mut self) {
        let mut failed = AGAIN;
        let mut due = renewal(&self.certificate, rand::random_range(0.0..1.0));
        loop {
            let left = due.duration_since(clock::of_system());
            if let Ok(left) = Duration::try_from(left)
                && !left.is_zero()
            {
                sleep(left.min(LOOK)).await;
                continue;
            }
            match self.renew().await {
                Ok(()) => {
                    tracing::info!(until = %self.certificate.until, "the certificate is renewed");
                    failed = AGAIN;
                    due = renewal(&self.certificate, rand::random_range(0.0..1.0));
                }
                Err(error) => {
                    let until = &self.certificate.until;
                    tracing::warn!(%error, %until, "cannot renew the certificate; retrying");
                    sleep(failed).await;
                    failed = (failed * 2).min(AGAIN_MAX);
                }
            }
        }
    }

    async fn renew(&mut self) -> Result<(), JoinError> {
        let Known { server, authorities } = &self.known;
        let own = self.access.client();
        let certificate = obtain(&self.place, &own, server, &self.node).await?;
        let who = As::Certificate(certificate.data());
        self.access.replace(client(server, Some(authorities), who).await?);
        self.certificate = certificate;
        Ok(())
    }
}

/// Has a certificate signed and keeps it.
async fn obtain(
    place: &Place,
    client: &kube::Client,
    server: &str,
    node: &str,
) -> Result<Certificate, JoinError> {
    let key = place.key()?;
    let signed = match signing::certificate(client, server, node, &key).await {
        Ok(signed) => signed,
        Err(error) => {
            // Who was refused asks for another the next time.
            if matches!(error, JoinError::Refused { .. }) {
                place.forget_key()?;
            }
            return Err(error);
        }
    };
    place.keep(&signed, &key)?;
    let kept = place.certificate(node)?;
    kept.ok_or_else(|| JoinError::Key("the cluster has signed the certificate of another".into()))
}

/// When a certificate is renewed: after between seven and nine tenths of its time, so that not all
/// nodes ask at once.
fn renewal(certificate: &Certificate, random: f64) -> Timestamp {
    let whole = certificate.until.duration_since(certificate.since);
    let part = SignedDuration::try_from_secs_f64(whole.as_secs_f64() * (0.7 + 0.2 * random));
    let due = part.ok().and_then(|part| certificate.since.checked_add(part).ok());
    due.unwrap_or(certificate.until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_in_the_last_third_of_its_time() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let certificate =
            Certificate::of_times(at("2030-01-01T00:00:00Z"), at("2030-01-11T00:00:00Z"));
        assert_eq!(renewal(&certificate, 0.0), at("2030-01-08T00:00:00Z"));
        assert_eq!(renewal(&certificate, 1.0), at("2030-01-10T00:00:00Z"));
    }
}
