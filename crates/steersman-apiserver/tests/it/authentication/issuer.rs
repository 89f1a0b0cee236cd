//! A small issuer of tokens: a server that shows its keys over HTTPS.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use steersman_apiserver::Authentication;
use steersman_apiserver::pki::Pki;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::jwt::Key;

/// What an issuer shows, and how often it was asked for it.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) issuer: String,
    pub(super) keys_url: String,
    pub(super) keys: Vec<Value>,
    pub(super) down: bool,
    pub(super) discoveries: usize,
    pub(super) fetches: usize,
}

pub(super) struct Issuer {
    pub(super) url: String,
    pub(super) ca: String,
    pub(super) key: Key,
    pub(super) shown: Arc<Mutex<Shown>>,
}

impl Issuer {
    /// Begins to serve, with a key `k1`.
    pub(super) async fn start() -> Self {
        let pki = Pki::new(&[]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let key = Key::rsa();
        let shown = Arc::new(Mutex::new(Shown {
            issuer: url.clone(),
            keys_url: format!("{url}/keys?set=1"),
            keys: vec![key.jwk("k1")],
            ..Shown::default()
        }));
        let acceptor = TlsAcceptor::from(Arc::new(pki.server_config().unwrap()));
        tokio::spawn(serve(listener, acceptor, Arc::clone(&shown)));
        Self { url, ca: pki.ca, key, shown }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.shown.lock().unwrap());
    }

    /// How often the issuer was asked where its keys are, and for them.
    pub(super) fn asked(&self) -> (usize, usize) {
        let shown = self.shown.lock().unwrap();
        (shown.discoveries, shown.fetches)
    }

    /// How a server comes to trust this issuer; `more` is added to its `issuer`.
    pub(super) fn configuration(&self, more: &Value) -> Value {
        let mut issuer = json!({
            "url": self.url, "certificateAuthority": self.ca, "audiences": ["kube", "cli"],
            "audienceMatchPolicy": "MatchAny",
        });
        for (name, value) in more.as_object().unwrap() {
            issuer[name] = value.clone();
        }
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": issuer,
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"claim": "groups", "prefix": "oidc:"},
                    "uid": {"claim": "uid"},
                },
                "claimValidationRules": [{"claim": "hd", "requiredValue": "example.com"}],
            }],
        })
    }

    pub(super) fn authentication(&self, more: &Value) -> Authentication {
        let mut authentication = Authentication::default();
        let text = self.configuration(more).to_string();
        authentication.configure(&text, std::path::Path::new("")).unwrap();
        authentication
    }

    /// What a good token states at this moment.
    pub(super) fn claims(&self, now: i64) -> Value {
        json!({
            "iss": self.url, "aud": "kube", "sub": "jane", "groups": ["dev"], "uid": "u1",
            "hd": "example.com", "iat": now, "exp": now + 600, "jti": "t1",
        })
    }

    pub(super) fn token(&self, now: i64) -> String {
        self.token_stating(now, &json!({}))
    }

    /// A token that states this as well.
    pub(super) fn token_stating(&self, now: i64, more: &Value) -> String {
        let mut claims = self.claims(now);
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.token(&json!({"alg": "RS256", "kid": "k1"}), &claims)
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shown: Arc<Mutex<Shown>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(stream) = acceptor.accept(stream).await else { continue };
        let shown = Arc::clone(&shown);
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer(&mut shown.lock().unwrap(), request.uri().path());
            std::future::ready(Ok::<_, Infallible>(answer.map(Full::new)))
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// What is shown at a path.
pub(super) fn answer(shown: &mut Shown, path: &str) -> Response<Bytes> {
    let document = match path {
        "/.well-known/openid-configuration" | "/elsewhere" => {
            shown.discoveries += 1;
            json!({"issuer": shown.issuer, "jwks_uri": shown.keys_url})
        }
        "/keys" => {
            shown.fetches += 1;
            json!({"keys": shown.keys})
        }
        _ => Value::Null,
    };
    let response = Response::builder().header("content-type", "application/json");
    if shown.down || document.is_null() {
        let code = if shown.down { 503 } else { 404 };
        return response.status(code).body(Bytes::from_static(b"no")).unwrap();
    }
    response.body(Bytes::from(document.to_string())).unwrap()
}
