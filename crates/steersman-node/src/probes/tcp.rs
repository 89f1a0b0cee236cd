//! Whether a port accepts connections.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time;

use super::Answer;

pub(super) async fn connect(host: &str, port: u16, timeout: Duration) -> Answer {
    match time::timeout(timeout, dial(host, port)).await {
        Ok(Ok(_)) => Answer::Success,
        Ok(Err(why)) => Answer::Failure(why),
        Err(_) => Answer::Failure(format!("dial tcp {}: i/o timeout", joined(host, port))),
    }
}

/// Connects; an error is told as Go tells it.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = joined(host, port);
    TcpStream::connect((bare, port)).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
            io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
            io::ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {address}: {why}")
    })
}

/// Host and port as one writes them.
pub(super) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
