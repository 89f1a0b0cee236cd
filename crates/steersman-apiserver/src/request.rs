//! What a request asks for: path and query, read into verb, resource, namespace and name.
//!
//! Purely syntactic: whether the resource is served is the registry's business. The grammar is
//! `/api/{version}/…` and `/apis/{group}/{version}/…`, then
//! `[watch/][namespaces/{namespace}/]{resource}[/{name}[/{subresource}]]`.

mod duration;

use std::borrow::Cow;
use std::time::Duration;

use http::Method;
use steersman_rules::resource::Verb;
use steersman_rules::strconv;

use crate::status::{Result, Status};

/// The longest that a request other than a watch may take.
pub const DEADLINE_MAX: Duration = Duration::from_secs(60);

/// A request for a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// What to do.
    pub verb: Verb,
    /// The API group; empty for core.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural name, such as `pods`.
    pub resource: String,
    /// The namespace of the path.
    pub namespace: Option<String>,
    /// The name of the path.
    pub name: Option<String>,
    /// What stands behind the name.
    pub subresource: Option<String>,
    /// What stands behind `proxy`, with the slash before it: what is asked for there.
    pub proxied: String,
    /// The query parameters.
    pub query: Query,
    /// Who knows the method here.
    pub method: Known,
}

/// Who answers a method at a path. Kubernetes has a route for each method of a built-in kind;
/// custom resources share one handler, which only looks at the verb that a method stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Every kind.
    ToAll,
    /// Only custom resources, such as a HEAD, or a POST to a name.
    ToCustomResources,
    /// No kind.
    ToNone,
}

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of a URI behind the question mark. As in Go, what is not escaped well is
    /// passed over.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| decode(&text.replace('+', " ")).ok().map(Cow::into_owned);
            Some((decoded(name)?, decoded(value)?))
        });
        Self(decoded.collect())
    }

    /// The first value of a parameter, if it is there.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is there and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// A boolean; like Kubernetes, anything but `false` and `0` is true.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let value = self.get(name)?;
        Some(!(value.eq_ignore_ascii_case("false") || value == "0"))
    }

    /// A whole number. One that is there has to have digits.
    pub fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = strconv::parse_int(text);
        number.map(Some).map_err(|error| Status::bad_request(error.to_string()))
    }

    /// How long a request that is not a watch may take: [`DEADLINE_MAX`], or less if its
    /// `timeout` says so.
    pub fn deadline(&self) -> Result<Duration> {
        let Some(text) = self.text("timeout") else { return Ok(DEADLINE_MAX) };
        let wanted = duration::parse(text).map_err(|why| {
            Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
        })?;
        Ok(if wanted.is_zero() { DEADLINE_MAX } else { wanted.min(DEADLINE_MAX) })
    }
}

/// Whether a request goes on until one side ends it: a watch, or what is streamed to a Pod. It has
/// no deadline, so its `timeout` is not even looked at.
pub fn is_long_running(path: &[Segment<'_>], query: &Query) -> bool {
    let below = match path {
        [api, _, below @ ..] if api == "api" => below,
        [apis, _, _, below @ ..] if apis == "apis" => below,
        _ => return false,
    };
    let below = match below {
        [first, _, ..] if first == "watch" || first == "proxy" => return true,
        [first, _, rest @ ..] if first == "namespaces" && !rest.is_empty() => rest,
        below => below,
    };
    match below {
        [_] => query.flag("watch").unwrap_or(false),
        [_, _, subresource, ..] => STREAMED.contains(&&**subresource),
        _ => false,
    }
}

/// Subresources that are streamed.
pub(crate) const STREAMED: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// A decoded part of a path, which most often stands in the path as it is.
pub type Segment<'a> = Cow<'a, str>;

/// How many segments most paths have at most.
const SEGMENTS: usize = 8;

/// Splits a path into decoded segments. An empty one at the end does not count, one at the
/// beginning leads nowhere, and others name nothing but all namespaces.
pub fn segments(path: &str) -> Result<Vec<Segment<'_>>> {
    let path = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/');
    if path.is_empty() {
        return Ok(Vec::new());
    }
    // Every request comes by here, so that this is written for speed.
    let is_escaped = path.contains('%');
    let mut segments: Vec<Segment<'_>> = Vec::with_capacity(SEGMENTS);
    for part in path.split('/') {
        let part = if is_escaped { decode(part)? } else { Cow::Borrowed(part) };
        let names_nothing = |before: &Segment<'_>| part.is_empty() && before != "namespaces";
        if segments.last().is_some_and(names_nothing) {
            // What is not escaped well is told first.
            path.split('/').try_for_each(|part| decode(part).map(drop))?;
            return Err(Status::no_such_resource());
        }
        segments.push(part);
    }
    Ok(segments)
}

