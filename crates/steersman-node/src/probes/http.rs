//! Whether a GET is answered, with a status from 200 to 399 if a probe asks.
//!
//! Certificates are not looked at. Redirects are followed as long as they stay on the same host.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, LOCATION, USER_AGENT as AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, InvalidMessage, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time;
use tokio_rustls::TlsConnector;

use super::Answer;
use super::target::target;
use super::tcp::{dial, joined};

/// How a kubelet calls itself to those it probes.
pub(super) const USER_AGENT: &str = "kube-probe/1.36";

/// What is said of a server that does not speak TLS.
const PLAIN: &str = "http: server gave HTTP response to HTTPS client";

/// How much of a body is read.
const BODY_MAX: usize = 10 << 10;

/// How many requests are made at most.
const REDIRECTS_MAX: usize = 10;

pub(super) async fn get(
    action: &HTTPGetAction,
    port: u16,
    pod_ip: &str,
    timeout: Duration,
) -> Answer {
    let host = action.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(pod_ip);
    let url = url(action, host, port);
    match time::timeout(timeout, fetched(action, &url)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => Answer::Failure(format!("Get {url:?}: {why}")),
        Err(_) => Answer::Failure(format!(
            "Get {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )),
    }
}

fn url(action: &HTTPGetAction, host: &str, port: u16) -> String {
    let scheme = action.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let target = target(action.path.as_deref().unwrap_or_default());
    format!("{scheme}://{}{target}", joined(host, port))
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// It was answered.
    Answered,
    /// The same, but only without TLS.
    Plainly,
}

/// Calls whoever a hook names. Whatever the answer is, it was called; one who does not speak TLS although
/// it should is called without.
pub(crate) async fn call(
    action: &HTTPGetAction,
    port: u16,
    pod_ip: &str,
    agent: &'static str,
) -> Result<Called, String> {
    let host = action.host.as_deref().filter(|host| !host.is_empty()).unwrap_or(pod_ip);
    let url = url(action, host, port);
    let mut headers = headers(action, agent)?;
    let Err(why) = answered(&url, headers.clone()).await else { return Ok(Called::Answered) };
    if let Some(rest) = url.strip_prefix("https://").filter(|_| why == PLAIN) {
        headers.remove(AUTHORIZATION);
        if answered(&format!("http://{rest}"), headers).await.is_ok() {
            return Ok(Called::Plainly);
        }
    }
    Err(format!("Get {url:?}: {why}"))
}

/// What came in the end, or what went wrong on the way.
async fn fetched(action: &HTTPGetAction, url: &str) -> Result<Answer, String> {
    let response = answered(url, headers(action, USER_AGENT)?).await?;
    Ok(judged(response.status(), body(response).await))
}

/// The answer, after redirects.
async fn answered(url: &str, mut headers: HeaderMap) -> Result<Response<Incoming>, String> {
    let first: Uri = url.parse().map_err(|error| format!("{error}"))?;
    let mut uri = first.clone();
    for made in 1.. {
        let response = sent(&uri, &headers).await?;
        let status = response.status();
        if !redirects(status) {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location
            .filter(|location| !location.is_empty())
            .ok_or_else(|| format!("{} response missing Location header", status.as_u16()))?
            .to_owned();
        let next = followed(&uri, &location)
            .ok_or_else(|| format!("failed to parse Location header {location:?}"))?;
        if next.host() != first.host() {
            return Ok(response);
        }
        if made >= REDIRECTS_MAX {
            return Err("stopped after 10 redirects".to_owned());
        }
        // Another name for the host counts as long as nobody names the host anew.
        if location.contains("//") {
            headers.remove(HOST);
        }
        uri = next;
    }
    Err("stopped after 10 redirects".to_owned())
}

fn redirects(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn judged(status: StatusCode, body: Result<String, String>) -> Answer {
    match (body, status.as_u16()) {
        (Err(why), _) => Answer::Broken(why),
        (Ok(_), 200..=299) => Answer::Success,
        (Ok(body), 300..=399) => {
            Answer::Warning(format!("Probe terminated redirects, Response body: {body}"))
        }
        // The body is not told: it may be meant for nobody else.
        (Ok(_), code) => Answer::Failure(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// What is sent along: what the Pod says, and what it does not forbid.
fn headers(action: &HTTPGetAction, agent: &'static str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for header in action.http_headers.iter().flatten() {
        let name: HeaderName = header
            .name
            .parse()
            .map_err(|_| format!("net/http: invalid header field name {:?}", header.name))?;
        let value: HeaderValue = header
            .value
            .parse()
            .map_err(|_| format!("net/http: invalid header field value for {:?}", header.name))?;
        headers.append(name, value);
    }
    if headers.get(HOST).is_some_and(HeaderValue::is_empty) {
        headers.remove(HOST);
    }
    if !headers.contains_key(AGENT) {
        headers.insert(AGENT, HeaderValue::from_static(agent));
    }
    match headers.get(ACCEPT) {
        None => drop(headers.insert(ACCEPT, HeaderValue::from_static("*/*"))),
        Some(value) if value.is_empty() => drop(headers.remove(ACCEPT)),
        Some(_) => {}
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(headers)
}

async fn sent(uri: &Uri, headers: &HeaderMap) -> Result<Response<Incoming>, String> {
    let secure = uri.scheme() == Some(&Scheme::HTTPS);
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = dial(host, port).await?;
    if !secure {
        return exchanged(stream, uri, headers).await;
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|error| error.to_string())?;
    let stream = tls().connect(name, stream).await.map_err(|error| untold(&error))?;
    exchanged(stream, uri, headers).await
}

/// Why there was no TLS.
fn untold(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => PLAIN.to_owned(),
        _ => error.to_string(),
    }
}

async fn exchanged(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response<Incoming>, String> {
    let told = |error: hyper::Error| {
        if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // Ends with the connection, when the answer has been read or is not wanted any more.
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|error| format!("{error}"))?;
    *request.headers_mut() = headers.clone();
    if !headers.contains_key(HOST) {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let host = authority.parse().map_err(|error| format!("{error}"))?;
        request.headers_mut().insert(HOST, host);
    }
    sender.send_request(request).await.map_err(told)
}

/// The beginning of a body.
async fn body(response: Response<Incoming>) -> Result<String, String> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() >= BODY_MAX {
            bytes.truncate(BODY_MAX);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where a redirect leads.
fn followed(from: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let absolute = location.starts_with("http://") || location.starts_with("https://");
    let target = if absolute {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    target.parse().ok()
}

fn tls() -> TlsConnector {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Unverified { provider: Arc::clone(&provider) });
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has suites for the default versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Believes every certificate: a probe asks whether somebody answers, not who.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
