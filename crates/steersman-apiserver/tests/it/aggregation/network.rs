//! Servers behind this one over the network.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use steersman_apiserver::authentication::FrontProxy;
use steersman_apiserver::listen;
use steersman_apiserver::pki::Pki;
use steersman_store::memory::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{API_SERVICES, TIDES, available, tide, tide_definition, tides};
use crate::api::{Api, names};
use crate::listen::{Secure, start};

/// A server that listens knows its clients, and tells those behind it how to know it.
async fn front() -> Secure {
    let front = start().await;
    let keeping = front.api.server.clone();
    tokio::spawn(async move { keeping.run_bootstrap().await });
    front
}

/// What the server in front says of itself.
async fn told(front: &Api) -> Value {
    let path = "/api/v1/namespaces/kube-system/configmaps?watch=true\
                &fieldSelector=metadata.name=extension-apiserver-authentication";
    let mut events = front.watch(path).await;
    events.next().await.unwrap()["object"].clone()
}

/// Leads to a port of this machine; the service has a name for it.
async fn lead_to(front: &Api, port: u16, trust: &Value) {
    front.post("/api/v1/namespaces", &json!({"metadata": {"name": "shore"}})).await.ok();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "tides"},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
    });
    front.post("/api/v1/namespaces/shore/services", &service).await.ok();
    let mut api_service = tides();
    let spec = api_service["spec"].as_object_mut().unwrap();
    spec.remove("insecureSkipTLSVerify");
    spec.extend(trust.as_object().unwrap().clone());
    spec["service"]["port"] = port.into();
    front.post(API_SERVICES, &api_service).await.ok();
}

struct Behind {
    api: Api,
    pki: Pki,
    port: u16,
    shutdown: CancellationToken,
}

/// A server that has tides, and believes the one in front.
async fn behind(front: &Api) -> Behind {
    let proxy = FrontProxy::from_config_map(&told(front).await).unwrap();
    let store = Arc::new(MemoryStore::new());
    let api = Api::with(store, |config| config.authentication.front_proxy = Some(proxy)).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    api.post(definitions, &tide_definition()).await.ok();
    let pki = Pki::new(&["tides.shore.svc".to_owned()]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let shutdown = CancellationToken::new();
    let (server, tls) = (api.server.clone(), pki.server_tls().unwrap());
    tokio::spawn(listen::serve(server, listener, tls, shutdown.clone(), Duration::from_secs(1)));
    Behind { api, pki, port, shutdown }
}

#[tokio::test]
async fn a_server_of_the_network_believes_the_certificate_of_the_one_in_front() {
    let front = front().await;
    let behind = behind(&front.api).await;
    let bundle = STANDARD.encode(&behind.pki.ca);
    lead_to(&front.api, behind.port, &json!({"caBundle": bundle})).await;
    available(&front.api, "v1.sea.test", "Passed").await;
    front.api.post(TIDES, &tide("low", 1)).await.ok();
    assert_eq!(names(&behind.api.get(TIDES).await.ok()), ["low"]);
    // Many requests use few connections, and a watch goes on beside them.
    let mut events = front.api.watch(&format!("{TIDES}?watch=true")).await;
    assert_eq!(events.brief().await.1, "low");
    for height in 0..20 {
        let spec = json!({"spec": {"height": height + 2}});
        front.api.merge(&format!("{TIDES}/low"), &spec).await.ok();
        assert_eq!(events.brief().await.0, "MODIFIED");
    }
    // Whoever is nobody there is told so by the other server, in its words.
    let jane = front.api.acting_as("jane", &["system:masters"]);
    jane.get(TIDES).await.ok();
}

#[tokio::test]
async fn who_is_not_vouched_for_is_not_available() {
    let front = front().await;
    let behind = behind(&front.api).await;
    let other = Pki::new(&[]).unwrap();
    lead_to(&front.api, behind.port, &json!({"caBundle": STANDARD.encode(&other.ca)})).await;
    let told = available(&front.api, "v1.sea.test", "FailedDiscoveryCheck").await;
    let url = format!("https://127.0.0.1:{}/apis/sea.test/v1", behind.port);
    assert_eq!(
        told["message"],
        format!(
            "failing or missing response from {url}: Get {url:?}: tls: failed to verify \
             certificate: x509: certificate signed by unknown authority"
        )
    );
    let skip = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    front.api.merge(&format!("{API_SERVICES}/v1.sea.test"), &skip).await.ok();
    available(&front.api, "v1.sea.test", "Passed").await;
}

#[tokio::test]
async fn a_server_that_stops_listening_is_noticed_at_the_next_request() {
    let front = front().await;
    let behind = behind(&front.api).await;
    lead_to(&front.api, behind.port, &json!({"insecureSkipTLSVerify": true})).await;
    available(&front.api, "v1.sea.test", "Passed").await;
    front.api.get(TIDES).await.ok();
    behind.shutdown.cancel();
    while front.api.get(TIDES).await.code != 503 {}
    let told = available(&front.api, "v1.sea.test", "FailedDiscoveryCheck").await;
    let refused = format!("dial tcp 127.0.0.1:{}: connect: connection refused", behind.port);
    assert!(told["message"].as_str().unwrap().ends_with(&refused), "{told}");
}

/// TLS with a certificate that nobody vouches for.
fn certified() -> rustls::ServerConfig {
    let own = rcgen::generate_simple_self_signed(vec!["tides.shore.svc".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap()
}

/// Answers discovery, says by which name it was asked, and speaks another protocol with whoever wants:
/// it gives back what it gets.
async fn echo(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if !request.headers().contains_key(header::UPGRADE) {
        let mut response = Response::new(Full::from("{}"));
        let name = request.headers().get("audit-id").cloned();
        name.map(|name| response.headers_mut().insert("asked-by", name));
        return Ok(response);
    }
    let user = request.headers()["x-remote-user"].to_str().unwrap().to_owned();
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
        let mut stream = TokioIo::new(upgraded);
        stream.write_all(user.as_bytes()).await.unwrap();
        let mut word = [0; 5];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&word).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "echo");
    Ok(response.body(Full::default()).unwrap())
}

/// Has a server of this machine behind the one in front.
async fn lead_to_echo(front: &Secure) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(certified()));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let http = hyper::server::conn::http1::Builder::new();
                let serving = http.serve_connection(TokioIo::new(stream), service_fn(echo));
                let _ = serving.with_upgrades().await;
            });
        }
    });
    lead_to(&front.api, port, &json!({"insecureSkipTLSVerify": true})).await;
    available(&front.api, "v1.sea.test", "Passed").await;
}

