//! What a container does right after it has started, and before it stops.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, HTTPGetAction, LifecycleHandler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use steersman::events::{NewEvent, Reference};
use tokio::time::{sleep, timeout};

use super::Shared;
use crate::probes::{Called, call};

/// How a kubelet calls itself to those whom hooks name.
const USER_AGENT: &str = "kube-lifecycle/1.36";
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
    /// Whom people are told of.
    pub(super) pod: &'a Reference,
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
    let Some(get) = &hook.http_get else { return Err("the hook says nothing to do".into()) };
    if http(get, at).await? == Called::Plainly {
        let event = NewEvent::warning("LifecycleHTTPFallback").action("Calling");
        let note = "request to HTTPS lifecycle hook got HTTP response, retry with HTTP succeeded";
        shared.recorder.event(at.pod.clone(), event.note(note));
    }
    Ok(())
}

/// Calls whoever a hook names.
async fn http(get: &HTTPGetAction, at: &Hooked<'_>) -> Result<Called, String> {
    let named = get.host.as_deref().is_some_and(|host| !host.is_empty());
    let address = at.address.or(named.then_some("")).ok_or("the Pod has no address")?;
    let port = port(&get.port, at.container).ok_or("the hook names no port of the container")?;
    call(get, port, address, USER_AGENT).await
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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What becomes of a hook that is answered so, each time that it asks, and what it asked for.
    async fn answered(
        scheme: &str,
        answers: &'static [&'static str],
    ) -> (Result<Called, String>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = i32::from(listener.local_addr().unwrap().port());
        let asked = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = [0; 1024];
                let read = stream.read(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                asked.push(text.lines().next().unwrap_or_default().to_owned());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        let get = HTTPGetAction {
            path: Some("/done".into()),
            port: IntOrString::Int(port),
            scheme: Some(scheme.into()),
            ..HTTPGetAction::default()
        };
        let pod = Reference::with("v1", "Pod", &ObjectMeta::default());
        let container = Container::default();
        let address = Some("127.0.0.1");
        let at = Hooked { container: &container, id: "id1", address, pod: &pod };
        let called = http(&get, &at).await;
        (called, asked.await.unwrap())
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    #[tokio::test]
    async fn a_hook_that_is_answered_has_been_run_whatever_the_answer_is() {
        for answers in [
            &[OK],
            &["HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"],
            &["HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"],
            &["HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n"],
        ] {
            let (called, asked) = answered("HTTP", answers).await;
            assert_eq!(called, Ok(Called::Answered), "{answers:?}");
            assert_eq!(asked, ["GET /done HTTP/1.1"]);
        }
        let (called, _) = answered("HTTP", &[""]).await;
        let why = called.unwrap_err();
        assert!(why.starts_with("Get \"http://127.0.0.1:"), "{why}");
    }

    #[tokio::test]
    async fn a_hook_follows_redirects_on_its_host() {
        const MOVED: &str = "HTTP/1.1 301 Moved\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n";
        let (called, asked) = answered("HTTP", &[MOVED, OK]).await;
        assert_eq!(called, Ok(Called::Answered));
        assert_eq!(asked, ["GET /done HTTP/1.1", "GET /there HTTP/1.1"]);
    }

    #[tokio::test]
    async fn who_does_not_speak_tls_is_called_without() {
        const REFUSED: &str = "HTTP/1.0 400 Bad Request\r\n\r\n";
        let (called, asked) = answered("HTTPS", &[REFUSED, OK]).await;
        assert_eq!(called, Ok(Called::Plainly));
        assert_eq!(asked[1], "GET /done HTTP/1.1");
        let (called, _) = answered("HTTPS", &[REFUSED, ""]).await;
        let why = called.unwrap_err();
        assert!(why.ends_with("server gave HTTP response to HTTPS client"), "{why}");
    }
}
