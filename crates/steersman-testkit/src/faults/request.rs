//! What a request asks for, as far as faults are concerned.

use http::{Method, Request, Uri};

/// The kinds of request that have faults of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A list, or a page of one.
    List {
        /// Whether it is a page after the first.
        continued: bool,
    },
    /// A watch that begins with the state.
    StreamingList,
    /// A watch from a version, or from wherever the server likes.
    Watch {
        /// Whether it names the version to begin from.
        from_version: bool,
    },
    /// Everything else.
    Other,
}

impl Asked {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        if request.method() != Method::GET {
            return Self::Other;
        }
        if matches!(parameter(uri, "watch"), Some("true" | "1")) {
            return Self::of_watch(uri);
        }
        if is_collection(uri.path()) {
            return Self::List { continued: parameter(uri, "continue").is_some() };
        }
        Self::Other
    }

    fn of_watch(uri: &Uri) -> Self {
        if matches!(parameter(uri, "sendInitialEvents"), Some("true" | "1")) {
            return Self::StreamingList;
        }
        let version = parameter(uri, "resourceVersion");
        Self::Watch { from_version: version.is_some_and(|version| version != "0") }
    }
}

/// The path of a request without its prefix is `RESOURCE` or `namespaces/NAME/RESOURCE`.
fn is_collection(path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    let rest: Vec<&str> = match segments.next() {
        Some("api") => segments.skip(1).collect(),
        Some("apis") => segments.skip(2).collect(),
        _ => return false,
    };
    matches!(rest.as_slice(), [_] | ["namespaces", _, _])
        && !matches!(rest.as_slice(), ["namespaces", _, "status" | "finalize"])
}

/// A parameter of the query that is not empty.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    parameters(uri).find(|(key, _)| *key == name).map(|(_, value)| value).filter(|v| !v.is_empty())
}

fn parameters(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Asks for smaller pages, where pages are asked for.
pub(super) fn shrink_page<B>(request: &mut Request<B>, objects: u32) {
    let limit = parameter(request.uri(), "limit").and_then(|limit| limit.parse::<u32>().ok());
    if limit.is_some_and(|limit| limit > objects) {
        rewrite_query(request, |key, value| match key {
            "limit" => Some(objects.to_string()),
            _ => Some(value.to_owned()),
        });
    }
}

/// Takes out what a server that does not know streaming lists would not understand.
pub(super) fn ignore_streaming<B>(request: &mut Request<B>) {
    rewrite_query(request, |key, value| match key {
        "sendInitialEvents" | "resourceVersionMatch" => None,
        _ => Some(value.to_owned()),
    });
}

/// Gives each parameter its new value; `None` takes it out.
fn rewrite_query<B>(request: &mut Request<B>, new: impl Fn(&str, &str) -> Option<String>) {
    let uri = request.uri();
    let pairs = parameters(uri)
        .filter_map(|(key, value)| new(key, value).map(|value| format!("{key}={value}")));
    let query = pairs.collect::<Vec<_>>().join("&");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{}?{query}", uri.path()).parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}
