//! `/healthz`, `/livez` and `/readyz`: a server that answers is alive and ready.

use http::{HeaderValue, Response, header};

use crate::reply::ResponseBody;
use crate::request::Query;
use crate::status::{Result, Status};

/// The checks that a verbose answer lists; the store is in this process.
const CHECKS: &[&str] = &["ping", "log", "etcd"];

/// Answers a health path.
pub(crate) fn answer(path: &[&str], query: &Query) -> Result<Response<ResponseBody>> {
    let text = match path {
        [_, check] if CHECKS.contains(check) => "ok".to_owned(),
        [endpoint] if query.get("verbose").is_some() => verbose(endpoint, query),
        [_] => "ok".to_owned(),
        _ => return Err(Status::no_such_resource()),
    };
    let mut response = Response::new(text.into_bytes().into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(response)
}

fn verbose(endpoint: &str, query: &Query) -> String {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let checks = CHECKS.iter().map(|check| {
        if excluded.contains(check) {
            format!("[+]{check} excluded: ok\n")
        } else {
            format!("[+]{check} ok\n")
        }
    });
    checks.collect::<String>() + endpoint + " check passed\n"
}
