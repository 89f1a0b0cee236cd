//! Whether a server is that of the right cluster, for who knows nothing but a token and a hash.
//!
//! The ConfigMap `cluster-info` is read twice: from whoever answers, to see which authorities it
//! names, whether it is signed with the token and whether the hash is theirs; and once more from a
//! server that these authorities vouch for, to see whether it says the same.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::config::Kubeconfig;
use ring::hmac;
use tokio::time::sleep;

use super::access::{As, client};
use super::{Authorities, BootstrapToken, JoinError};

/// Where clusters tell what they are.
pub(super) const NAMESPACE: &str = "kube-public";
pub(super) const CLUSTER_INFO: &str = "cluster-info";
pub(super) const CONTENT: &str = "kubeconfig";
/// What the fields of signatures begin with; the id of a token follows.
const SIGNATURE: &str = "jws-kubeconfig-";
/// How often to look for a signature, which is made a moment after the token.
const LOOKS: usize = 10;
const AGAIN: Duration = Duration::from_secs(1);

/// The authorities of the cluster at this address, if it is the right one.
pub(super) async fn authorities(
    server: &str,
    token: &BootstrapToken,
    hashes: &[String],
) -> Result<Authorities, JoinError> {
    let anybody = client(server, None, As::Anybody).await?;
    let said = signed(&anybody, server, token).await?;
    let authorities = named(&said).ok_or_else(|| {
        let why = "its kubeconfig names no authority".to_owned();
        JoinError::NoClusterInfo { server: server.to_owned(), why }
    })?;
    let found = authorities.hashes();
    if !found.iter().any(|hash| hashes.iter().any(|pinned| pinned.eq_ignore_ascii_case(hash))) {
        return Err(JoinError::NotPinned { found });
    }
    let verified = client(server, Some(&authorities), As::Anybody).await?;
    if signed(&verified, server, token).await? == said {
        return Ok(authorities);
    }
    let why = "it says something else to those who verify the server".to_owned();
    Err(JoinError::NoClusterInfo { server: server.to_owned(), why })
}

/// What a cluster says of itself, signed with this token.
async fn signed(
    client: &kube::Client,
    server: &str,
    token: &BootstrapToken,
) -> Result<String, JoinError> {
    let unread = |why: String| JoinError::NoClusterInfo { server: server.to_owned(), why };
    for look in 1..=LOOKS {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        match maps.get(CLUSTER_INFO).await {
            Ok(map) => {
                let data = map.data.unwrap_or_default();
                let signature = data.get(&format!("{SIGNATURE}{}", token.id));
                if let (Some(said), Some(signature)) = (data.get(CONTENT), signature) {
                    let not_signed = || JoinError::NotSigned { id: token.id.clone() };
                    return is_signed(said, signature, token)
                        .then(|| said.clone())
                        .ok_or_else(not_signed);
                }
            }
            Err(error) if look == LOOKS => return Err(unread(super::with_sources(&error))),
            Err(error) => tracing::debug!(%error, "cluster-info cannot be read; retrying"),
        }
        if look < LOOKS {
            sleep(AGAIN).await;
        }
    }
    Err(JoinError::NotSigned { id: token.id.clone() })
}

/// Whether a text is signed with a token, by a JWS that stands apart from it.
fn is_signed(text: &str, signature: &str, token: &BootstrapToken) -> bool {
    let parts: Vec<&str> = signature.split('.').collect();
    let [header, "", signature] = parts[..] else { return false };
    let Ok(read) = URL_SAFE_NO_PAD.decode(header) else { return false };
    let Ok(read) = serde_json::from_slice::<serde_json::Value>(&read) else { return false };
    if read["alg"] != "HS256" || read["kid"] != token.id.as_str() {
        return false;
    }
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.secret.as_bytes());
    hmac::verify(&key, signed.as_bytes(), &signature).is_ok()
}

/// The authorities that a kubeconfig names.
fn named(kubeconfig: &str) -> Option<Authorities> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).ok()?;
    let cluster = kubeconfig.clusters.into_iter().next()?.cluster?;
    Authorities::from_data(&cluster.certificate_authority_data?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signature_of_the_token_over_the_very_text_counts() {
        let token: BootstrapToken = "abcdef.0123456789abcdef".parse().unwrap();
        // What the bootstrap signer of Kubernetes makes of it.
        let signature = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.\
                         .K1chermAQEq0rdqy-ehj0VDfmA_ytv8Wzh9g26FldrE";
        assert!(is_signed("apiVersion: v1\n", signature, &token));
        assert!(!is_signed("apiVersion: v2\n", signature, &token));
        let other: BootstrapToken = "abcdef.0123456789abcdeg".parse().unwrap();
        assert!(!is_signed("apiVersion: v1\n", signature, &other));
        let other: BootstrapToken = "abcdeg.0123456789abcdef".parse().unwrap();
        assert!(!is_signed("apiVersion: v1\n", signature, &other));
        for odd in ["", "..", "a.b.c", &signature.replace("..", ".")] {
            assert!(!is_signed("apiVersion: v1\n", odd, &token), "{odd}");
        }
    }
}
