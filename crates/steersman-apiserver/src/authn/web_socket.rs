//! A bearer token among the protocols that a client of WebSocket names: a browser lets its pages set
//! no other header.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};

use crate::upgrade::is_web_socket;

/// What a protocol begins with that is none, but a token.
const TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// The token that a request shows in this way, if it does.
pub(super) fn token(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    if !is_web_socket(headers) {
        return Ok(None);
    }
    let named = || protocols(headers);
    let mut tokens = named().filter_map(|protocol| protocol.strip_prefix(TOKEN));
    let Some(encoded) = tokens.next() else { return Ok(None) };
    if tokens.next().is_some() {
        return Err("multiple base64.bearer.authorization tokens specified");
    }
    let bytes = URL_SAFE_NO_PAD.decode(encoded);
    let bytes = bytes.map_err(|_| "invalid base64.bearer.authorization token encoding")?;
    let token =
        String::from_utf8(bytes).map_err(|_| "invalid base64.bearer.authorization token")?;
    // There must be one left to answer with.
    if named().all(|protocol| protocol.starts_with(TOKEN)) {
        return Err("missing additional subprotocol");
    }
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// Leaves only real protocols: nobody behind needs the token.
pub(crate) fn forget(headers: &mut HeaderMap) {
    if !protocols(headers).any(|protocol| protocol.starts_with(TOKEN)) {
        return;
    }
    let kept: Vec<&str> = protocols(headers).filter(|named| !named.starts_with(TOKEN)).collect();
    match HeaderValue::from_str(&kept.join(",")) {
        Ok(kept) => drop(headers.insert(header::SEC_WEBSOCKET_PROTOCOL, kept)),
        Err(_) => drop(headers.remove(header::SEC_WEBSOCKET_PROTOCOL)),
    }
}

/// What the headers name as protocols.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::{forget, token};

    fn naming(protocols: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, "Upgrade".parse().unwrap());
        headers.insert(header::UPGRADE, "websocket".parse().unwrap());
        for protocol in protocols {
            headers.append(header::SEC_WEBSOCKET_PROTOCOL, protocol.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_of_the_protocols_may_be_a_token() {
        let secret = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
        for (protocols, expected) in [
            (vec!["v4.channel.k8s.io"], Ok(None)),
            (vec!["v4.channel.k8s.io", secret], Ok(Some("secret"))),
            (vec![&*format!("{secret}, x")], Ok(Some("secret"))),
            (vec![secret], Err("missing additional subprotocol")),
            (vec![secret, secret], Err("multiple base64.bearer.authorization tokens specified")),
            (
                vec!["x", "base64url.bearer.authorization.k8s.io.c2VjcmV0=="],
                Err("invalid base64.bearer.authorization token encoding"),
            ),
            (
                vec!["x", "base64url.bearer.authorization.k8s.io._w"],
                Err("invalid base64.bearer.authorization token"),
            ),
        ] {
            let found = token(&naming(&protocols));
            assert_eq!(found.as_ref().map(Option::as_deref), expected.as_ref().copied());
        }
        let mut other = naming(&["x", secret]);
        other.remove(header::UPGRADE);
        assert_eq!(token(&other), Ok(None), "it is not WebSocket that is to be spoken");
    }

    #[test]
    fn nobody_sees_the_token_later() {
        let mut headers = naming(&["a, base64url.bearer.authorization.k8s.io.c2VjcmV0", "b"]);
        forget(&mut headers);
        assert_eq!(headers[header::SEC_WEBSOCKET_PROTOCOL], "a,b");
    }
}
