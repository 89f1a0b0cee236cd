//! Whether a request wants to speak another protocol than HTTP on its connection.

use std::any::Any;
use std::sync::Arc;

use http::{HeaderMap, header};
use tokio_util::sync::CancellationToken;

/// What a connection keeps for as long as anything is said on it, in whichever protocol. It comes with
/// the request that asks for another one.
#[derive(Clone)]
pub(crate) struct Stay {
    _kept: Arc<dyn Any + Send + Sync>,
    /// Cancelled when it has to go.
    pub(crate) leave: CancellationToken,
}

impl Stay {
    pub(crate) fn new(kept: impl Any + Send + Sync, leave: CancellationToken) -> Self {
        Self { _kept: Arc::new(kept), leave }
    }
}

/// Whether it does, whichever protocol that is.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONNECTION).iter();
    values.any(|value| {
        value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("upgrade"))
    })
}

/// Whether it wants to speak WebSocket, as browsers and clients in Java do that watch.
pub(crate) fn is_web_socket(headers: &HeaderMap) -> bool {
    let protocol = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    protocol.is_some_and(|name| name.eq_ignore_ascii_case("websocket")) && is_wanted(headers)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::{is_wanted, is_web_socket};

    #[test]
    fn a_connection_says_that_it_wants_another_protocol_and_which() {
        for (connection, protocol, wanted, web_socket) in [
            ("keep-alive", "websocket", false, false),
            ("keep-alive, Upgrade", "WebSocket", true, true),
            ("upgrade", "SPDY/3.1", true, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(header::CONNECTION, connection.parse().unwrap());
            headers.append(header::UPGRADE, protocol.parse().unwrap());
            let is = (is_wanted(&headers), is_web_socket(&headers));
            assert_eq!(is, (wanted, web_socket), "{connection} {protocol}");
        }
    }
}
