//! The path and the query of a request.

use http::Method;
use steersman_apiserver::request::{Query, RequestInfo, Segment, is_long_running, segments};

/// `METHOD PATH?QUERY`, with or without the method.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (method, uri) = text.split_once(' ').unwrap_or(("GET", text));
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let query = Query::parse(query);
    let _ = (query.deadline(), query.number("limit"), query.flag("watch"), query.text("x"));
    let Ok(segments) = segments(path) else { return };
    let _ = is_long_running(&segments, &query);
    if let Ok(info) = RequestInfo::parse(&method, &segments, query) {
        let _ = info.dry_run();
        assert!(info.name.is_some() || info.subresource.is_none(), "a part of nothing: {info:?}");
    }
    written_is_read(&segments);
}

/// Segments that are written in a path are the same segments.
fn written_is_read(read: &[Segment<'_>]) {
    // What is empty at the beginning or the end does not count, wherever it came from.
    let is_empty = |end: Option<&Segment<'_>>| end.is_some_and(|segment| segment.is_empty());
    if is_empty(read.first()) || is_empty(read.last()) {
        return;
    }
    let escaped = |segment: &Segment<'_>| segment.bytes().map(|b| format!("%{b:02x}")).collect();
    let written: Vec<String> = read.iter().map(escaped).collect();
    let path = format!("/{}", written.join("/"));
    let again = segments(&path);
    assert_eq!(again.ok().as_deref(), Some(read), "what is written in a path is read from it");
}
