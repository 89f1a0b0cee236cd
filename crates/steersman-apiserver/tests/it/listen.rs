//! The same API over HTTPS: certificates, tokens, both versions of HTTP, and a clean end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use steersman_apiserver::listen;
use steersman_apiserver::pki::{Certified, Pki};
use steersman_apiserver::user::User;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::api::Api;

/// A server behind HTTPS.
pub(crate) struct Secure {
    pub(crate) api: Api,
    pub(crate) pki: Pki,
    port: u16,
    pub(crate) shutdown: CancellationToken,
    pub(crate) server: tokio::task::JoinHandle<()>,
}

pub(crate) async fn start() -> Secure {
    start_with(Duration::from_secs(1).into()).await
}

pub(crate) async fn start_with(options: listen::Options) -> Secure {
    let api = Api::start().await;
    let pki = Pki::new(&["api.example.com".to_owned()]).unwrap();
    api.server.tokens().insert(&pki.token, User::known("token-user", &["system:masters"]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let shutdown = CancellationToken::new();
    let serving = listen::serve(
        api.server.clone(),
        listener,
        pki.server_tls().unwrap(),
        shutdown.clone(),
        options,
    );
    let server = tokio::spawn(serving);
    Secure { api, pki, port, shutdown, server }
}

impl Secure {
    pub(crate) async fn connect(
        &self,
        identity: Option<&Certified>,
        alpn: &str,
    ) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pki.ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certificate =
                    CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    pub(crate) async fn ask(
        &self,
        identity: Option<&Certified>,
        request: Request<Full<Bytes>>,
    ) -> (u16, Value) {
        let stream = self.connect(identity, "http/1.1").await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// A connection that speaks HTTP/2.
    pub(crate) async fn http2<B>(&self, identity: Option<&Certified>) -> http2::SendRequest<B>
    where
        B: http_body::Body<Data = Bytes, Error: Into<tower::BoxError>> + Send + Unpin + 'static,
    {
        let stream = self.connect(identity, "h2").await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Gets something as the admin, over HTTP/2.
    async fn ask_http2(&self, path: &str) -> u16 {
        let mut sender = self.http2(Some(&self.pki.admin)).await;
        let request = Request::builder().uri(format!("https://localhost{path}"));
        let request = request.body(Full::<Bytes>::default()).unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    }
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::builder().uri(path).header(header::HOST, "localhost").body(Full::default()).unwrap()
}

fn whoami() -> Request<Full<Bytes>> {
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    request.header(header::HOST, "localhost").body(Full::new("{}".into())).unwrap()
}

#[tokio::test]
async fn a_client_certificate_says_who_asks() {
    let server = start().await;
    let (code, review) = server.ask(Some(&server.pki.admin), whoami()).await;
    assert_eq!(code, 201);
    assert_eq!(review["status"]["userInfo"]["username"], "kubernetes-admin");
    let jane = server.pki.client("jane", &["dev"]).unwrap();
    let (_, review) = server.ask(Some(&jane), whoami()).await;
    assert_eq!(review["status"]["userInfo"]["groups"][0], "dev", "{review}");
}

#[tokio::test]
async fn a_token_says_who_asks_and_nobody_sees_only_health() {
    let server = start().await;
    let mut request = whoami();
    let bearer = format!("Bearer {}", server.pki.token);
    request.headers_mut().insert(header::AUTHORIZATION, bearer.parse().unwrap());
    let (_, review) = server.ask(None, request).await;
    assert_eq!(review["status"]["userInfo"]["username"], "token-user");

    let mut request = get("/version");
    request.headers_mut().insert(header::AUTHORIZATION, "Bearer wrong".parse().unwrap());
    assert_eq!(server.ask(None, request).await.0, 401);
    let (code, status) = server.ask(None, get("/api/v1/namespaces")).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in \
         API group \"\" at the cluster scope"
    );
    assert_eq!(server.ask(None, get("/readyz")).await.0, 200);
}

#[tokio::test]
async fn both_versions_of_http_are_spoken() {
    let server = start().await;
    assert_eq!(server.ask_http2("/api/v1/namespaces/default").await, 200);
    assert_eq!(server.ask(Some(&server.pki.admin), get("/api/v1/namespaces/default")).await.0, 200);
}

#[tokio::test]
async fn an_answer_to_a_head_tells_how_long_it_is_and_has_no_body() {
    let server = start().await;
    for path in ["/livez/ping", "/version", "/api/v1/namespaces/default", "/apis/nope"] {
        let mut sender = server.http2(Some(&server.pki.admin)).await;
        let request = |method: Method| {
            let request = Request::builder().uri(format!("https://localhost{path}"));
            request.method(method).body(Full::<Bytes>::default()).unwrap()
        };
        let response = sender.send_request(request(Method::HEAD)).await.unwrap();
        let length = response.headers()[header::CONTENT_LENGTH].clone();
        assert_ne!(length, "0", "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.is_empty(), "{path}: {body:?}");
    }
}

#[tokio::test]
async fn a_long_selector_is_taken_in_both_versions_of_http() {
    let server = start().await;
    let values = (0..5000).map(|n| format!("v{n:06}")).collect::<Vec<_>>().join(",");
    let path = format!("/api/v1/configmaps?labelSelector=a%20in%20({values})");
    assert_eq!(server.ask_http2(&path).await, 200);
    assert_eq!(server.ask(Some(&server.pki.admin), get(&path)).await.0, 200);
}

#[tokio::test]
async fn a_shutdown_ends_watches_and_is_done_before_the_deadline() {
    let server = start().await;
    let stream = server.connect(Some(&server.pki.admin), "http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(get("/api/v1/configmaps?watch=1")).await.unwrap();
    server.shutdown.cancel();
    response.into_body().collect().await.expect("the watch ends, it does not break");
    server.server.await.unwrap();
}

#[tokio::test]
async fn a_user_of_http_1_may_pause_between_requests() {
    let server = start().await;
    let stream = server.connect(Some(&server.pki.admin), "http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(get("/version")).await.unwrap();
    response.into_body().collect().await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(45)).await;
    tokio::time::resume();
    // Whoever would end the connection has had its turn when somebody else is answered.
    assert_eq!(server.ask(None, get("/livez")).await.0, 200);
    assert_eq!(sender.send_request(get("/version")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn http_1_has_as_many_fields_as_there_are_groups() {
    let server = start().await;
    let mut request = get("/api/v1/namespaces");
    request.headers_mut().insert("impersonate-user", "bob".parse().unwrap());
    for n in 0..500 {
        let group = format!("group-{n}").parse().unwrap();
        request.headers_mut().append("impersonate-group", group);
    }
    let (code, status) = server.ask(Some(&server.pki.admin), request).await;
    assert_eq!((code, &status["reason"]), (403, &"Forbidden".into()), "{status}");
}

/// A request of HTTP/2 for a path, in frames of the usual size: GET, https, and the path as it is.
fn frames_of_get(path: &str) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let mut block = vec![0x82, 0x87, 0x04, 0x7f];
    let mut left = path.len() - 127;
    while left >= 128 {
        block.push(u8::try_from(left % 128).unwrap() | 0x80);
        left /= 128;
    }
    block.push(u8::try_from(left).unwrap());
    block.extend_from_slice(path.as_bytes());
    let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frames.extend(frame(4, 0, 0, &[]));
    let pieces: Vec<&[u8]> = block.chunks(16_384).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let end_headers = if index + 1 == pieces.len() { 4 } else { 0 };
        let (kind, end_stream) = if index == 0 { (1, 1) } else { (9, 0) };
        frames.extend(frame(kind, end_headers | end_stream, 1, piece));
    }
    frames
}

#[tokio::test]
async fn a_path_too_long_for_http_2_is_answered_and_not_reset() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const HEADERS: u8 = 1;
    let server = start().await;
    for length in [65_535, 71_000] {
        let mut stream = server.connect(Some(&server.pki.admin), "h2").await;
        let path = format!("/{}", "a".repeat(length - 1));
        stream.write_all(&frames_of_get(&path)).await.unwrap();
        let mut head = [0; 9];
        loop {
            stream.read_exact(&mut head).await.unwrap();
            let size = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            stream.read_exact(&mut vec![0; size as usize]).await.unwrap();
            if head[8] == 1 {
                break;
            }
        }
        assert_eq!(head[3], HEADERS, "of {length} bytes");
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = start().await;
    for alpn in ["h2", "http/1.1"] {
        let mut stream = server.connect(Some(&server.pki.admin), alpn).await;
        // Once somebody is in, time can pass.
        assert_eq!(server.ask(None, get("/livez")).await.0, 200);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(61)).await;
        let mut rest = Vec::new();
        // A connection cut short is as closed as one that says goodbye.
        let end = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest);
        let _ = tokio::time::timeout(Duration::from_secs(3600), end).await.expect(alpn);
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_broken_connection_hurts_nobody_else() {
    let server = start().await;
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"this is not tls").await.unwrap();
    drop(stream);
    assert_eq!(server.ask(None, get("/livez")).await.0, 200);
}

#[tokio::test]
async fn the_kubeconfig_names_the_server_and_the_administrator() {
    let server = start().await;
    let url = format!("https://127.0.0.1:{}", server.port);
    let text = server.pki.kubeconfig(&url);
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], url.as_str());
    assert_eq!(config["users"][0]["name"], "kubernetes-admin");
    assert_eq!(config["current-context"], "steersman");
}

/// A watch over WebSocket, as a client in Java begins it; the token is among the protocols.
fn watch_of_messages(path: &str, token: &str) -> Request<Full<Bytes>> {
    use base64::Engine;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token);
    let request = Request::get(path)
        .header(header::HOST, "localhost")
        .header(header::ORIGIN, "https://localhost")
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::SEC_WEBSOCKET_PROTOCOL, "events")
        .header(
            header::SEC_WEBSOCKET_PROTOCOL,
            format!("base64url.bearer.authorization.k8s.io.{token}"),
        );
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_watch_over_web_socket_has_a_message_for_each_event() {
    use tokio::io::AsyncReadExt;
    let server = start().await;
    let stream = server.connect(None, "http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let path = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name=default";
    let request = watch_of_messages(path, &server.pki.token);
    let mut response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(response.headers()["sec-websocket-protocol"], "events");
    let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..2], [0x81, 126], "a message of text");
    let mut event = vec![0; u16::from_be_bytes([head[2], head[3]]).into()];
    stream.read_exact(&mut event).await.unwrap();
    let event: Value = serde_json::from_slice(&event).unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&"ADDED".into(), &"Namespace".into()));
    server.shutdown.cancel();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, [0x88, 2, 0x03, 0xe8], "nothing follows");
}

#[tokio::test]
async fn what_is_no_watch_is_answered_as_ever_over_web_socket() {
    let server = start().await;
    let asked = |path, token: &str| server.ask(None, watch_of_messages(path, token));
    assert_eq!(asked("/api/v1/namespaces/default", &server.pki.token).await.0, 200);
    assert_eq!(asked("/api/v1/namespaces?watch=true", "wrong").await.0, 401);
    let path = "/api/v1/namespaces?watch=true&fieldSelector=no.such=field";
    assert_eq!(asked(path, &server.pki.token).await.0, 400);
}
