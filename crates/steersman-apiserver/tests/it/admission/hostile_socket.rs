//! Whoever answers behind a socket, and does not mean well.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use steersman_apiserver::pki::Pki;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::webhooks::{VALIDATING, configure, message, webhook_with};

/// What is written to whoever connects, after its request came.
type Script = Arc<dyn Fn(usize) -> Option<Vec<u8>> + Send + Sync>;

/// Answers each connection with the chunks of a script, and hangs up behind the last.
async fn scripted(pki: &Pki, script: Script) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(pki.server_config().unwrap()));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut asked = vec![0; 64 * 1024];
                let _ = stream.read(&mut asked).await;
                for chunk in (0..).map_while(|index| script(index)) {
                    if stream.write_all(&chunk).await.is_err() {
                        return;
                    }
                }
                if script(usize::MAX).is_some() {
                    std::future::pending::<()>().await;
                }
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

fn says(text: &'static str) -> Script {
    Arc::new(move |index| (index == 0).then(|| text.as_bytes().to_vec()))
}

// On the real clock, for the socket is real.
#[tokio::test]
async fn whatever_comes_from_a_socket_is_a_failure_to_ask_and_ends_in_time() {
    let pki = Pki::new(&[]).unwrap();
    let endless: Script = Arc::new(|index| match index {
        0 => Some(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n".to_vec()),
        _ => Some(vec![b'['; 256 * 1024]),
    });
    let headers: Script = Arc::new(|index| match index {
        0 => Some(b"HTTP/1.1 200 OK\r\n".to_vec()),
        _ => Some(format!("x-{index}: {}\r\n", "y".repeat(1000)).into_bytes()),
    });
    let silent: Script = Arc::new(|index| (index == usize::MAX).then(Vec::new));
    for (script, why) in [
        (says(""), "timeout=2s\": EOF"),
        (says("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), "timeout=2s\": unexpected EOF"),
        (says("SSH-2.0-OpenSSH\r\n"), ""),
        (
            says(
                "HTTP/1.1 302 Found\r\nlocation: https://localhost:1/\r\ncontent-length: 0\r\n\r\n",
            ),
            "the server responded with the status code 302",
        ),
        (
            says("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\u{1}{}\n"),
            "failed to call webhook: yaml: ",
        ),
        (endless, "length limit exceeded"),
        (headers, ""),
        (silent, "context deadline exceeded"),
    ] {
        let api = Api::start().await;
        let port = scripted(&pki, script).await;
        let config = json!({
            "url": format!("https://localhost:{port}/x"), "caBundle": STANDARD.encode(&pki.ca),
        });
        let hook = webhook_with("far", &json!({"clientConfig": config, "timeoutSeconds": 2}));
        configure(&api, VALIDATING, "a", &[hook]).await;
        let create = async || {
            let wanted = config_map("a", &json!({}));
            let create = api.post(CONFIG_MAPS, &wanted);
            tokio::time::timeout(Duration::from_secs(10), create).await.expect("it takes for ever")
        };
        for _ in 0..2 {
            let refused = create().await.refused(500);
            assert!(message(&refused).contains("failed calling webhook"), "{refused}");
            assert!(message(&refused).contains(why), "{why}: {refused}");
            assert!(message(&refused).len() < 4096, "{}", message(&refused).len());
        }
    }
}

/// Says something to whoever connects, without TLS, and hangs up.
async fn plain(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_of_as_go_tells_it() {
    let pki = Pki::new(&[]).unwrap();
    for (text, why) in [
        ("", "EOF"),
        ("SSH-2.0-OpenSSH\r\n", "tls: first record does not look like a TLS handshake"),
    ] {
        let api = Api::start().await;
        let url = format!("https://localhost:{}/x", plain(text).await);
        let config = json!({"url": url, "caBundle": STANDARD.encode(&pki.ca)});
        let hook = webhook_with("far", &json!({"clientConfig": config}));
        configure(&api, VALIDATING, "a", &[hook]).await;
        let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
        let end = format!("failed to call webhook: Post \"{url}?timeout=10s\": {why}");
        assert!(message(&refused).ends_with(&end), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_that_leads_astray_is_refused() {
    let api = Api::start().await;
    for url in [
        "http://webhooks.test/x",
        "https://",
        "https:///x",
        "https://user:pw@webhooks.test/x",
        "https://webhooks.test/x?a=b",
        "https://webhooks.test/x#f",
        "webhooks.test/x",
        "https://webhooks.test:port/x",
        "https://web hooks.test/x",
        "file:///etc/passwd",
    ] {
        let hook = webhook_with("far", &json!({"clientConfig": {"url": url}}));
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a"},
            "webhooks": [hook],
        });
        api.post(VALIDATING, &configuration).await.refused(422);
    }
}
