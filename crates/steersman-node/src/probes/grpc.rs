//! Asks a server for its health by the protocol that gRPC has for it.

use std::time::Duration;

use tokio::time::{self, Instant};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::Answer;
use super::http::USER_AGENT;
use super::tcp::joined;
use crate::duration::go;

const CHECK: &str = "/grpc.health.v1.Health/Check";

/// How long to wait before a server that does not answer is tried again, within the same probe.
const AGAIN: Duration = Duration::from_millis(250);

/// `grpc.health.v1.HealthCheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub(super) status: i32,
}

/// `grpc.health.v1.HealthCheckResponse.ServingStatus`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
    ServiceUnknown = 3,
}

pub(super) async fn check(host: &str, port: i32, service: &str, timeout: Duration) -> Answer {
    let deadline = Instant::now() + timeout;
    let Ok(port) = u16::try_from(port) else {
        return Answer::Failure(format!("invalid port number: {port}"));
    };
    let address = joined(host, port);
    let Some(channel) = connected(&address, deadline).await else {
        let within = go(timeout);
        return Answer::Failure(format!(
            "timeout: failed to connect service {address:?} within {within}: context deadline exceeded"
        ));
    };
    let late =
        || Answer::Failure(format!("timeout: health rpc did not complete within {}", go(timeout)));
    match time::timeout_at(deadline, ask(channel, service)).await {
        Err(_) => late(),
        Ok(Ok(response)) => judged(&response),
        Ok(Err(status)) => match status.code() {
            Code::Unimplemented => Answer::Failure(format!(
                "error: this server does not implement the grpc health protocol \
                 (grpc.health.v1.Health): {}",
                status.message()
            )),
            Code::DeadlineExceeded => late(),
            _ => Answer::Failure(format!("error: health rpc probe failed: {}", told(&status))),
        },
    }
}

/// A connection, tried for until the deadline.
async fn connected(address: &str, deadline: Instant) -> Option<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
    let endpoint = endpoint.user_agent(USER_AGENT).ok()?;
    loop {
        match time::timeout_at(deadline, endpoint.connect()).await {
            Err(_) => return None,
            Ok(Ok(channel)) => return Some(channel),
            Ok(Err(_)) => time::timeout_at(deadline, time::sleep(AGAIN)).await.ok()?,
        }
    }
}

async fn ask(channel: Channel, service: &str) -> Result<HealthCheckResponse, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let request = Request::new(HealthCheckRequest { service: service.to_owned() });
    let answer: tonic::Response<HealthCheckResponse> =
        grpc.unary(request, PathAndQuery::from_static(CHECK), ProstCodec::default()).await?;
    Ok(answer.into_inner())
}

fn judged(response: &HealthCheckResponse) -> Answer {
    let name = match response.status() {
        ServingStatus::Serving => return Answer::Success,
        ServingStatus::Unknown => "UNKNOWN",
        ServingStatus::NotServing => "NOT_SERVING",
        ServingStatus::ServiceUnknown => "SERVICE_UNKNOWN",
    };
    Answer::Failure(format!("service unhealthy (responded with {name:?})"))
}

/// An error as Go tells it.
fn told(status: &Status) -> String {
    let code = match status.code() {
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}
