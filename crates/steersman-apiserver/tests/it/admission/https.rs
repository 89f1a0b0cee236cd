//! Webhooks behind a socket, and behind a service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use steersman_apiserver::pki::Pki;
use steersman_store::{Expected, WriteRequest};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::webhooks::{VALIDATING, allowed, configure, message, serve, warnings, webhook_with};

/// A webhook on a socket, which allows everything. Counts connections.
async fn serve_https(pki: &Pki) -> (u16, Arc<AtomicUsize>) {
    serve_tls(pki.server_config().unwrap()).await
}

/// A server with a certificate that nobody else has signed, for these names and until then.
fn self_signed(names: &[&str], until: (i32, u8, u8)) -> (rustls::ServerConfig, String) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut parameters = rcgen::CertificateParams::new(names).unwrap();
    parameters.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
    signed_by_itself(&parameters)
}

fn signed_by_itself(parameters: &rcgen::CertificateParams) -> (rustls::ServerConfig, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    (config, certificate.pem())
}

async fn serve_tls(config: rustls::ServerConfig) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            counted.fetch_add(1, Ordering::SeqCst);
            let service = service_fn(|request: http::Request<Incoming>| async {
                assert_eq!(request.uri().query(), Some("timeout=10s"));
                assert_eq!(request.uri().path(), "/judge");
                let body = request.into_body().collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                let answer = json!({
                    "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                    "response": {
                        "uid": review["request"]["uid"], "allowed": true,
                        "warnings": ["from afar"],
                    },
                });
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer.to_string()))))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (port, connections)
}

// On the real clock, for the socket is real.
#[tokio::test]
async fn a_webhook_is_called_over_https_if_its_authority_is_the_one_that_is_configured() {
    let api = Api::start().await;
    let pki = Pki::new(&[]).unwrap();
    let (port, connections) = serve_https(&pki).await;
    let url = format!("https://localhost:{port}/judge");
    let hook = |authority: &str| {
        let bundle = STANDARD.encode(authority);
        webhook_with("far", &json!({"clientConfig": {"url": url, "caBundle": bundle}}))
    };
    configure(&api, VALIDATING, "a", &[hook(&pki.ca)]).await;
    for name in ["a", "b", "c"] {
        let answer = api.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
        answer.ok();
        assert_eq!(warnings(&answer), ["299 - \"from afar\""]);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1, "the connection is used again");
    let other = Pki::new(&[]).unwrap();
    api.merge(&format!("{VALIDATING}/a"), &json!({"webhooks": [hook(&other.ca)]})).await.ok();
    let refused = api.post(CONFIG_MAPS, &config_map("d", &json!({}))).await.refused(500);
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message(&refused).contains(why), "{refused}");
    for (url, why) in [
        ("https://127.0.0.1:1/x", "dial tcp 127.0.0.1:1: connect: connection refused"),
        ("https://nobody.invalid/x", "dial tcp: lookup nobody.invalid: no such host"),
    ] {
        let nobody = webhook_with("far", &json!({"clientConfig": {"url": url}}));
        api.merge(&format!("{VALIDATING}/a"), &json!({"webhooks": [nobody]})).await.ok();
        let refused = api.post(CONFIG_MAPS, &config_map("d", &json!({}))).await.refused(500);
        assert!(message(&refused).ends_with(why), "{refused}");
    }
    let service = json!({"service": {"name": "hooks", "namespace": "default", "path": "/x"}});
    let service = webhook_with("far", &json!({"clientConfig": service}));
    api.merge(&format!("{VALIDATING}/a"), &json!({"webhooks": [service]})).await.ok();
    let refused = api.post(CONFIG_MAPS, &config_map("d", &json!({}))).await.refused(500);
    let url = "Post \"https://hooks.default.svc:443/x?timeout=10s\"";
    assert!(message(&refused).contains(url), "{refused}");
}

