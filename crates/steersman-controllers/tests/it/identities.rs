//! Nodes that ask for certificates, requests and tokens that nobody needs any more.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use serde_json::{Value, json};
use steersman::{Impersonation, Result, clock};
use steersman_testkit::{Cluster, Restarts};

use crate::objects::object;
use crate::restarts::{built_in, small};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Asks for the certificate of the node a. Nobody has the key.
const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIHqMIGRAgEAMC8xFTATBgNVBAoMDHN5c3RlbTpub2RlczEWMBQGA1UEAwwNc3lz
dGVtOm5vZGU6YTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABD9hxU8a3T5dXrht
gKUv16H7I8ITQd1ESBxcSLtFCqziNnwEnUHs/v3II8eVEA0RWVS5yWlF6MlkW1HD
ZOu+n3ygADAKBggqhkjOPQQDAgNIADBFAiEA+ylq5p6itj+K/21Q6h0rxfhsk9zB
Zsw0iu02zkmJFWsCIC7yKckWic+GsCFhdLXSVPvl9gWa3wV1pFXyNfm9klXf
-----END CERTIFICATE REQUEST-----
";

fn request(name: &str) -> CertificateSigningRequest {
    let mut request: CertificateSigningRequest = object(json!({
        "metadata": {"name": name},
        "spec": {
            "request": "",
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    }));
    request.spec.request = ByteString(REQUEST.as_bytes().to_vec());
    request
}

fn is_signed(request: &CertificateSigningRequest) -> bool {
    request.status.as_ref().is_some_and(|status| status.certificate.is_some())
}

/// Reason and message of the approval of a request.
async fn approval(cluster: &Cluster, name: &str) -> Result<Option<(String, String)>> {
    let request: CertificateSigningRequest =
        cluster.client().get(name).await?.expect("it is there");
    let conditions = request.status.and_then(|status| status.conditions).unwrap_or_default();
    let approved = conditions.into_iter().find(|condition| condition.type_ == "Approved");
    Ok(approved.map(|it| (it.reason.unwrap_or_default(), it.message.unwrap_or_default())))
}

#[steersman::test(nodes = 0)]
async fn a_node_gets_its_certificate_as_soon_as_it_may_and_its_request_is_cleaned_up(
    cluster: Cluster,
) -> Result<()> {
    let node = Impersonation::new("system:node:a", &["system:nodes", "system:authenticated"])?;
    cluster.client().acting_as(&node).create(&request("self")).await?;
    cluster.client().create(&request("admin")).await?;
    let mut other = request("other");
    other.spec.signer_name = "example.com/own".into();
    cluster.client().create(&other).await?;
    cluster.eventually("admin", is_signed).await?;
    let approved = |self_: &str| {
        let told = format!(
            "Auto approving {self_}kubelet client certificate after \
                            SubjectAccessReview."
        );
        Some(("AutoApproved".to_owned(), told))
    };
    assert_eq!(approval(&cluster, "admin").await?, approved(""));
    cluster.advance(MINUTE).await;
    assert_eq!(approval(&cluster, "self").await?, None, "nobody allowed it");

    let role = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
    let group =
        json!({"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"});
    let binding: ClusterRoleBinding = object(json!({
        "metadata": {"name": "nodes-renew"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [group],
    }));
    cluster.client().create(&binding).await?;
    cluster.advance(20 * MINUTE).await;
    assert_eq!(approval(&cluster, "self").await?, approved("self "));
    cluster.eventually("self", is_signed).await?;

    cluster.advance(HOUR).await;
    for name in ["admin", "self"] {
        let left: Option<CertificateSigningRequest> = cluster.client().get(name).await?;
        assert!(left.is_none(), "{name}, an hour after it was approved");
    }
    cluster.advance(22 * HOUR).await;
    assert_eq!(approval(&cluster, "other").await?, None, "it still waits for somebody");
    cluster.advance(HOUR).await;
    assert!(cluster.client().get::<CertificateSigningRequest>("other").await?.is_none());
    Ok(())
}

#[test]
fn a_node_is_approved_once_whenever_the_controllers_of_requests_are_restarted() {
    let approving = built_in("certificatesigningrequest-approving-controller");
    let cleaner = built_in("certificatesigningrequest-cleaner-controller");
    Restarts::of(approving).beside(cleaner).settings(small()).events(3).check(async |cluster| {
        cluster.client().create(&request("node")).await?;
        cluster.eventually("node", is_signed).await?;
        cluster.advance(HOUR).await;
        cluster.gone::<CertificateSigningRequest>("node").await
    });
}

const TOKENS: &str = "legacy-serviceaccount-token-cleaner-controller";

/// A Secret with a token of `robot`.
fn token(name: &str) -> Secret {
    object(json!({
        "metadata": {"name": name, "namespace": "default",
            "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    }))
}

#[steersman::test(limit = "800d", nodes = 0, which = TOKENS.parse().unwrap())]
async fn a_generated_token_that_nobody_uses_is_invalid_after_a_year_and_gone_after_two(
    cluster: Cluster,
) -> Result<()> {
    let today = clock::now().to_string()[..10].to_owned();
    cluster.client().create::<ConfigMap>(&object(json!({
        "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"},
        "data": {"since": today},
    })))
    .await?;
    cluster.client().create::<ServiceAccount>(&object(json!({
        "metadata": {"name": "robot", "namespace": "default"}, "secrets": [{"name": "generated"}],
    })))
    .await?;
    for name in ["generated", "asked-for"] {
        cluster.client().create(&token(name)).await?;
    }
    let label = async |name: &str| -> Result<Option<String>> {
        let secret: Secret =
            cluster.client().get(format!("default/{name}").as_str()).await?.unwrap();
        let labels = secret.metadata.labels.unwrap_or_default();
        Ok(labels.get("kubernetes.io/legacy-token-invalid-since").cloned())
    };
    cluster.advance(365 * DAY).await;
    assert_eq!(label("generated").await?, None);
    cluster.advance(2 * DAY).await;
    assert!(label("generated").await?.is_some());
    assert_eq!(label("asked-for").await?, None);
    cluster.advance(364 * DAY).await;
    assert!(label("generated").await?.is_some(), "it is kept for another year");
    cluster.advance(3 * DAY).await;
    assert!(cluster.client().get::<Secret>("default/generated").await?.is_none());
    assert_eq!(label("asked-for").await?, None);
    Ok(())
}

const BOOTSTRAP: &str = "bootstrapsigner,tokencleaner";

fn signatures(map: &ConfigMap) -> Vec<&str> {
    let fields = map.data.iter().flatten().map(|(field, _)| field.as_str());
    fields.filter(|field| field.starts_with("jws-kubeconfig-")).collect()
}

#[steersman::test(nodes = 0, which = BOOTSTRAP.parse().unwrap())]
async fn a_bootstrap_token_signs_the_clusters_kubeconfig_until_it_expires(
    cluster: Cluster,
) -> Result<()> {
    cluster
        .client()
        .create::<ConfigMap>(&object(json!({
            "metadata": {"name": "cluster-info", "namespace": "kube-public"},
            "data": {"kubeconfig": "apiVersion: v1\nkind: Config\n"},
        })))
        .await?;
    let token = |id: &str, more: Value| -> Secret {
        let mut secret = json!({
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"},
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            secret["stringData"][field] = value.clone();
        }
        object(secret)
    };
    let soon = clock::now() + jiff::SignedDuration::from_hours(1);
    cluster.client().create(&token("aaaaaa", json!({"expiration": soon.to_string()}))).await?;
    cluster.client().create(&token("bbbbbb", json!({}))).await?;
    cluster.client().create(&token("cccccc", json!({"usage-bootstrap-signing": "false"}))).await?;
    let two = ["jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb"];
    cluster
        .eventually("kube-public/cluster-info", |map: &ConfigMap| signatures(map) == two)
        .await?;
    cluster.advance(HOUR - MINUTE).await;
    let token = "kube-system/bootstrap-token-aaaaaa";
    assert!(cluster.client().get::<Secret>(token).await?.is_some());
    cluster.gone::<Secret>(token).await?;
    assert!(clock::now() >= soon);
    cluster
        .eventually("kube-public/cluster-info", |map: &ConfigMap| signatures(map) == two[1..])
        .await?;
    for kept in ["bbbbbb", "cccccc"] {
        let name = format!("kube-system/bootstrap-token-{kept}");
        assert!(cluster.client().get::<Secret>(name.as_str()).await?.is_some(), "{kept}");
    }
    Ok(())
}
