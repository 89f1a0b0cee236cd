//! Machines that become members of a cluster with a bootstrap token, over HTTPS.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use steersman::Client;
use steersman_cluster::join::{
    Authorities, BootstrapToken, Invitation, Join, JoinError, Membership, Trust,
};
use steersman_cluster::{Authentication, Cluster, ControllerSettings, Controllers};
use tokio::time::{interval, timeout};

use crate::{PATIENCE, Scratch};

/// A cluster that machines can join, and what one of them is told.
struct Open {
    cluster: Cluster,
    invitation: Invitation,
}

impl Open {
    async fn start(certificates_live: Duration) -> Self {
        let controllers: Controllers = "*,bootstrapsigner,tokencleaner".parse().unwrap();
        let settings = ControllerSettings {
            certificate_lifetime: certificates_live,
            ..ControllerSettings::default()
        };
        let tokens = Authentication { bootstrap_tokens: true, ..Authentication::default() };
        let builder = Cluster::builder().nodes(0).controllers(controllers).authentication(tokens);
        let builder = builder.controller_settings(settings).listen(([127, 0, 0, 1], 0).into());
        let cluster = builder.start().await.unwrap();
        let endpoint = cluster.endpoint().unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&endpoint.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let named = kubeconfig.clusters[0].cluster.clone().unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let authorities = Authorities::from_der(config.unwrap().root_cert.unwrap()).unwrap();
        let invitation = Invitation {
            token: BootstrapToken::random(),
            ttl: Some(Duration::from_hours(1)),
            description: None,
            server: named.server.unwrap(),
            authorities,
        };
        invitation.write(&Client::new(cluster.client(), "test")).await.unwrap();
        Self { cluster, invitation }
    }

    fn told(&self, trust: Trust) -> Join {
        let Invitation { server, token, .. } = self.invitation.clone();
        Join { server, token, trust }
    }

    fn by_hash(&self) -> Join {
        self.told(Trust::Hashes(self.invitation.authorities.hashes()))
    }
}

/// Name and groups of whoever has a client.
async fn user(client: kube::Client) -> kube::Result<(String, Vec<String>)> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok((user.username.unwrap_or_default(), user.groups.unwrap_or_default()))
}

