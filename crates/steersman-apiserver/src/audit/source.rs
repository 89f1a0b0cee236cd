//! What an event tells of where a request comes from and where it goes.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};

const USER_AGENT_MAX: usize = 1024;

/// Parameters whose values are credentials.
const SECRETS: [&str; 6] =
    ["access_token", "id_token", "refresh_token", "token", "password", "client_secret"];

/// The addresses of those a request has passed, as far as proxies tell, and of who has sent it last.
pub(super) fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let forwarded = text("x-forwarded-for").split(',');
    let mut all: Vec<IpAddr> = forwarded.filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(real) = text("x-real-ip").parse()
        && !all.contains(&real)
    {
        all.push(real);
    }
    if let Some(peer) = peer.map(|peer| peer.to_canonical())
        && all.last() != Some(&peer)
    {
        all.push(peer);
    }
    all.iter().map(ToString::to_string).collect()
}

/// The client, as it names itself.
pub(super) fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT);
    let agent = agent.map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    if agent.len() <= USER_AGENT_MAX {
        return agent.into_owned();
    }
    let cut = (0..=USER_AGENT_MAX).rev().find(|at| agent.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...TRUNCATED", &agent[..cut])
}

/// Path and query, without the values of credentials that somebody has put there.
pub(super) fn request_uri(uri: &Uri) -> String {
    let Some(query) = uri.query() else { return uri.path().to_owned() };
    let is_secret = |pair: &str| {
        let name = pair.split('=').next().unwrap_or("");
        SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
    };
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if is_secret(pair) => format!("{name}=REDACTED"),
        _ => pair.to_owned(),
    };
    let pairs: Vec<String> = query.split('&').map(shown).collect();
    format!("{}?{}", uri.path(), pairs.join("&"))
}

/// What was shown of who somebody is, of a request that nobody was found behind.
pub(super) fn attempted(headers: &HeaderMap, uri: &Uri, certificate: bool) -> String {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let scheme = shown.unwrap_or("").trim().split_once(' ').map(|(scheme, _)| scheme);
    let is = |name: &str| scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(name));
    let in_query = uri
        .query()
        .unwrap_or("")
        .split('&')
        .any(|pair| pair.strip_prefix("access_token=").is_some_and(|token| !token.is_empty()));
    let all = [
        (is("basic"), "basic"),
        (is("bearer"), "bearer"),
        (in_query, "access_token"),
        (certificate, "x509"),
    ];
    let tried: Vec<&str> = all.iter().filter(|(was, _)| *was).map(|(_, name)| *name).collect();
    match tried.as_slice() {
        [] => "Authentication failed, no credentials provided".to_owned(),
        tried => format!("Authentication failed, attempted: {}", tried.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, Uri};

    use super::{addresses, attempted, request_uri, user_agent};

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn proxies_are_told_before_who_is_connected() {
        let peer = Some("10.0.0.9".parse().unwrap());
        for (given, expected) in [
            (&[][..], &["10.0.0.9"][..]),
            (&[("x-forwarded-for", "1.1.1.1, odd, 2.2.2.2")], &["1.1.1.1", "2.2.2.2", "10.0.0.9"]),
            (&[("x-forwarded-for", "1.1.1.1,10.0.0.9")], &["1.1.1.1", "10.0.0.9"]),
            (&[("x-real-ip", "3.3.3.3")], &["3.3.3.3", "10.0.0.9"]),
            (&[("x-forwarded-for", "3.3.3.3"), ("x-real-ip", "3.3.3.3")], &["3.3.3.3", "10.0.0.9"]),
        ] {
            assert_eq!(addresses(&headers(given), peer), expected, "{given:?}");
        }
        assert!(addresses(&HeaderMap::new(), None).is_empty());
    }

    #[test]
    fn what_a_query_says_of_tokens_is_left_out() {
        for (uri, expected) in [
            ("/api/v1/pods?limit=500&continue=abc", "/api/v1/pods?limit=500&continue=abc"),
            ("/api?access_token=s3cret&x=1", "/api?access_token=REDACTED&x=1"),
            ("/api?Token=s3cret", "/api?Token=REDACTED"),
            ("/version", "/version"),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(request_uri(&uri), expected);
        }
    }

    #[test]
    fn what_was_tried_is_told_and_not_with_what() {
        let uri: Uri = "/api".parse().unwrap();
        let with_token: Uri = "/api?access_token=x".parse().unwrap();
        let bearer = headers(&[("authorization", "Bearer s3cret")]);
        let nothing = HeaderMap::new();
        let failed = "Authentication failed, ";
        for (headers, uri, certificate, expected) in [
            (&nothing, &uri, false, "no credentials provided"),
            (&bearer, &uri, false, "attempted: bearer"),
            (&bearer, &with_token, true, "attempted: bearer, access_token, x509"),
        ] {
            let told = attempted(headers, uri, certificate);
            assert_eq!(told, format!("{failed}{expected}"));
        }
    }

    #[test]
    fn a_long_user_agent_is_cut() {
        let long = "x".repeat(2000);
        let told = user_agent(&headers(&[("user-agent", &long)]));
        assert_eq!(told.len(), 1024 + "...TRUNCATED".len());
    }
}