impl RequestInfo {
    /// Reads a request whose path starts with `/api/{version}/` or `/apis/{group}/{version}/`
    /// and goes on; other paths are for [`crate::discovery`].
    pub fn parse(method: &Method, segments: &[Segment<'_>], query: Query) -> Result<Self> {
        let (group, version, rest) = match segments {
            [api, version, rest @ ..] if api == "api" => ("", version, rest),
            [apis, group, version, rest @ ..] if apis == "apis" => (&**group, version, rest),
            _ => return Err(Status::no_such_resource()),
        };
        // An old prefix, by which nothing is reached any more.
        if rest.len() > 1 && rest[0] == "proxy" {
            return Err(Status::no_such_resource());
        }
        let (watched, rest) = match rest {
            [first, rest @ ..] if first == "watch" && !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let mut info = Self {
            verb: Verb::Get,
            group: group.to_owned(),
            version: version.to_string(),
            resource: String::new(),
            namespace: None,
            name: None,
            subresource: None,
            proxied: String::new(),
            query,
            method: Known::ToAll,
        };
        info.read_path(rest)?;
        (info.verb, info.method) = info.verb_of(method, watched);
        Ok(info)
    }

    /// Whether a write is to do everything but the write.
    pub fn dry_run(&self) -> Result<bool> {
        let mut values = self.query.all("dryRun");
        match values.find(|value| *value != "All") {
            Some(odd) => Err(Status::unprocessable(format!("dryRun: Unsupported value: {odd:?}"))),
            None => Ok(self.query.get("dryRun").is_some()),
        }
    }

    /// A slash at the end of the path belongs to what is asked for through a proxy.
    pub fn with_slash_of(mut self, path: &str) -> Self {
        let is_proxied = self.subresource.as_deref() == Some("proxy");
        if is_proxied && path.ends_with('/') && !self.proxied.ends_with('/') {
            self.proxied.push('/');
        }
        self
    }

    fn read_path(&mut self, path: &[Segment<'_>]) -> Result<()> {
        let path = match path {
            // A namespace itself and its two subresources, else something in a namespace.
            [namespaces, _name] if namespaces == "namespaces" => path,
            [namespaces, _name, sub, ..]
                if namespaces == "namespaces" && matches!(&**sub, "status" | "finalize") =>
            {
                path
            }
            [namespaces, namespace, rest @ ..] if namespaces == "namespaces" => {
                self.namespace = Some(namespace.to_string());
                rest
            }
            _ => path,
        };
        let (resource, name, subresource) = match path {
            [resource] => (resource, None, None),
            [resource, name] => (resource, Some(name), None),
            [resource, name, subresource] => (resource, Some(name), Some(subresource)),
            // What follows is a path on the other side.
            [resource, name, proxy, rest @ ..] if proxy == "proxy" => {
                self.proxied = rest.iter().flat_map(|part| ["/", part]).collect();
                (resource, Some(name), Some(proxy))
            }
            _ => return Err(Status::no_such_resource()),
        };
        if name.is_none() && self.namespace.as_deref() == Some("") {
            self.namespace = None;
        }
        self.resource = resource.to_string();
        self.name = name.map(ToString::to_string);
        self.subresource = subresource.map(ToString::to_string);
        Ok(())
    }

    fn verb_of(&self, method: &Method, watched: bool) -> (Verb, Known) {
        let of_custom_resources = Known::ToCustomResources;
        match (method, self.name.is_some()) {
            // Whoever may watch may not write by the way.
            (method, _) if watched && method != Method::GET => (Verb::Watch, Known::ToNone),
            (&Method::GET, _) if watched || self.asks_to_watch() => (Verb::Watch, Known::ToAll),
            (&Method::GET, true) => (Verb::Get, Known::ToAll),
            (&Method::GET, false) => (Verb::List, Known::ToAll),
            (&Method::HEAD, true) => (Verb::Get, of_custom_resources),
            (&Method::HEAD, false) => (Verb::List, of_custom_resources),
            (&Method::POST, false) => (Verb::Create, Known::ToAll),
            (&Method::POST, true) if self.subresource.is_some() => (Verb::Create, Known::ToAll),
            (&Method::POST, true) => (Verb::Create, of_custom_resources),
            (&Method::PUT, true) => (Verb::Update, Known::ToAll),
            (&Method::PUT, false) => (Verb::Update, of_custom_resources),
            (&Method::PATCH, true) => (Verb::Patch, Known::ToAll),
            (&Method::PATCH, false) => (Verb::Patch, of_custom_resources),
            (&Method::DELETE, true) => (Verb::Delete, Known::ToAll),
            (&Method::DELETE, false) => (Verb::DeleteCollection, Known::ToAll),
            _ => (Verb::Get, Known::ToNone),
        }
    }

    /// One object is not watched, whatever the query says: only its collection is.
    fn asks_to_watch(&self) -> bool {
        self.name.is_none() && self.query.flag("watch").unwrap_or(false)
    }
}

/// Undoes percent-encoding.
pub(crate) fn decode(text: &str) -> Result<Cow<'_, str>> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let bad = || Status::bad_request(format!("invalid URL escape in {text:?}"));
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = bytes.next().ok_or_else(bad)?;
            let low = bytes.next().ok_or_else(bad)?;
            let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(bad);
            let code = digit(high)? * 16 + digit(low)?;
            out.push(u8::try_from(code).map_err(|_| bad())?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use http::Method;
    use steersman_rules::resource::Verb;

    use super::{Known, Query, RequestInfo, is_long_running, segments};
    use crate::status::Status;

    fn parse(method: &Method, path: &str, query: &str) -> RequestInfo {
        let segments = segments(path).unwrap();
        RequestInfo::parse(method, &segments, Query::parse(query)).unwrap()
    }

    #[test]
    fn paths_name_group_namespace_resource_name_and_subresource() {
        let info = parse(&Method::PUT, "/apis/apps/v1/namespaces/ns/deployments/web/scale", "");
        assert_eq!((info.group.as_str(), info.version.as_str()), ("apps", "v1"));
        assert_eq!(info.namespace.as_deref(), Some("ns"));
        assert_eq!(info.name.as_deref(), Some("web"));
        assert_eq!(info.subresource.as_deref(), Some("scale"));
        assert_eq!(info.verb, Verb::Update);
    }

    #[test]
    fn a_namespace_is_a_resource_of_its_own() {
        let info = parse(&Method::GET, "/api/v1/namespaces/a%2Db", "");
        assert_eq!((info.resource.as_str(), info.name.as_deref()), ("namespaces", Some("a-b")));
        let info = parse(&Method::PUT, "/api/v1/namespaces/a/finalize", "");
        assert_eq!(info.subresource.as_deref(), Some("finalize"));
        assert_eq!(info.namespace, None);
    }

    #[test]
    fn watch_is_asked_for_by_query_or_by_the_old_prefix() {
        assert_eq!(parse(&Method::GET, "/api/v1/pods", "watch=1").verb, Verb::Watch);
        assert_eq!(parse(&Method::GET, "/api/v1/pods", "watch=false").verb, Verb::List);
        let one = parse(&Method::GET, "/api/v1/namespaces/ns/pods/x", "watch=true");
        assert_eq!(one.verb, Verb::Get);
        let old = parse(&Method::GET, "/api/v1/watch/namespaces/ns/pods/x", "");
        assert_eq!((old.verb, old.name.as_deref()), (Verb::Watch, Some("x")));
    }

    #[test]
    fn methods_without_a_route_are_known_to_custom_resources_only() {
        for (method, path, expected) in [
            (Method::HEAD, "/api/v1/pods", (Verb::List, Known::ToCustomResources)),
            (Method::POST, "/api/v1/namespaces/a/pods/x", (Verb::Create, Known::ToCustomResources)),
            (Method::PUT, "/api/v1/namespaces/a/pods", (Verb::Update, Known::ToCustomResources)),
            (Method::POST, "/api/v1/namespaces/a/pods/x/eviction", (Verb::Create, Known::ToAll)),
            (Method::TRACE, "/api/v1/pods", (Verb::Get, Known::ToNone)),
            (Method::POST, "/api/v1/watch/namespaces/a/pods", (Verb::Watch, Known::ToNone)),
            (Method::DELETE, "/api/v1/watch/namespaces/a/pods/x", (Verb::Watch, Known::ToNone)),
        ] {
            let info = parse(&method, path, "");
            assert_eq!((info.verb, info.method), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_number_that_is_given_without_digits_is_a_mistake() {
        let query = Query::parse("limit=&timeoutSeconds=5");
        assert_eq!(query.number("timeoutSeconds"), Ok(Some(5)));
        assert_eq!(query.number("gracePeriodSeconds"), Ok(None));
        let why = r#"strconv.ParseInt: parsing "": invalid syntax"#;
        assert_eq!(query.number("limit"), Err(Status::bad_request(why)));
    }

    #[test]
    fn only_an_empty_namespace_names_something() {
        assert_eq!(parse(&Method::GET, "/api/v1/namespaces//pods", "").namespace, None);
        let one = parse(&Method::GET, "/api/v1/namespaces//pods/x", "");
        assert_eq!(one.namespace.as_deref(), Some(""));
        for path in ["/api//v1/pods", "/api/v1//pods", "/api/v1/pods//x"] {
            assert_eq!(segments(path).unwrap_err(), Status::no_such_resource(), "{path}");
        }
        assert_eq!(segments("//api").unwrap(), ["", "api"]);
        assert_eq!(segments("/").unwrap().len(), 0);
        assert_eq!(segments("/version/").unwrap(), ["version"]);
    }

    #[test]
    fn timeouts_are_durations_of_go_and_never_longer_than_a_minute() {
        let seconds = |text: &str| {
            Query::parse(&format!("timeout={text}")).deadline().map(|d| d.as_secs_f64())
        };
        for (text, expected) in [
            ("", 60.0),
            ("0", 60.0),
            ("10s", 10.0),
            ("1m30s", 60.0),
            ("0.5s", 0.5),
            ("100ms", 0.1),
            ("-5s", 60.0),
            ("999999h", 60.0),
        ] {
            assert!((seconds(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        assert_eq!(seconds("1e400s").unwrap_err().code, 400);
    }

    #[test]
    fn watches_and_streams_run_long_and_nothing_else_does() {
        for (path, query, expected) in [
            ("/version", "watch=1", false),
            ("/apis/apps/v1", "watch=1", false),
            ("/api/v1/pods", "", false),
            ("/api/v1/pods", "watch=1", true),
            ("/api/v1/namespaces/a/pods", "watch=true", true),
            ("/api/v1/namespaces/a/pods/b", "watch=true", false),
            ("/api/v1/watch/pods", "", true),
            ("/apis/apps/v1/watch/namespaces/a/deployments/b", "", true),
            ("/api/v1/namespaces/a/pods/b/log", "", true),
            ("/api/v1/namespaces/a/services/b/proxy/path", "", true),
            ("/api/v1/nodes/b/proxy", "", true),
            ("/api/v1/namespaces/a/pods/b/status", "", false),
            ("/api/v1/namespaces/a/finalize", "", false),
            ("/api/v1/namespaces", "watch=1", true),
        ] {
            let query = Query::parse(query);
            let path_segments = segments(path).unwrap();
            assert_eq!(is_long_running(&path_segments, &query), expected, "{path}");
        }
    }

    #[test]
    fn broken_escapes_are_bad_requests() {
        assert_eq!(segments("/api/v1/pods/%zz").unwrap_err().code, 400);
        assert_eq!(segments("/api/v1/pods/%ff").unwrap_err().code, 400);
        assert_eq!(Query::parse("a=%4&b=1"), Query::parse("b=1"));
    }
}
