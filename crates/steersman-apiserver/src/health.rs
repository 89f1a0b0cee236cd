//! `/healthz`, `/livez` and `/readyz`: whether the server answers, reaches its store, can write to
//! it, and is not about to stop.
//!
//! Checks have the names that they have in Kubernetes, for those are what probes ask for and
//! exclude: `etcd` is the store, whatever it is. What a hook does after the start upstream is done
//! here before anything is served, so those checks only say that it is there. A few have nothing to do
//! here, such as that of peers' endpoints: they are listed because clients ask for them by name.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use steersman_store::StoreError;

use crate::read::list;
use crate::reply::ResponseBody;
use crate::request::Query;
use crate::state::Server;
use crate::status::{Result, Status};

/// How long the store may take to answer before it counts as gone.
const STORE_TIME: Duration = Duration::from_secs(2);

/// What `/readyz` looks at besides [`HOOKS`]. A server that is about to stop, or whose store is
/// full, lives, but wants no more requests.
const READY: &[&str] = &["ping", "log", "etcd", "etcd-readiness", "informer-sync"];

/// What `/livez` and `/healthz` look at besides [`HOOKS`]. The server calls itself in process, by no
/// certificate that could expire.
const ALIVE: &[&str] = &["ping", "log", "loopback-serving-certificate", "etcd"];

/// What the server does before it serves, by the names of upstream's hooks.
const HOOKS: &[&str] = &[
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The checks of an endpoint, in upstream's order.
fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let ready = endpoint == "readyz";
    let first = if ready { READY } else { ALIVE };
    let last = ready.then_some("shutdown");
    first.iter().chain(HOOKS).copied().chain(last)
}

/// The paths of all checks, alone and together.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|endpoint| {
        let each = checks(endpoint).map(move |check| format!("/{endpoint}/{check}"));
        std::iter::once(format!("/{endpoint}")).chain(each)
    })
}

/// Answers a health path.
pub(crate) async fn answer(
    server: &Server,
    path: &[&str],
    query: &Query,
) -> Result<Response<ResponseBody>> {
    let endpoint = path.first().copied().unwrap_or_default();
    let (code, text) = if let [_] = path {
        all(server, endpoint, query).await
    } else {
        let name = path[1..].join("/");
        let known = checks(endpoint).find(|known| *known == name);
        match check(server, known.ok_or_else(Status::no_such_resource)?).await {
            Ok(()) => (StatusCode::OK, "ok".to_owned()),
            Err(why) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n"))
            }
        }
    };
    let mut response = Response::new(text.into_bytes().into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if path.len() == 1 || code != StatusCode::OK {
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    Ok(response)
}

/// Makes all checks but those that are excluded. What failed is listed even if nobody asks for a
/// list; why it failed is for the log alone, for anyone may ask.
async fn all(server: &Server, endpoint: &str, query: &Query) -> (StatusCode, String) {
    let mut excluded: BTreeSet<&str> = query.all("exclude").collect();
    let mut lines = String::new();
    let mut failed = false;
    for name in checks(endpoint) {
        if excluded.remove(name) {
            lines += &format!("[+]{name} excluded: ok\n");
            continue;
        }
        match check(server, name).await {
            Ok(()) => lines += &format!("[+]{name} ok\n"),
            Err(why) => {
                tracing::warn!(check = name, why, "health check failed");
                failed = true;
                lines += &format!("[-]{name} failed: reason withheld\n");
            }
        }
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
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
        "etcd" => store(server).await,
        "etcd-readiness" => server.store.health().map_err(|error| error.to_string()),
        "shutdown" if server.is_stopping() => Err("process is shutting down".to_owned()),
        _ => Ok(()),
    }
}

/// Whether the store answers and takes writes. Reads alone do not tell: they go on when a disk has
/// failed. One that is merely full takes deletions, and a new start would not help it.
pub(crate) async fn store(server: &Server) -> Result<(), String> {
    match server.store.health() {
        Ok(()) | Err(StoreError::Full { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    let asked = list::current(server, false);
    match tokio::time::timeout(STORE_TIME, asked).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the store does not answer in time".to_owned()),
    }
}
