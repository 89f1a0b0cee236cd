//! What stands in the headers of a request that is passed on: who the user is, and nothing that only
//! concerns the connection that it came by.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use crate::caller::Peer;
use crate::user::{MASTERS, User};

/// Headers that concern one connection.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
];

/// How this server is called where it asks by itself.
pub(super) fn aggregator() -> User {
    User {
        name: "system:kube-aggregator".to_owned(),
        groups: vec![MASTERS.to_owned()],
        ..User::default()
    }
}

/// Removes what concerns one connection, and what that connection says does.
pub(super) fn without_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    headers.remove(header::UPGRADE);
}

/// Prepares the headers of a request to be passed on: whom it came from over which connection is
/// told, credentials and whom it wanted to act as are not.
pub(super) fn pass_on(headers: &mut HeaderMap, peer: Option<Peer>, uri: &Uri) {
    without_connection(headers);
    headers.remove(header::AUTHORIZATION);
    let host = headers.remove(header::HOST);
    let host = host.or_else(|| {
        uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
    });
    let acting: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned().collect();
    for name in acting {
        headers.remove(name);
    }
    if let Some(Peer(address)) = peer
        && let Ok(address) = HeaderValue::from_str(&address.to_string())
    {
        headers.append("x-forwarded-for", address);
        headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
    }
    if let Some(host) = host {
        headers.insert("x-forwarded-host", host);
    }
    if let Ok(path) = HeaderValue::from_str(uri.path()) {
        headers.insert("x-forwarded-uri", path);
    }
}

/// Says who the user is.
pub(super) fn name_user(headers: &mut HeaderMap, user: &User) {
    let told: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in told {
        headers.remove(name);
    }
    let mut tell = |name: &str, value: &str| {
        let value = HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value) {
            headers.append(name, value);
        }
    };
    tell("x-remote-user", &user.name);
    if !user.uid.is_empty() {
        tell("x-remote-uid", &user.uid);
    }
    user.groups.iter().for_each(|group| tell("x-remote-group", group));
    for (key, values) in &user.extra {
        let name = format!("x-remote-extra-{}", escaped(key));
        values.iter().for_each(|value| tell(&name, value));
    }
}

/// The key of an extra as it can stand in the name of a header.
fn escaped(key: &str) -> String {
    key.bytes().fold(String::new(), |mut escaped, byte| {
        let plain = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match plain {
            true => escaped.push(char::from(byte.to_ascii_lowercase())),
            false => escaped += &format!("%{byte:02x}"),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{name_user, pass_on};
    use crate::user::User;

    #[test]
    fn nobody_but_this_server_says_who_the_user_is() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "system:admin"),
            ("x-remote-extra-a", "b"),
            ("authorization", "Bearer t"),
            ("impersonate-user", "jane"),
            ("connection", "keep-alive, x-private"),
            ("x-private", "1"),
            ("host", "api.test"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        pass_on(&mut headers, None, &"/apis/g/v1?a=b".parse().unwrap());
        let mut user = User::known("jane", &["dev"]);
        user.extra.insert("acme.com/Project".to_owned(), vec!["p".to_owned()]);
        name_user(&mut headers, &user);
        let mut told: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                ("accept", "*/*"),
                ("x-forwarded-host", "api.test"),
                ("x-forwarded-uri", "/apis/g/v1"),
                ("x-remote-extra-acme.com%2fproject", "p"),
                ("x-remote-group", "dev"),
                ("x-remote-group", "system:authenticated"),
                ("x-remote-user", "jane"),
            ]
        );
    }
}
