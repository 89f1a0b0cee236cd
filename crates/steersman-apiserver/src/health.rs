//! `/healthz`, `/livez` and `/readyz`: whether the server answers, reaches its store, and is not
//! about to stop.
//!
//! The check of the store has the name that it has in Kubernetes, whatever the store is, for
//! that is what probes ask for and exclude.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};

use crate::read::list;
use crate::reply::ResponseBody;
use crate::request::Query;
use crate::state::Server;
use crate::status::{Result, Status};

/// How long the store may take to answer before it counts as gone.
const STORE_TIME: Duration = Duration::from_secs(2);

/// What `/readyz` looks at. A server that is about to stop lives, but wants no more requests.
const READY: &[&str] = &["ping", "log", "etcd", "shutdown"];

/// What `/livez` and `/healthz` look at.
const ALIVE: &[&str] = &["ping", "log", "etcd"];

/// The paths of all checks, alone and together.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    [("healthz", ALIVE), ("livez", ALIVE), ("readyz", READY)].into_iter().flat_map(
        |(endpoint, checks)| {
            let each = checks.iter().map(move |check| format!("/{endpoint}/{check}"));
            std::iter::once(format!("/{endpoint}")).chain(each)
        },
    )
}

/// Answers a health path.
pub(crate) async fn answer(
    server: &Server,
    path: &[&str],
    query: &Query,
) -> Result<Response<ResponseBody>> {
    let endpoint = path.first().copied().unwrap_or_default();
    let checks = if endpoint == "readyz" { READY } else { ALIVE };
    let (code, text) = match path {
        [_] => all(server, endpoint, checks, query).await,
        [_, name] if checks.contains(name) => match check(server, name).await {
            Ok(()) => (StatusCode::OK, "ok".to_owned()),
            Err(why) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n"))
            }
        },
        _ => return Err(Status::no_such_resource()),
    };
    let mut response = Response::new(text.into_bytes().into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(response)
}

/// Makes all checks but those that are excluded. What failed is listed even if nobody asks for a
/// list; why it failed is for the log alone, for anyone may ask.
async fn all(
    server: &Server,
    endpoint: &str,
    checks: &[&str],
    query: &Query,
) -> (StatusCode, String) {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut lines = String::new();
    let mut failed = false;
    for name in checks {
        if excluded.contains(name) {
            lines += &format!("[+]{name} excluded: ok\n");
            continue;
        }
        match check(server, name).await {
            Ok(()) => lines += &format!("[+]{name} ok\n"),
            Err(why) => {
                tracing::warn!(check = name, why, "a health check fails");
                failed = true;
                lines += &format!("[-]{name} failed: reason withheld\n");
            }
        }
    }
    match (failed, query.get("verbose")) {
        (true, _) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n"))
        }
        (false, Some(_)) => (StatusCode::OK, format!("{lines}{endpoint} check passed\n")),
        (false, None) => (StatusCode::OK, "ok".to_owned()),
    }
}

/// Makes one check; says what is wrong.
async fn check(server: &Server, name: &str) -> Result<(), String> {
    match name {
        "etcd" => {
            // Reads alone do not tell: they go on when a disk takes no more writes.
            server.store.health().map_err(|error| error.to_string())?;
            let asked = list::current(server, false);
            match tokio::time::timeout(STORE_TIME, asked).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the store does not answer in time".to_owned()),
            }
        }
        "shutdown" if server.shutdown.is_cancelled() => Err("process is shutting down".to_owned()),
        _ => Ok(()),
    }
}
