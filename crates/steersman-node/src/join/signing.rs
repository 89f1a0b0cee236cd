//! Asks a cluster to sign the certificate of a node, and waits until it has.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData};
use ring::digest::{SHA256, digest};
use tokio::time::{Instant, sleep};

use super::JoinError;

/// Who signs for kubelets.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// What a key that is not RSA is for.
const USAGES: [&str; 2] = ["digital signature", "client auth"];
/// How often to look whether it is signed, at first and later.
const SOON: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_secs(5);
/// After how long people are told that somebody has to approve it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The user that a node is.
pub(super) fn user(node: &str) -> String {
    format!("system:node:{node}")
}

/// The certificate of a node for a key, in PEM. Asked again with the same key, the same request is
/// waited for.
pub(super) async fn certificate(
    client: &kube::Client,
    server: &str,
    node: &str,
    key: &KeyPair,
) -> Result<String, JoinError> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let request = request(node, key)?;
    let name = request.metadata.name.clone().unwrap_or_default();
    match requests.create(&PostParams::default(), &request).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(JoinError::server(server, &error)),
    }
    let (mut pause, begun, mut told) = (SOON, Instant::now(), false);
    loop {
        match requests.get_opt(&name).await {
            Ok(Some(found)) => {
                if let Some(signed) = answer(&found, &name)? {
                    return Ok(signed);
                }
            }
            Ok(None) => {
                let why = "somebody has deleted it".to_owned();
                return Err(JoinError::Refused { name, why });
            }
            Err(error) => tracing::warn!(%error, "cannot ask for the certificate; retrying"),
        }
        if !told && begun.elapsed() > PATIENCE {
            tracing::warn!(request = name, "waiting for somebody to approve this node");
            told = true;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LATER);
    }
}

/// The certificate, if there is one, or why there will be none.
fn answer(request: &CertificateSigningRequest, name: &str) -> Result<Option<String>, JoinError> {
    let Some(status) = &request.status else { return Ok(None) };
    let is_no = |condition: &&CertificateSigningRequestCondition| {
        ["Denied", "Failed"].contains(&condition.type_.as_str())
    };
    if let Some(no) = status.conditions.iter().flatten().find(is_no) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let why = format!("{} ({}: {})", no.type_, text(&no.reason), text(&no.message));
        return Err(JoinError::Refused { name: name.to_owned(), why });
    }
    let signed = status.certificate.as_ref().filter(|signed| !signed.0.is_empty());
    Ok(signed.map(|signed| String::from_utf8_lossy(&signed.0).into_owned()))
}

fn request(node: &str, key: &KeyPair) -> Result<CertificateSigningRequest, JoinError> {
    let made = |error: rcgen::Error| JoinError::Key(error.to_string());
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, user(node));
    let pem = params.serialize_request(key).map_err(made)?.pem().map_err(made)?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(name(node, key)), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: SIGNER.into(),
            usages: Some(USAGES.map(str::to_owned).into()),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

/// What the request of a node for a key is called: always the same.
fn name(node: &str, key: &KeyPair) -> String {
    let told = [user(node).as_bytes(), &key.subject_public_key_info()].concat();
    let hash = digest(&SHA256, &told);
    let text: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("node-csr-{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_key_and_refusals_are_told() {
        let key = KeyPair::generate().unwrap();
        let first = request("a", &key).unwrap();
        assert_eq!(first.metadata.name, request("a", &key).unwrap().metadata.name);
        let other = KeyPair::generate().unwrap();
        assert_ne!(first.metadata.name, request("a", &other).unwrap().metadata.name);
        assert_eq!(answer(&first, "x").unwrap(), None);
        let mut denied = first.clone();
        let conditions = vec![CertificateSigningRequestCondition {
            type_: "Denied".into(),
            reason: Some("NotOurs".into()),
            message: Some("go away".into()),
            ..CertificateSigningRequestCondition::default()
        }];
        denied.status.get_or_insert_default().conditions = Some(conditions);
        let why = answer(&denied, "x").unwrap_err().to_string();
        assert_eq!(why, "the request x for a certificate was refused: Denied (NotOurs: go away)");
        let mut signed = first;
        signed.status.get_or_insert_default().certificate = Some(ByteString(b"PEM".to_vec()));
        assert_eq!(answer(&signed, "x").unwrap().as_deref(), Some("PEM"));
    }
}
