//! Certificates and tokens that the cluster signs.

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewStatus};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::objects::{counted, object};

/// Asks for a certificate of jane, of the groups dev and ops. Nobody has the key.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHnMIGNAgEAMCsxDDAKBgNVBAoMA2RldjEMMAoGA1UECgwDb3BzMQ0wCwYDVQQD
DARqYW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETQOz8QNg9CBb2thsgUrS
D3qoUr5dLnIMo7DsPo3nH2u+/7HWDnhxNsPAFzZgVBCrcboSyspfIx1ZOS6fhUdp
7qAAMAoGCCqGSM49BAMCA0kAMEYCIQDmQ+r7AbP8n1qZLglNLr1BZkaEWYiyuTrL
3gcSQdP1kgIhAIzAUlcyp756RP1QEKt8S/o0ICb2Jmjy5G+tiLNHVr/H
-----END CERTIFICATE REQUEST-----
";

fn request(name: &str, signer: &str, usages: &[&str]) -> CertificateSigningRequest {
    let mut request: CertificateSigningRequest = object(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": "", "signerName": signer, "usages": usages},
    }));
    request.spec.request = ByteString(REQUEST.as_bytes().to_vec());
    request
}

/// Creates a request and decides it.
async fn decided(
    cluster: &Cluster,
    request: &CertificateSigningRequest,
    decision: &str,
) -> Result<()> {
    let mut request = cluster.client().create(request).await?;
    let condition: CertificateSigningRequestCondition =
        object(json!({"type": decision, "status": "True", "reason": "Test"}));
    request.status.get_or_insert_default().conditions = Some(vec![condition]);
    cluster.client().replace_subresource("approval", &request).await.map(drop)
}

fn certificate(request: &CertificateSigningRequest) -> Option<&[u8]> {
    Some(&request.status.as_ref()?.certificate.as_ref()?.0)
}

#[steersman::test]
async fn an_approved_request_gets_its_certificate_and_a_denied_one_does_not(
    cluster: Cluster,
) -> Result<()> {
    let signer = "kubernetes.io/kube-apiserver-client";
    decided(&cluster, &request("denied", signer, &["client auth"]), "Denied").await?;
    decided(&cluster, &request("other", "example.com/own", &["client auth"]), "Approved").await?;
    cluster.client().create(&request("open", signer, &["client auth"])).await?;
    decided(&cluster, &request("jane", signer, &["client auth"]), "Approved").await?;
    let signed = |request: &CertificateSigningRequest| certificate(request).is_some();
    cluster.eventually("jane", signed).await?;
    let jane: CertificateSigningRequest = cluster.client().get("jane").await?.unwrap();
    assert!(certificate(&jane).unwrap().starts_with(b"-----BEGIN CERTIFICATE-----\n"));
    cluster.settle().await;
    for name in ["denied", "other", "open"] {
        let request: CertificateSigningRequest = cluster.client().get(name).await?.unwrap();
        assert_eq!(certificate(&request), None, "{name}");
    }
    Ok(())
}

#[steersman::test]
async fn a_request_for_something_else_is_told_that_it_failed(cluster: Cluster) -> Result<()> {
    let signer = "kubernetes.io/kube-apiserver-client";
    let usages = ["client auth", "server auth"];
    decided(&cluster, &request("jane", signer, &usages), "Approved").await?;
    let failure = |request: &CertificateSigningRequest| {
        let conditions = request.status.as_ref()?.conditions.as_ref()?;
        let failed = conditions.iter().find(|condition| condition.type_ == "Failed")?;
        Some((failed.reason.clone()?, failed.message.clone()?))
    };
    let is_told = |request: &CertificateSigningRequest| failure(request).is_some();
    cluster.eventually("jane", is_told).await?;
    let jane: CertificateSigningRequest = cluster.client().get("jane").await?.unwrap();
    let (reason, message) = failure(&jane).unwrap();
    assert_eq!(reason, "SignerValidationFailure");
    assert_eq!(message, "invalid usage for client certificate: server auth");
    assert_eq!(certificate(&jane), None);
    Ok(())
}

fn account() -> ServiceAccount {
    object(json!({"metadata": {"name": "robot", "namespace": "default"}}))
}

fn secret() -> Secret {
    object(json!({
        "metadata": {"name": "robot-token", "namespace": "default",
            "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }))
}

fn value(secret: &Secret, key: &str) -> Option<String> {
    String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok()
}

async fn review(cluster: &Cluster, token: &str) -> Result<TokenReviewStatus> {
    let review: Value = json!({"metadata": {}, "spec": {"token": token}});
    let review: TokenReview = cluster.client().create(&object(review)).await?;
    Ok(review.status.unwrap_or_default())
}

#[steersman::test]
async fn a_secret_for_a_token_is_filled_and_ends_with_its_account(cluster: Cluster) -> Result<()> {
    let robot = cluster.client().create(&account()).await?;
    cluster.client().create(&secret()).await?;
    let filled = |secret: &Secret| value(secret, "token").is_some();
    cluster.eventually("default/robot-token", filled).await?;
    let held: Secret = cluster.client().get("default/robot-token").await?.unwrap();
    cluster.eventually("default/kube-root-ca.crt", |_: &ConfigMap| true).await?;
    let published: ConfigMap = cluster.client().get("default/kube-root-ca.crt").await?.unwrap();
    assert_eq!(value(&held, "ca.crt").as_ref(), published.data.unwrap_or_default().get("ca.crt"));
    let synced = counted(&cluster, "root_ca_cert_publisher_sync_total{code=\"200\"}").await?;
    assert!(synced.is_some_and(|times| times >= 1.0), "{synced:?}");
    assert_eq!(value(&held, "namespace").as_deref(), Some("default"));
    let annotations = held.metadata.annotations.clone().unwrap_or_default();
    assert_eq!(annotations.get("kubernetes.io/service-account.uid"), robot.metadata.uid.as_ref());

    let token = value(&held, "token").unwrap_or_default();
    let status = review(&cluster, &token).await?;
    let user = status.user.unwrap_or_default();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));

    cluster.client().delete::<ServiceAccount>("default/robot", &DeleteParams::default()).await?;
    cluster.gone::<Secret>("default/robot-token").await?;
    assert_eq!(review(&cluster, &token).await?.authenticated, None);
    Ok(())
}

#[steersman::test]
async fn a_secret_of_nobody_is_deleted_and_others_are_left_alone(cluster: Cluster) -> Result<()> {
    let other: Secret = object(json!({"metadata": {"name": "other", "namespace": "default"}}));
    cluster.client().create(&other).await?;
    cluster.client().create(&secret()).await?;
    cluster.gone::<Secret>("default/robot-token").await?;
    assert!(cluster.client().get::<Secret>("default/other").await?.is_some());
    Ok(())
}

#[steersman::test]
async fn an_account_forgets_a_secret_that_is_gone(cluster: Cluster) -> Result<()> {
    let mut robot = account();
    robot.secrets = object(json!([{"name": "robot-token"}, {"name": "other"}]));
    cluster.client().create(&robot).await?;
    cluster.client().create(&secret()).await?;
    let filled = |secret: &Secret| value(secret, "token").is_some();
    cluster.eventually("default/robot-token", filled).await?;
    cluster.client().delete::<Secret>("default/robot-token", &DeleteParams::default()).await?;
    let forgot = |robot: &ServiceAccount| {
        let names = robot.secrets.iter().flatten().filter_map(|secret| secret.name.as_deref());
        names.eq(["other"])
    };
    cluster.eventually("default/robot", forgot).await
}