#[tokio::test]
async fn an_authority_that_shows_its_own_certificate_is_as_unknown_as_others() {
    let api = Api::start().await;
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let (config, _) = signed_by_itself(&parameters);
    let (port, _) = serve_tls(config).await;
    let bundle = STANDARD.encode(Pki::new(&[]).unwrap().ca);
    let url = format!("https://localhost:{port}/judge");
    let config = json!({"clientConfig": {"url": url, "caBundle": bundle}});
    configure(&api, VALIDATING, "a", &[webhook_with("far", &config)]).await;
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message(&refused).ends_with(why), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_service_is_answered_by_whom_its_name_is_given_to() {
    let api = Api::start().await;
    let asked = serve(&api, "hooks.default.svc", |_| allowed());
    let service = json!({"service": {"name": "hooks", "namespace": "default", "path": "/x"}});
    let hook = webhook_with("service", &json!({"clientConfig": service}));
    configure(&api, VALIDATING, "a", &[hook]).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(asked.count(), 1);
}

#[tokio::test]
async fn a_certificate_that_stands_in_the_bundle_itself_is_known_by_its_name_and_time() {
    let api = Api::start().await;
    let other = self_signed(&["localhost"], (2100, 1, 1)).1;
    for (names, until, bundle, expected) in [
        (["localhost"], (2100, 1, 1), None, None),
        (["localhost"], (2100, 1, 1), Some(other), Some("signed by unknown authority")),
        (
            ["elsewhere"],
            (2100, 1, 1),
            None,
            Some("x509: certificate is valid for elsewhere, not localhost"),
        ),
        (
            ["localhost"],
            (2001, 1, 1),
            None,
            Some("x509: certificate has expired or is not yet valid"),
        ),
    ] {
        let (config, own) = self_signed(&names, until);
        let (port, _) = serve_tls(config).await;
        let bundle = STANDARD.encode(bundle.unwrap_or(own));
        // Go cleans the path.
        let url = format!("https://localhost:{port}//judge/");
        let hook = webhook_with("far", &json!({"clientConfig": {"url": url, "caBundle": bundle}}));
        configure(&api, VALIDATING, "a", &[hook]).await;
        let answer = api.post(CONFIG_MAPS, &config_map(&format!("c{port}"), &json!({}))).await;
        match expected {
            None => drop(answer.ok()),
            Some(why) => {
                let refused = answer.refused(500);
                assert!(message(&refused).contains(why), "{why}: {refused}");
            }
        }
        api.delete(&format!("{VALIDATING}/a")).await.ok();
    }
}

#[tokio::test]
async fn a_service_is_reached_at_its_ready_endpoints() {
    let api = Api::start().await;
    let (config, bundle) = self_signed(&["hooks.default.svc"], (2100, 1, 1));
    let (port, connections) = serve_tls(config).await;
    let client = json!({
        "service": {"name": "hooks", "namespace": "default", "path": "/judge"},
        "caBundle": STANDARD.encode(bundle),
    });
    let hook = webhook_with("near", &json!({"clientConfig": client}));
    let service = json!({
        "metadata": {"name": "hooks"},
        "spec": {"ports": [{"name": "https", "port": 443}], "clusterIP": "None"},
    });
    let try_it = async |name: &str| api.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
    configure(&api, VALIDATING, "a", std::slice::from_ref(&hook)).await;
    let refused = try_it("a").await.refused(500);
    assert!(message(&refused).contains("service \"hooks\" not found"), "{refused}");
    api.post("/api/v1/namespaces/default/services", &service).await.ok();
    let refused = try_it("a").await.refused(500);
    assert!(message(&refused).contains("no endpoints available for service"), "{refused}");
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": port}],
        "endpoints": [
            {"addresses": ["127.0.0.9"], "conditions": {"ready": false}},
            {"addresses": ["127.0.0.1"], "conditions": {"ready": true}},
        ],
    });
    // Validation lets nobody point at this machine, so it is put where it would be stored.
    let key = "/registry/endpointslices/default/s";
    let put = WriteRequest::put(key, slice.to_string(), Expected::Absent);
    api.store.write(put).await.unwrap();
    try_it("a").await.ok();
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
