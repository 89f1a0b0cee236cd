//! Replicas that share a certificate authority through a Secret: whatever happens to it, the API
//! server trusts every one of them, at every moment.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch};
use kube::client::Body;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::json;
use steersman::manager::Running;
use steersman::serve::Certificates;
use steersman::webhook::{ClientConfig, SharedCa, WebhookServer, install};
use steersman::{Manager, Result};
use steersman_testkit::{Cluster, Faults, Settings, run_with};

use super::Shop;

const HOST: &str = "shop.default.svc";
const CONFIGURATION: &str = "shop-validating";
const SECRET: &str = "shop-webhook-ca";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn server() -> Result<WebhookServer> {
    let shared = SharedCa::for_hosts([HOST]).lifetime(6 * HOUR);
    WebhookServer::builder("shop").validates::<Shop>().in_process().shared_ca(shared).build()
}

/// A replica of a program, as far as its webhooks go.
struct Replica {
    certificates: Certificates,
    running: Running,
}

impl Replica {
    fn start(client: &kube::Client) -> Result<Self> {
        let server = server()?;
        let certificates = server.certificates().expect("it makes its certificate").clone();
        Ok(Self { certificates, running: Manager::new(client.clone()).webhooks(server).start() })
    }

    fn shown(&self) -> CertificateDer<'static> {
        let pem = self.certificates.pem().expect("it shows a certificate");
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }
}

/// A cluster that knows of the webhooks, with so many replicas.
async fn replicas<const N: usize>(cluster: &Cluster) -> Result<[Replica; N]> {
    let client = cluster.client().kube();
    install(client, &server()?, &ClientConfig::service("default", "shop")).await?;
    let started: Result<Vec<Replica>> = (0..N).map(|_| Replica::start(client)).collect();
    let replicas = started?;
    cluster.advance(Duration::from_secs(1)).await;
    Ok(replicas.try_into().ok().expect("as many as were started"))
}

/// The authorities that the API server trusts.
async fn bundle(cluster: &Cluster) -> Result<Vec<CertificateDer<'static>>> {
    let found: Option<ValidatingWebhookConfiguration> = cluster.client().get(CONFIGURATION).await?;
    let webhooks = found.and_then(|found| found.webhooks).unwrap_or_default();
    let bundle = webhooks[0].client_config.ca_bundle.clone().unwrap_or_default();
    Ok(CertificateDer::pem_slice_iter(&bundle.0).collect::<Result<_, _>>()?)
}

/// Fails unless the API server trusts each replica, now.
async fn all_are_trusted(cluster: &Cluster, replicas: &[&Replica]) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for authority in bundle(cluster).await? {
        roots.add(authority)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    let now = steersman::clock::now();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second())?));
    let host = ServerName::try_from(HOST)?;
    for replica in replicas {
        let verified = verifier.verify_server_cert(&replica.shown(), &[], &host, &[], time);
        verified.unwrap_or_else(|error| panic!("not trusted at {now}: {error}"));
    }
    Ok(())
}

async fn secret(cluster: &Cluster) -> Result<Secret> {
    let found: Option<Secret> = cluster.client().get(SECRET).await?;
    Ok(found.expect("the Secret is there"))
}

