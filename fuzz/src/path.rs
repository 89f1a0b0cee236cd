//! The path and the query of a request.

use http::Method;
use steersman_apiserver::request::{Query, RequestInfo, is_long_running, segments};

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
fn written_is_read(read: &[String]) {
    // What is empty at the beginning or the end does not count, wherever it came from.
    if read.first().is_some_and(String::is_empty) || read.last().is_some_and(String::is_empty) {
        return;
    }
    let escaped = |segment: &String| segment.bytes().map(|b| format!("%{b:02x}")).collect();
    let written: Vec<String> = read.iter().map(escaped).collect();
    let again = segments(&format!("/{}", written.join("/")));
    assert_eq!(again.ok().as_deref(), Some(read), "what is written in a path is read from it");
}
