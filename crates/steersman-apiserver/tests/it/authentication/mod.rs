//! Who is let in over HTTPS, as whom, and who is not: every way to be known, and the ways to cheat.

mod audited;
mod bootstrap;
mod certificates;
mod deadlines;
mod forged;
mod issuer;
mod issuers;
mod jwt;
mod proxies;
mod revoked;
mod secrets;
mod token_file;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Builder;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use steersman_apiserver::identity::Identity;
use steersman_apiserver::pki::{Certified, Pki};
use steersman_apiserver::{ApiServer, Authentication, Config, listen};
use steersman_store::Store;
use steersman_store::memory::MemoryStore;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::Api;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// What anybody may see who shows nothing wrong.
const PUBLIC: &str = "/version";

/// A server behind HTTPS whose time the test sets.
struct Server {
    api: Api,
    identity: Identity,
    pki: Pki,
    port: u16,
    seconds: Arc<AtomicI64>,
    _stop: DropGuard,
}

/// Who a request says it comes from.
#[derive(Clone, Copy, Default)]
struct Caller<'a> {
    certificate: Option<&'a Certified>,
    headers: &'a [(&'a str, &'a str)],
}

impl Server {
    async fn start() -> Self {
        Self::with(Authentication::default()).await
    }

    async fn with(authentication: Authentication) -> Self {
        Self::over(Arc::new(MemoryStore::new()), None, authentication).await
    }

    /// One whose clients another identity vouches for than that of its store.
    async fn of(identity: Identity, authentication: Authentication) -> Self {
        Self::over(Arc::new(MemoryStore::new()), Some(identity), authentication).await
    }

    async fn over(
        store: Arc<dyn Store>,
        identity: Option<Identity>,
        authentication: Authentication,
    ) -> Self {
        let start: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let seconds = Arc::new(AtomicI64::new(start.as_second()));
        let now = Arc::clone(&seconds);
        let clock = Arc::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap());
        let config = Config { authentication, ..Config::new(Arc::clone(&store), clock) };
        let server = ApiServer::start(config).await.unwrap();
        let identity = match identity {
            Some(identity) => identity,
            None => Identity::of(&*store).await.unwrap(),
        };
        let pki = Pki::of(&identity, &[]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shutdown = CancellationToken::new();
        let tls = pki.server_tls().unwrap();
        let end = shutdown.clone();
        tokio::spawn(listen::serve(server.clone(), listener, tls, end, Duration::from_secs(1)));
        let api = Api { server, store };
        Self { api, identity, pki, port, seconds, _stop: shutdown.drop_guard() }
    }

    fn now(&self) -> i64 {
        self.seconds.load(Ordering::Relaxed)
    }

    fn seconds_pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    async fn connect(&self, certificate: Option<&Certified>) -> http1::SendRequest<Full<Bytes>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pki.ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = CertificateDer::pem_slice_iter(own.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain.map(Result::unwrap).collect(), key).unwrap()
            }
        };
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn send(
        &self,
        caller: Caller<'_>,
        request: Request<Full<Bytes>>,
    ) -> (u16, HeaderMap, Value) {
        let mut connection = self.connect(caller.certificate).await;
        exchange(&mut connection, request).await
    }

    /// The code of an answer to a question that anybody may ask.
    async fn version(&self, caller: Caller<'_>) -> u16 {
        let request = caller.asks(Request::get(PUBLIC)).body(Full::default()).unwrap();
        self.send(caller, request).await.0
    }

    /// Who the server takes a caller for, or the code with which it refuses.
    async fn whoami(&self, caller: Caller<'_>) -> Result<Value, u16> {
        let request = caller.asks(Request::post(SELF)).body(Full::new("{}".into())).unwrap();
        let (code, _, answer) = self.send(caller, request).await;
        if code < 300 { Ok(answer["status"]["userInfo"].clone()) } else { Err(code) }
    }

    /// The same of one who bears a token.
    async fn bearer(&self, token: &str) -> Result<Value, u16> {
        let header = format!("Bearer {token}");
        self.whoami(Caller { headers: &[("authorization", &header)], ..Caller::default() }).await
    }

    /// That a token lets nobody in, not even to where nobody needs one, and why.
    async fn refused(&self, token: &str) -> String {
        let header = format!("Bearer {token}");
        let caller = Caller { headers: &[("authorization", &header)], ..Caller::default() };
        assert_eq!(self.version(caller).await, 401, "{token:.200}");
        let status = self.review(token, &[]).await;
        assert_eq!(status.get("authenticated"), None, "{status}");
        assert_eq!(status["user"], json!({}));
        status["error"].as_str().unwrap_or_default().to_owned()
    }

    async fn review(&self, token: &str, audiences: &[&str]) -> Value {
        let review = json!({"spec": {"token": token, "audiences": audiences}});
        self.api.post(REVIEWS, &review).await.ok()["status"].clone()
    }

    /// Creates something, as an administrator.
    async fn create(&self, path: &str, object: Value) -> Value {
        self.api.post(path, &object).await.ok()
    }

    /// Asks for a token of an account in the namespace `default`.
    async fn request_token(&self, account: &str, spec: Value) -> String {
        let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
        let answer = self.create(&path, json!({"spec": spec})).await;
        answer["status"]["token"].as_str().unwrap().to_owned()
    }
}