async fn authority(cluster: &Cluster) -> Result<ByteString> {
    Ok(secret(cluster).await?.data.unwrap_or_default()["tls.crt"].clone())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn replicas_that_start_together_have_one_authority(cluster: Cluster) -> Result<()> {
    let [one, two, three] = replicas(&cluster).await?;
    all_are_trusted(&cluster, &[&one, &two, &three]).await?;
    assert_ne!(one.shown(), two.shown(), "each has a certificate of its own");
    assert_eq!(bundle(&cluster).await?.len(), 1);

    let version = async || -> Result<_> {
        let configuration: Option<ValidatingWebhookConfiguration> =
            cluster.client().get(CONFIGURATION).await?;
        let configuration = configuration.and_then(|it| it.metadata.resource_version);
        Ok((configuration, secret(&cluster).await?.metadata.resource_version))
    };
    let before = version().await?;
    cluster.advance(HOUR).await;
    assert_eq!(version().await?, before, "nobody writes what is there");
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn a_replica_that_restarts_is_trusted_at_once(cluster: Cluster) -> Result<()> {
    let [one, two] = replicas(&cluster).await?;
    let before = bundle(&cluster).await?;
    one.running.stop().await;
    let one = Replica::start(cluster.client().kube())?;
    one.running.ready().await?;
    cluster.advance(Duration::from_secs(1)).await;
    all_are_trusted(&cluster, &[&one, &two]).await?;
    assert_eq!(bundle(&cluster).await?, before);
    Ok(())
}

/// Over 20 hours an authority of 6 hours is replaced five times.
#[steersman::test(controllers = false, nodes = 0)]
async fn authorities_follow_each_other_and_nobody_notices(cluster: Cluster) -> Result<()> {
    let [mut one, two] = replicas(&cluster).await?;
    let mut authorities = vec![authority(&cluster).await?];
    let mut shown = vec![two.shown()];
    for step in 0..20 * 12 {
        cluster.advance(5 * MINUTE).await;
        if step % 50 == 49 {
            one.running.stop().await;
            one = Replica::start(cluster.client().kube())?;
            cluster.advance(Duration::from_secs(1)).await;
        }
        all_are_trusted(&cluster, &[&one, &two]).await?;
        assert!(bundle(&cluster).await?.len() <= 3, "those that have expired go");
        authorities.push(authority(&cluster).await?);
        shown.push(two.shown());
    }
    authorities.dedup();
    assert!((4..=6).contains(&authorities.len()), "{} authorities", authorities.len());
    shown.dedup();
    assert!(shown.len() > authorities.len(), "certificates do not last as long");
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn a_secret_that_is_deleted_or_damaged_is_put_back(cluster: Cluster) -> Result<()> {
    let [one, two] = replicas(&cluster).await?;
    let before = authority(&cluster).await?;
    let nonsense = STANDARD.encode("nonsense");
    let damages = [
        json!({"data": {"tls.key": nonsense}}),
        json!({"data": {"tls.crt": nonsense, "ca.crt": nonsense}}),
        json!({"data": {"tls.key": null}}),
        json!({"data": null}),
    ];
    for damage in damages {
        cluster.client().patch::<Secret, _>(SECRET, &Patch::Merge(damage)).await?;
        cluster.advance(MINUTE).await;
        assert_eq!(authority(&cluster).await?, before);
        all_are_trusted(&cluster, &[&one, &two]).await?;
    }
    cluster.client().delete::<Secret>(SECRET, &DeleteParams::default()).await?;
    all_are_trusted(&cluster, &[&one, &two]).await?;
    cluster.advance(MINUTE).await;
    assert_eq!(authority(&cluster).await?, before);
    Ok(())
}

/// The new replica cannot know the old authority: nobody has its key but the other one.
#[steersman::test(controllers = false, nodes = 0)]
async fn a_restart_without_the_secret_harms_no_other_replica(cluster: Cluster) -> Result<()> {
    let [one, two] = replicas(&cluster).await?;
    let before = authority(&cluster).await?;
    cluster.client().delete::<Secret>(SECRET, &DeleteParams::default()).await?;
    drop(one.running);
    let one = Replica::start(cluster.client().kube())?;
    for _ in 0..60 {
        cluster.advance(Duration::from_secs(1)).await;
        all_are_trusted(&cluster, &[&one, &two]).await?;
    }
    assert_ne!(authority(&cluster).await?, before);
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn what_removes_the_bundle_does_so_for_half_a_minute(cluster: Cluster) -> Result<()> {
    let [one] = replicas(&cluster).await?;
    let found: Option<ValidatingWebhookConfiguration> = cluster.client().get(CONFIGURATION).await?;
    let mut configuration = found.expect("it is installed");
    for webhook in configuration.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = None;
    }
    cluster.client().update(&configuration).await?;
    assert!(bundle(&cluster).await?.is_empty());
    cluster.advance(Duration::from_secs(35)).await;
    all_are_trusted(&cluster, &[&one]).await
}

/// While requests fail, conflict and are lost, replicas never show what is not trusted.
#[test]
fn trouble_on_the_way_to_the_api_server_is_outlasted() -> Result<()> {
    for seed in 0..3 {
        run_with(Settings::bare(seed), async |cluster: Cluster| -> Result<()> {
            let faults = Faults::seeded(seed).all(0.25);
            let client = cluster.client_with(&faults);
            install(cluster.client().kube(), &server()?, &ClientConfig::service("default", "shop"))
                .await?;
            let (one, two) = (Replica::start(&client)?, Replica::start(&client)?);
            cluster.advance(2 * MINUTE).await;
            for _ in 0..6 * 12 {
                cluster.advance(5 * MINUTE).await;
                all_are_trusted(&cluster, &[&one, &two]).await?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Every request as `METHOD resource/name`, which is sent on.
fn noting(cluster: &Cluster, notes: &Arc<Mutex<BTreeSet<String>>>) -> kube::Client {
    let (client, notes) = (cluster.client().kube().clone(), Arc::clone(notes));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, path) = (client.clone(), request.uri().path());
        let place = path.trim_start_matches("/api/v1/namespaces/default/");
        let place = place.trim_start_matches("/apis/admissionregistration.k8s.io/v1/");
        notes.lock().unwrap().insert(format!("{} {place}", request.method()));
        async move { client.send(request).await }
    });
    kube::Client::new(service, "default")
}

/// As the manifests allow it; see the tests of those.
#[steersman::test(controllers = false, nodes = 0)]
async fn no_more_is_asked_for_than_the_manifests_allow(cluster: Cluster) -> Result<()> {
    let notes = Arc::default();
    install(cluster.client().kube(), &server()?, &ClientConfig::service("default", "shop")).await?;
    let replica = Replica::start(&noting(&cluster, &notes))?;
    cluster.advance(6 * HOUR).await;
    all_are_trusted(&cluster, &[&replica]).await?;
    let expected = [
        "GET secrets/shop-webhook-ca",
        "GET validatingwebhookconfigurations/shop-validating",
        "PATCH validatingwebhookconfigurations/shop-validating",
        "POST secrets",
        "PUT secrets/shop-webhook-ca",
    ];
    assert_eq!(*notes.lock().unwrap(), expected.map(str::to_owned).into());
    Ok(())
}