async fn kept(directory: &Path, node: &str) -> Option<Membership> {
    Membership::kept(directory, node, None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_by_the_hash_of_the_authority_or_by_its_certificate() {
    let open = Open::start(Duration::from_hours(1)).await;
    let authorities = open.invitation.authorities.clone();
    for (node, join) in [("a", open.by_hash()), ("b", open.told(Trust::Authorities(authorities)))] {
        let directory = Scratch::new();
        assert!(kept(&directory.0, node).await.is_none());
        let joined = Membership::of(&join, &directory.0, node).await.unwrap();
        let (name, groups) = user(joined.client()).await.unwrap();
        assert_eq!(name, format!("system:node:{node}"));
        assert!(groups.contains(&"system:nodes".to_owned()), "{groups:?}");
        // An agent that is started anew needs no token.
        drop(joined);
        let again = kept(&directory.0, node).await.expect("it is kept");
        assert_eq!(user(again.client()).await.unwrap().0, format!("system:node:{node}"));
        assert!(kept(&directory.0, "another").await.is_none(), "it is not that of another node");
    }
    let requests: Api<CertificateSigningRequest> = Api::all(open.cluster.client());
    let requests = requests.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(requests.len(), 2);
    for request in requests {
        let by = request.spec.username.unwrap();
        assert_eq!(by, format!("system:bootstrap:{}", open.invitation.token.id()));
    }
    open.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_does_not_join_another_cluster_or_with_another_token() {
    let open = Open::start(Duration::from_hours(1)).await;
    let directory = Scratch::new();
    let other = format!("sha256:{}", "0".repeat(64));
    let join = open.told(Trust::Hashes(vec![other]));
    let error = Membership::of(&join, &directory.0, "a").await.unwrap_err();
    assert!(matches!(error, JoinError::NotPinned { .. }), "{error}");

    let stranger = BootstrapToken::random();
    let join = Join { token: stranger.clone(), ..open.by_hash() };
    let error = Membership::of(&join, &directory.0, "a").await.unwrap_err();
    assert!(matches!(error, JoinError::NotSigned { .. }), "{error}");
    let by_certificate = open.told(Trust::Authorities(open.invitation.authorities.clone()));
    let join = Join { token: stranger, ..by_certificate };
    let error = Membership::of(&join, &directory.0, "a").await.unwrap_err();
    assert!(error.to_string().contains("Unauthorized"), "{error}");

    // Whoever signed for somebody else does not vouch for this server.
    let elsewhere = Open::start(Duration::from_hours(1)).await;
    let join = open.told(Trust::Authorities(elsewhere.invitation.authorities.clone()));
    let error = Membership::of(&join, &directory.0, "a").await.unwrap_err();
    assert!(matches!(error, JoinError::Server { .. }), "{error}");
    assert!(kept(&directory.0, "a").await.is_none());
    for cluster in [open.cluster, elsewhere.cluster] {
        cluster.stop().await;
    }
}

/// What the server says of its caches.
async fn caches(client: &kube::Client) -> String {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_with_tokens_holds_no_other_objects_and_makes_nobody_else_hold_them() {
    let open = Open::start(Duration::from_hours(1)).await;
    let client = Client::new(open.cluster.client(), "test");
    for name in ["a", "b", "c"] {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        client
            .create(&ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() })
            .await
            .unwrap();
        client.create(&Secret { metadata, ..Secret::default() }).await.unwrap();
    }
    let held = |kind: &str, by: &str, count: usize| {
        format!("informer_objects{{name=\"{kind}\",group=\"\"{by}}} {count}\n")
    };
    let signer = ",cluster=\"bootstrap-signer-controller\"";
    let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"].len();
    let expected = [
        held("ConfigMap", signer, 1),
        held("Secret", signer, 1),
        held("ConfigMap", "", namespaces), // each has the certificates of the authority
        held("Secret", "", 0),
    ];
    let settled = async {
        let mut ticks = interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            let text = caches(&open.cluster.client()).await;
            if expected.iter().all(|line| text.contains(line)) {
                return;
            }
        }
    };
    timeout(PATIENCE, settled).await.expect("only what is read is held");
    open.cluster.stop().await;
}

/// What a client shows of itself: a certificate.
async fn credential(client: kube::Client) -> kube::Result<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    assert_eq!(user.username.as_deref(), Some("system:node:a"));
    let mut extra = user.extra.unwrap_or_default();
    Ok(extra.remove("authentication.kubernetes.io/credential-id").unwrap_or_default().join(","))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_before_it_ends_and_clients_go_on() {
    let open = Open::start(Duration::from_secs(30)).await;
    let directory = Scratch::new();
    drop(Membership::of(&open.by_hash(), &directory.0, "a").await.unwrap());
    let file = directory.0.join("pki/kubelet-client-current.pem");
    let first = std::fs::read_to_string(&file).unwrap();
    // This machine seems to have had it for the five minutes by which it was dated back: more than
    // nine tenths of its time are over, and half a minute is left.
    let written = std::fs::File::options().write(true).open(&file).unwrap();
    written.set_modified(std::time::UNIX_EPOCH).unwrap();
    let again = kept(&directory.0, "a").await.expect("it is kept");
    let client = again.client();
    let shown = credential(client.clone()).await.unwrap();
    assert!(shown.starts_with("X509SHA256="), "{shown}");
    let renewing = tokio::spawn(again.keep());
    let renewed = async {
        let mut ticks = interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            let now = credential(client.clone()).await.expect("there always is a good certificate");
            if now != shown {
                return;
            }
        }
    };
    timeout(PATIENCE, renewed).await.expect("clients go on with the new certificate");
    assert_ne!(std::fs::read_to_string(&file).unwrap(), first);
    renewing.abort();
    open.cluster.stop().await;
}
