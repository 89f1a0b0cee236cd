//! The server over TLS, in real time.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Shop, VALIDATE, review, shop};
use crate::webhook::{SharedCa, WebhookServer};

/// A connection of a client that trusts this authority alone.
async fn connect(address: SocketAddr, ca: &str) -> std::io::Result<SendRequest<Full<Bytes>>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, TcpStream::connect(address).await?).await?;
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Ok(sender)
}

/// Whether a shop of this owner may be created.
async fn allowed(sender: &mut SendRequest<Full<Bytes>>, owner: &str) -> bool {
    let review = review("CREATE", &shop(json!({"owner": owner})), &Value::Null).to_string();
    let request = Request::post(VALIDATE)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(review)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    review["response"]["allowed"].as_bool().unwrap()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Writes a new certificate and its key, and gives the certificate.
fn renew(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_ending_connections() {
    let folder = std::env::temp_dir().join(format!("steersman-webhooks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let first = renew(&folder);
    let server =
        WebhookServer::builder("shop").cert_dir(&folder).validates::<Shop>().build().unwrap();
    let started = server.started();
    let stop = CancellationToken::new();
    let (listener, address) = listen().await;
    assert!(!started());
    let running = tokio::spawn(server.run_on(listener, stop.clone()));
    let mut old = connect(address, &first).await.unwrap();
    assert!(started());
    assert!(allowed(&mut old, "ann").await);

    let second = renew(&folder);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await; // until it looks at the files again
    tokio::time::resume();
    let mut new = connect(address, &second).await.unwrap();
    assert!(connect(address, &first).await.is_err());
    assert!(allowed(&mut new, "ann").await);
    assert!(!allowed(&mut old, "").await);

    stop.cancel();
    running.await.unwrap().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_self_signed_server_is_trusted_through_its_authority() {
    let server = WebhookServer::builder("shop").self_signed(["localhost"]).validates::<Shop>();
    let server = server.build().unwrap();
    let ca = server.ca().unwrap().to_owned();
    let stop = CancellationToken::new();
    let (listener, address) = listen().await;
    let running = tokio::spawn(server.run_on(listener, stop.clone()));
    let mut connection = connect(address, &ca).await.unwrap();
    assert!(allowed(&mut connection, "ann").await);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shared_authority_needs_a_client() {
    let server = WebhookServer::builder("shop").shared_ca(SharedCa::for_hosts(["localhost"]));
    let error = server.in_process().build().unwrap().run(CancellationToken::new()).await;
    assert!(error.unwrap_err().to_string().contains("Manager::webhooks"));
}

#[tokio::test]
async fn a_server_without_its_certificate_says_so() {
    let server = WebhookServer::builder("shop").cert_dir("/nonexistent").port(0).build().unwrap();
    let error = server.run(CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent/tls.crt"), "{error}");
}

#[tokio::test]
async fn a_server_in_process_listens_nowhere_and_ends_when_told() {
    let server =
        WebhookServer::builder("shop").in_process().cert_dir("/nonexistent").build().unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    server.run(stop).await.unwrap();
}