impl Caller<'_> {
    fn asks(self, request: Builder) -> Builder {
        let request = request.header(header::HOST, "localhost");
        let add = |request: Builder, (name, value): &(&str, &str)| request.header(*name, *value);
        self.headers.iter().fold(request, add)
    }
}

async fn exchange(
    connection: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> (u16, HeaderMap, Value) {
    let response = connection.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let answer = serde_json::from_slice(&bytes).unwrap_or_default();
    (parts.status.as_u16(), parts.headers, answer)
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const NODES: &str = "/api/v1/nodes";

#[tokio::test]
async fn who_shows_nothing_is_anonymous_and_other_schemes_show_nothing() {
    let server = Server::start().await;
    for (header, code) in [
        ("", 200),
        ("Basic YWRtaW46YWRtaW4=", 200),
        ("Negotiate abc", 200),
        ("Bearer", 200),
        ("Bearer ", 200),
        ("Bearer x", 401),
        ("bearer x", 401),
        ("Bearer x y", 401),
    ] {
        let caller = Caller { headers: &[("authorization", header)], ..Caller::default() };
        assert_eq!(server.version(caller).await, code, "{header:?}");
    }
}

#[tokio::test]
async fn a_space_too_many_is_told() {
    let server = Server::start().await;
    let caller = Caller { headers: &[("authorization", "Bearer  x")], ..Caller::default() };
    let request = caller.asks(Request::get(PUBLIC)).body(Full::default()).unwrap();
    let (code, headers, _) = server.send(caller, request).await;
    assert_eq!(code, 200);
    let expected = "299 - \"the provided Authorization header contains extra space before the \
                    bearer token, and is ignored\"";
    assert_eq!(headers[header::WARNING], expected);
}

#[tokio::test]
async fn anonymous_requests_can_be_kept_to_some_paths_or_out() {
    let configuration = |anonymous: &str| {
        let mut authentication = Authentication::default();
        let text = format!(
            "{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, \
             anonymous: {anonymous}}}"
        );
        authentication.configure(&text, std::path::Path::new("")).unwrap();
        authentication
    };
    let get =
        |path: &str| Caller::default().asks(Request::get(path)).body(Full::default()).unwrap();
    let some = Server::with(configuration("{enabled: true, conditions: [{path: /livez}]}")).await;
    for (path, code) in [("/livez", 200), ("/livez/ping", 401), ("/version", 401)] {
        assert_eq!(some.send(Caller::default(), get(path)).await.0, code, "{path}");
    }
    let none = Server::with(configuration("{enabled: false}")).await;
    let (code, _, status) = none.send(Caller::default(), get("/livez")).await;
    assert_eq!(
        (code, &status["message"], &status["reason"]),
        (401, &json!("Unauthorized"), &json!("Unauthorized"))
    );
    let admin = Caller { certificate: Some(&none.pki.admin), ..Caller::default() };
    assert_eq!(none.version(admin).await, 200);
}
