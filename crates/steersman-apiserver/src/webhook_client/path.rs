//! The path of a webhook, as Go's client comes to write it: its escapes undone, cleaned, and
//! escaped again. Of a URL, only scheme, host and path are taken.

use std::borrow::Cow;

use http::Uri;

/// A URL with a clean path, and without what Go drops: user, query and fragment. What is no URL
/// stays as it is, for the call to fail with.
pub(super) fn cleaned(url: &str) -> String {
    let plain = url.split('#').next().unwrap_or(url);
    let Ok(uri) = plain.parse::<Uri>() else { return url.to_owned() };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return url.to_owned();
    };
    let host = authority.as_str().rsplit('@').next().unwrap_or("");
    let path = crate::request::decode(uri.path()).unwrap_or(Cow::Borrowed(uri.path()));
    format!("{scheme}://{host}{}", escaped(&clean(&path)))
}

/// The path of a service, which has no escapes to undo.
pub(super) fn of_service(path: &str) -> String {
    escaped(&clean(path))
}

/// What `path.Join("/", …)` makes of a path: no empty segments, no `.`, no `..`, no slash at the
/// end.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
        if plain {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{cleaned, of_service};

    #[test]
    fn a_url_is_called_as_go_calls_it() {
        for (url, expected) in [
            ("https://h:9443//mutate-x", "https://h:9443/mutate-x"),
            ("https://h:9443", "https://h:9443/"),
            ("https://h/a/", "https://h/a"),
            ("https://h/a/../b/./c", "https://h/b/c"),
            ("https://h/../a", "https://h/a"),
            ("https://h/a%2Fb%20c", "https://h/a/b%20c"),
            ("https://h/a?b=c#d", "https://h/a"),
            ("https://u:p@h:1/a", "https://h:1/a"),
            ("https://[::1]:8443/a", "https://[::1]:8443/a"),
            ("no url", "no url"),
        ] {
            assert_eq!(cleaned(url), expected, "{url}");
        }
        for (path, expected) in [("", "/"), ("//a", "/a"), ("/a?b", "/a%3Fb"), ("/a/", "/a")] {
            assert_eq!(of_service(path), expected, "{path}");
        }
    }
}
