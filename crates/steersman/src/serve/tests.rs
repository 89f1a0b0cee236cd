use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;

const ANYWHERE: &str = "127.0.0.1:0";

/// Answers with the length of the body, or panics.
fn measure() -> Handler {
    handler(|request| async move {
        assert_ne!(request.uri().path(), "/panic");
        text(StatusCode::OK, request.body().len().to_string())
    })
}

/// A server at work, its address, and what stops it.
async fn start(configure: impl FnOnce(Server) -> Server) -> (SocketAddr, CancellationToken) {
    let server = configure(Server::bind(ANYWHERE.parse().unwrap()).await.unwrap());
    let address = server.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(server.run(measure(), stop.clone()));
    (address, stop)
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    body: &[u8],
) -> (StatusCode, Bytes) {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(path).header("host", "localhost");
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let response: Response<Incoming> = sender.send_request(request).await.unwrap();
    let status = response.status();
    (status, response.into_body().collect().await.unwrap().to_bytes())
}

/// Shakes hands as a client that trusts this authority alone.
async fn secure(
    address: SocketAddr,
    ca: &str,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    connector.connect(ServerName::try_from("localhost").unwrap(), stream).await
}

#[tokio::test]
async fn a_request_is_answered_and_a_panic_harms_nobody_else() {
    let (address, _stop) = start(|server| server).await;
    let connect = || TcpStream::connect(address);
    assert_eq!(ask(connect().await.unwrap(), "/", b"abc").await, (StatusCode::OK, "3".into()));
    let (status, _) = ask(connect().await.unwrap(), "/panic", b"").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(ask(connect().await.unwrap(), "/", b"ab").await, (StatusCode::OK, "2".into()));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let (address, _stop) = start(|server| server.body_max(10)).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (status, text) = ask(stream, "/", &[0; 11]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(text.starts_with(b"the request is larger than 10 bytes"));
}

#[tokio::test]
async fn a_stopped_server_lets_requests_end_and_takes_no_more() {
    let server = Server::bind(ANYWHERE.parse().unwrap()).await.unwrap();
    let address = server.local_addr().unwrap();
    let stop = CancellationToken::new();
    let entered = CancellationToken::new();
    let leave = CancellationToken::new();
    let gates = (entered.clone(), leave.clone());
    let slow = handler(move |_| {
        let (entered, leave) = gates.clone();
        async move {
            entered.cancel();
            leave.cancelled().await;
            text(StatusCode::OK, "done")
        }
    });
    let running = tokio::spawn(server.run(slow, stop.clone()));
    let asked = tokio::spawn(ask(TcpStream::connect(address).await.unwrap(), "/", b""));
    entered.cancelled().await;
    stop.cancel();
    tokio::task::yield_now().await;
    leave.cancel();
    assert_eq!(asked.await.unwrap(), (StatusCode::OK, "done".into()));
    running.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Time passes at once where nothing happens.
#[tokio::test(start_paused = true)]
async fn who_asks_nothing_is_not_kept() {
    let (address, _stop) = start(|server| server).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(silent.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    let mut hesitant = TcpStream::connect(address).await.unwrap();
    hesitant.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    assert_eq!(hesitant.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}

/// Without a socket, so that time passes only when everybody waits.
#[tokio::test(start_paused = true)]
async fn who_waits_for_an_answer_or_asks_seldom_is_kept() {
    let slow = handler(|_| async {
        tokio::time::sleep(10 * IDLE).await;
        text(StatusCode::OK, "done")
    });
    let site = Site { handler: slow, acceptor: None, body_max: BODY_MAX };
    let (client, server) = tokio::io::duplex(4096);
    tokio::spawn(site.serve(server, CancellationToken::new()));
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(client));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    for _ in 0..2 {
        let request = Request::get("/").header("host", "localhost");
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let response: Response<Incoming> = sender.send_request(request).await.unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
        tokio::time::sleep(Duration::from_secs(90)).await;
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_old_ones_stay() {
    let folder = std::env::temp_dir().join(format!("steersman-serve-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let certificate = folder.join("tls.crt");
    let key = folder.join("tls.key");
    let first = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let second = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(&certificate, first.cert.pem()).unwrap();
    std::fs::write(&key, first.signing_key.serialize_pem()).unwrap();
    let certificates = Certificates::from_files(&certificate, &key).unwrap();
    let (address, _stop) = start(|server| server.tls(certificates.clone())).await;
    let mut old = secure(address, &first.cert.pem()).await.unwrap();

    std::fs::write(&certificate, second.cert.pem()).unwrap();
    assert!(certificates.reload().is_err(), "the key is still the old one");
    assert!(secure(address, &first.cert.pem()).await.is_ok());
    std::fs::write(&key, second.signing_key.serialize_pem()).unwrap();
    assert!(certificates.reload().unwrap());
    assert!(!certificates.reload().unwrap());
    assert!(secure(address, &first.cert.pem()).await.is_err());
    let new = secure(address, &second.cert.pem()).await.unwrap();
    assert_eq!(ask(new, "/", b"a").await, (StatusCode::OK, "1".into()));

    old.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    old.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_certificate_made_for_development_is_trusted_through_its_authority() {
    let made = Certificates::self_signed(["localhost"]).unwrap();
    let (address, _stop) = start(|server| server.tls(made.certificates)).await;
    let stream = secure(address, &made.ca).await.unwrap();
    assert_eq!(ask(stream, "/", b"").await, (StatusCode::OK, "0".into()));
}

#[test]
fn files_that_are_no_certificate_are_named() {
    let missing = Certificates::from_files("/nonexistent/tls.crt", "/nonexistent/tls.key");
    assert_eq!(missing.unwrap_err().to_string(), "cannot read /nonexistent/tls.crt");
    let garbage = Certificates::from_pem("x", "y").unwrap_err();
    assert_eq!(garbage.to_string(), "the key is not in PEM format");
}