#[tokio::test]
async fn both_servers_call_a_request_by_one_name() {
    let front = front().await;
    lead_to_echo(&front).await;
    let stream = front.connect(Some(&front.pki.admin), "http/1.1").await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/apis/sea.test/v1/any").header(header::HOST, "localhost");
    let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await;
    let response = response.unwrap();
    let name = &response.headers()["audit-id"];
    assert_eq!(&response.headers()["asked-by"], name);
}

#[tokio::test]
async fn a_connection_that_speaks_another_protocol_is_passed_on() {
    let front = front().await;
    lead_to_echo(&front).await;
    let stream = front.connect(Some(&front.pki.admin), "http/1.1").await;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::get("/apis/sea.test/v1/speak")
        .header(header::HOST, "localhost")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "echo");
    let mut response =
        sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let upgraded = hyper::upgrade::on(&mut response).await.unwrap();
    let mut stream = TokioIo::new(upgraded);
    stream.write_all(b"waves").await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "kubernetes-adminwaves");
    let _ = response.into_body().collect().await;
}

#[tokio::test]
async fn servers_behind_are_told_how_to_know_the_one_in_front() {
    let front = front().await;
    let map = told(&front.api).await;
    let data = &map["data"];
    assert_eq!(data["requestheader-allowed-names"], r#"["front-proxy-client"]"#);
    assert_eq!(data["requestheader-username-headers"], r#"["X-Remote-User"]"#);
    assert_eq!(data["requestheader-group-headers"], r#"["X-Remote-Group"]"#);
    assert_eq!(data["requestheader-uid-headers"], r#"["X-Remote-Uid"]"#);
    assert_eq!(data["requestheader-extra-headers-prefix"], r#"["X-Remote-Extra-"]"#);
    assert_ne!(data["requestheader-client-ca-file"], data["client-ca-file"]);
}
