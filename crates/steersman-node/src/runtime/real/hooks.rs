//! What a container does right after it has started, and before it stops.

use std::time::Duration;

use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Shared;
use crate::probes::target;

/// How long a hook may take.
const LONGEST: Duration = Duration::from_secs(3600);

/// Where a hook is run.
#[derive(Clone, Debug)]
pub(super) struct Hooked<'a> {
    pub(super) container: &'a Container,
    /// The runtime's name for it.
    pub(super) id: &'a str,
    /// The Pod's address.
    pub(super) address: Option<&'a str>,
}

/// Runs a hook to its end.
pub(super) async fn run(
    shared: &Shared,
    hook: &LifecycleHandler,
    at: &Hooked<'_>,
) -> Result<(), String> {
    let done = timeout(LONGEST, one(shared, hook, at)).await;
    done.unwrap_or_else(|_| Err(format!("it took longer than {LONGEST:?}")))
}

async fn one(shared: &Shared, hook: &LifecycleHandler, at: &Hooked<'_>) -> Result<(), String> {
    if let Some(exec) = &hook.exec {
        let command = exec.command.clone().unwrap_or_default();
        let named = command.join(" ");
        let done = shared.cri.exec(at.id, command, LONGEST).await;
        let done = done.map_err(|error| format!("{error}, message: \"\""))?;
        let why = String::from_utf8_lossy(&done.stderr);
        let said = [String::from_utf8_lossy(&done.stdout), why.clone()].concat();
        return match done.exit_code {
            0 => Ok(()),
            code => Err(format!("command '{named}' exited with {code}: {why}, message: {said:?}")),
        };
    }
    if let Some(pause) = &hook.sleep {
        sleep(Duration::from_secs(u64::try_from(pause.seconds).unwrap_or(0))).await;
        return Ok(());
    }
    match &hook.http_get {
        Some(get) => http(get, at).await,
        None => Err("the hook says nothing to do".into()),
    }
}

/// Asks for what a hook names. Whatever the answer is, the hook was asked.
async fn http(get: &HTTPGetAction, at: &Hooked<'_>) -> Result<(), String> {
    let host = get.host.as_deref().filter(|host| !host.is_empty()).or(at.address);
    let host = host.ok_or("the Pod has no address")?;
    let port = port(&get.port, at.container).ok_or("the hook names no port of the container")?;
    let path = target(get.path.as_deref().unwrap_or_default());
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    let authority = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let authority = format!("{authority}:{port}");
    let url = format!("http://{authority}{path}");
    let told = |error: &dyn std::fmt::Display| format!("Get {url:?}: {error}");
    let stream = TcpStream::connect((host, port)).await.map_err(|error| told(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
    let uri: Uri = path.parse().map_err(|error| told(&error))?;
    let mut request = Request::get(uri).header("host", &authority);
    request = request.header("user-agent", "kube-lifecycle/1.36").header("accept", "*/*");
    for header in get.http_headers.iter().flatten() {
        request = request.header(&header.name, &header.value);
    }
    let request = request.body(Empty::<hyper::body::Bytes>::new()).map_err(|error| told(&error))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| told(&error))?;
        tracing::debug!(status = answer.status().as_u16(), "a hook was answered");
        Ok(())
    };
    tokio::pin!(answered);
    tokio::select! {
        answered = &mut answered => answered,
        ended = connection => match ended {
            Ok(()) => answered.await,
            Err(error) => Err(told(&error)),
        },
    }
}

fn port(port: &IntOrString, container: &Container) -> Option<u16> {
    match port {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten();
            let mut named = named.filter(|port| port.name.as_ref() == Some(name));
            named.next().and_then(|port| u16::try_from(port.container_port).ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What becomes of a hook that is answered so.
    async fn answered(answer: &'static str) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = i32::from(listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let get = HTTPGetAction { port: IntOrString::Int(port), ..HTTPGetAction::default() };
        let at = Hooked { container: &Container::default(), id: "id1", address: Some("127.0.0.1") };
        http(&get, &at).await
    }

    #[tokio::test]
    async fn a_hook_that_is_answered_has_been_run_whatever_the_answer_is() {
        for status in ["200 OK", "302 Found", "404 Not Found", "500 Internal Server Error"] {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            assert_eq!(answered(answer.leak()).await, Ok(()), "{status}");
        }
        let why = answered("").await.unwrap_err();
        assert!(why.starts_with("Get \"http://127.0.0.1:"), "{why}");
    }
}
