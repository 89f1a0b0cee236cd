//! Looks at a container once.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Answer, grpc, http, tcp};
use crate::duration::go;
use crate::environment::{Environment, expand_text};

/// How often a probe that goes wrong itself is tried.
const TRIES: usize = 3;

/// How much of what a command prints is told.
const OUTPUT_MAX: usize = 10 << 10;

/// What a command in a container did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecOutput {
    pub(crate) code: i32,
    /// What it printed, on both outputs.
    pub(crate) output: Vec<u8>,
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExecError {
    /// The runtime stopped it after the time it had.
    #[error("command timed out")]
    TimedOut,
    /// The runtime could not run it; said as the runtime says it.
    #[error("{0}")]
    Failed(String),
}

/// Runs commands in containers. Who implements it gives the command up after its time.
pub(crate) trait Exec: Send + Sync {
    fn exec(
        &self,
        container: &str,
        command: &[String],
        timeout: Duration,
    ) -> impl Future<Output = Result<ExecOutput, ExecError>> + Send;
}

/// A container to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) container: &'a Container,
    /// The runtime's name for it.
    pub(crate) id: &'a str,
    pub(crate) pod_ip: &'a str,
    /// The Pod as people are told of it: `name_namespace(uid)`.
    pub(crate) pod: &'a str,
}

/// Looks at a container, within the time of the probe; tries again if that goes wrong itself.
pub(crate) async fn probe(probe: &Probe, target: Target<'_>, exec: &impl Exec) -> Answer {
    let mut answer = once(probe, target, exec).await;
    for _ in 1..TRIES {
        if !answer.is_error() {
            break;
        }
        answer = once(probe, target, exec).await;
    }
    answer
}

async fn once(probe: &Probe, target: Target<'_>, exec: &impl Exec) -> Answer {
    let seconds = probe.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let timeout = Duration::from_secs(seconds.filter(|seconds| *seconds > 0).unwrap_or(1));
    if let Some(action) = &probe.exec {
        let environment = constants(target.container);
        let filled = |word: &String| expand_text(word, &environment);
        let command: Vec<String> = action.command.iter().flatten().map(filled).collect();
        run(target.id, &command, timeout, exec).await
    } else if let Some(action) = &probe.http_get {
        match port(&action.port, target.container) {
            Ok(port) => http::get(action, port, target.pod_ip, timeout).await,
            Err(why) => Answer::Unknown(why),
        }
    } else if let Some(action) = &probe.tcp_socket {
        let host = action.host.as_deref().filter(|host| !host.is_empty());
        match port(&action.port, target.container) {
            Ok(port) => tcp::connect(host.unwrap_or(target.pod_ip), port, timeout).await,
            Err(why) => Answer::Unknown(why),
        }
    } else if let Some(action) = &probe.grpc {
        let service = action.service.as_deref().unwrap_or_default();
        grpc::check(target.pod_ip, action.port, service, timeout).await
    } else {
        let (pod, name) = (target.pod, &target.container.name);
        Answer::Unknown(format!("missing probe handler for {pod}:{name}"))
    }
}

/// The variables that a container gives a value itself; a probe knows no others.
fn constants(container: &Container) -> Environment {
    let variables = container.env.iter().flatten();
    let value = |text: &Option<String>| text.clone().unwrap_or_default().into_bytes();
    variables.map(|variable| (variable.name.clone(), value(&variable.value))).collect()
}

async fn run(id: &str, command: &[String], timeout: Duration, exec: &impl Exec) -> Answer {
    match exec.exec(id, command, timeout).await {
        Ok(ExecOutput { code: 0, .. }) => Answer::Success,
        Ok(ExecOutput { mut output, .. }) => {
            output.truncate(OUTPUT_MAX);
            Answer::Failure(String::from_utf8_lossy(&output).into_owned())
        }
        Err(ExecError::TimedOut) => {
            let (command, after) = (command.join(" "), go(timeout));
            Answer::Failure(format!("command timed out: {command:?} timed out after {after}"))
        }
        Err(ExecError::Failed(why)) => Answer::Unknown(why),
    }
}

/// The number of a port that may be named.
fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_deref() == Some(name));
            match named {
                Some(port) => port.container_port,
                None => name
                    .parse()
                    .map_err(|_| format!("strconv.Atoi: parsing {name:?}: invalid syntax"))?,
            }
        }
    };
    let valid = u16::try_from(number).ok().filter(|number| *number > 0);
    valid.ok_or_else(|| format!("invalid port number: {number}"))
}
