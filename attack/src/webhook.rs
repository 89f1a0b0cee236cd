//! A webhook as an attacker would run one: over HTTPS, with a certificate that its `caBundle`
//! vouches for, and an answer of any kind.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::caller::Body;
use crate::field::HOSTILE;

/// What a webhook makes of a review.
type Answer = Arc<dyn Fn(Value) -> BoxFuture<'static, Body> + Send + Sync>;

/// A webhook that serves until the process ends.
pub(crate) struct Webhook {
    url: String,
    authority: String,
}

impl Webhook {
    /// Serves a webhook on a free port.
    pub(crate) async fn serve(
        answer: impl Fn(Value) -> BoxFuture<'static, Body> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]);
        let made = made.map_err(|error| error.to_string())?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
        let tls = builder.with_no_client_auth();
        let tls = tls.with_single_cert(vec![made.cert.der().clone()], key);
        let acceptor = TlsAcceptor::from(Arc::new(tls.map_err(|error| error.to_string())?));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let answer: Answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| respond(Arc::clone(&answer), request));
                    let serving = http1::Builder::new();
                    let _ = serving.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let url = format!("https://{address}/");
        Ok(Self { url, authority: STANDARD.encode(made.cert.pem()) })
    }

    /// How a configuration names it.
    pub(crate) fn client_config(&self) -> Value {
        json!({"url": self.url, "caBundle": self.authority})
    }
}

async fn respond(
    answer: Answer,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review = serde_json::from_slice(&body).unwrap_or_default();
    let response = Response::new(answer(review).await);
    let (mut parts, body) = response.into_parts();
    parts.headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    Ok(Response::from_parts(parts, body))
}

/// An answer that allows, with changes to the object.
pub(crate) fn allowed(review: &Value, changes: &Value) -> Body {
    let patch = STANDARD.encode(changes.to_string());
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": review["request"]["uid"], "allowed": true,
            "patchType": "JSONPatch", "patch": patch,
        },
    });
    Full::new(Bytes::from(answer.to_string())).boxed_unsync()
}

/// Where configurations of mutating webhooks are written.
pub(crate) const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A configuration that asks webhooks about the ConfigMaps of the hostile namespace.
pub(crate) fn configuration(webhooks: &[(&str, Value)]) -> Value {
    let webhooks: Vec<Value> = webhooks
        .iter()
        .map(|(name, client)| {
            json!({
                "name": format!("{name}.hostile.test"), "clientConfig": client,
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Ignore", "timeoutSeconds": 5,
                "reinvocationPolicy": "IfNeeded",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": HOSTILE}},
                "rules": [{
                    "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }],
            })
        })
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hostile"}, "webhooks": webhooks,
    })
}
