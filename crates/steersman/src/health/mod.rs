//! Health: named checks behind `/healthz`, `/livez` and `/readyz`, answered as Kubernetes does.
//!
//! `/healthz` and `/livez` tell whether a restart would help, `/readyz` whether the program can
//! do its work now. `?verbose` lists every check, `?exclude=name` leaves one out, and
//! `/readyz/name` is that check alone. Why a check failed is for the log: probes can be open to
//! everybody.

mod liveness;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use http::{HeaderValue, Request, Response, StatusCode, header};

use crate::error::{Error, Result, panic_text};
use crate::serve;

pub use liveness::Liveness;

/// How long a check may take: a probe does not wait much longer either.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// The checks of a program. Cheap to clone; all clones are the same checks.
#[derive(Clone)]
pub struct Health {
    live: Checks,
    ready: Checks,
}

impl Default for Health {
    /// Healthy and ready as long as it answers.
    fn default() -> Self {
        let health = Self { live: Checks::default(), ready: Checks::default() };
        health.health_check("ping", async || Ok(()));
        health.ready_check("ping", async || Ok(()));
        health
    }
}

impl Health {
    /// Adds a check to `/healthz`: it fails when a restart would help. One of that name is
    /// replaced.
    pub fn health_check<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.live.add(name.into(), Arc::new(move || check().boxed()));
    }

    /// Adds a check to `/readyz`: it fails while the program cannot do its work. One of that
    /// name is replaced.
    pub fn ready_check<F, Fut>(&self, name: impl Into<String>, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.ready.add(name.into(), Arc::new(move || check().boxed()));
    }

    /// Answers a request, if it asks for health.
    pub(crate) async fn answer(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let path = request.uri().path().trim_start_matches('/');
        let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
        let checks = match endpoint {
            "healthz" | "livez" => &self.live,
            "readyz" => &self.ready,
            _ => return None,
        };
        let mut response = match check.trim_end_matches('/') {
            "" => checks.all(endpoint, request.uri().query().unwrap_or_default()).await,
            check => checks.one(check).await,
        };
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(response)
    }
}

/// The checks of one endpoint, in the order in which they were added.
#[derive(Clone, Default)]
struct Checks(Arc<Mutex<Vec<(String, Check)>>>);

impl Checks {
    fn add(&self, name: String, check: Check) {
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = check,
            None => checks.push((name, check)),
        }
    }

    fn get(&self) -> Vec<(String, Check)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every check at once, as one answer.
    async fn all(&self, endpoint: &str, query: &str) -> Response<Bytes> {
        let checks = self.get();
        let excluded = excluded(query);
        let is_excluded = |name: &str| excluded.iter().any(|excluded| excluded == name);
        // All at once: a probe does not wait for the sum of their times.
        let results = join_all(checks.iter().map(async |(name, check)| {
            if is_excluded(name) { None } else { Some(passes(name, check).await) }
        }));
        let mut text = String::new();
        let mut passed = true;
        for ((name, _), result) in checks.iter().zip(results.await) {
            text += &match result {
                None => format!("[+]{name} excluded: ok\n"),
                Some(Ok(())) => format!("[+]{name} ok\n"),
                // Why stands in the log: probes can be open to everybody.
                Some(Err(_)) => format!("[-]{name} failed: reason withheld\n"),
            };
            passed &= !matches!(result, Some(Err(_)));
        }
        let unknown: Vec<String> = excluded
            .iter()
            .filter(|excluded| checks.iter().all(|(name, _)| name != *excluded))
            .map(|name| format!("{name:?}"))
            .collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            text +=
                &format!("warn: some health checks cannot be excluded: no matches for {unknown}\n");
        }
        match passed {
            true if !wants(query, "verbose") => serve::text(StatusCode::OK, "ok"),
            true => serve::text(StatusCode::OK, format!("{text}{endpoint} check passed\n")),
            false => serve::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{text}{endpoint} check failed\n"),
            ),
        }
    }

    /// One check, as one answer.
    async fn one(&self, wanted: &str) -> Response<Bytes> {
        match self.get().into_iter().find(|(name, _)| name == wanted) {
            None => serve::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            Some((name, check)) => match passes(&name, &check).await {
                Ok(()) => serve::text(StatusCode::OK, "ok"),
                Err(_) => serve::text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal server error: reason withheld\n",
                ),
            },
        }
    }
}

/// Whether a check passes. It may panic, and it may hang. Says why it does not.
async fn passes(name: &str, check: &Check) -> Result<()> {
    // The call itself is inside the future, so that its panics are caught as well.
    let called = AssertUnwindSafe(async { check().await }).catch_unwind();
    let result = match tokio::time::timeout(CHECK_TIMEOUT, called).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(Error::message(format!("panicked: {}", panic_text(&*panic)))),
        Err(_) => Err(Error::message(format!("takes longer than {CHECK_TIMEOUT:?}"))),
    };
    result.inspect_err(|error| tracing::warn!(check = name, %error, "health check failed"))
}

/// The names that a query wants to leave out.
fn excluded(query: &str) -> Vec<String> {
    let pairs = serve::query(query);
    pairs.into_iter().filter(|(key, _)| key == "exclude").map(|(_, value)| value).collect()
}

fn wants(query: &str, flag: &str) -> bool {
    serve::query(query).iter().any(|(key, _)| key == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(health: &Health, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Bytes::new()).unwrap();
        let response = health.answer(&request).await.unwrap();
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        (response.status().as_u16(), text)
    }

    #[tokio::test]
    async fn a_program_that_answers_is_healthy_and_ready() {
        let health = Health::default();
        for path in ["/healthz", "/livez", "/readyz", "/readyz/", "/readyz/ping"] {
            assert_eq!(get(&health, path).await, (200, "ok".into()), "{path}");
        }
        let verbose = get(&health, "/healthz?verbose").await;
        assert_eq!(verbose, (200, "[+]ping ok\nhealthz check passed\n".into()));
        assert_eq!(get(&health, "/healthz/what").await.0, 404);
    }

    #[tokio::test]
    async fn other_paths_are_none_of_its_business() {
        let request = Request::get("/healthzz").body(Bytes::new()).unwrap();
        assert!(Health::default().answer(&request).await.is_none());
    }

    #[tokio::test]
    async fn a_failing_check_is_named_but_its_reason_is_withheld() {
        let health = Health::default();
        health.ready_check("disk", async || Err(Error::message("secret")));
        let failed = "[+]ping ok\n[-]disk failed: reason withheld\nreadyz check failed\n";
        assert_eq!(get(&health, "/readyz").await, (500, failed.into()));
        assert_eq!(get(&health, "/healthz").await, (200, "ok".into()));
        let (code, alone) = get(&health, "/readyz/disk").await;
        assert!(code == 500 && !alone.contains("secret"), "{alone}");
    }

    #[tokio::test]
    async fn a_check_can_be_left_out() {
        let health = Health::default();
        health.ready_check("disk", async || Err(Error::message("full")));
        let (code, text) = get(&health, "/readyz?verbose&exclude=disk&exclude=tape").await;
        assert_eq!(code, 200);
        assert!(text.contains("[+]disk excluded: ok\n"), "{text}");
        assert!(text.contains("cannot be excluded: no matches for \"tape\"\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_may_panic_or_hang() {
        let health = Health::default();
        health.health_check("panics", async || panic!("boom"));
        health.health_check("panics before it begins", || -> BoxFuture<'static, Result<()>> {
            panic!("boom")
        });
        health.health_check("hangs", std::future::pending);
        let (code, text) = get(&health, "/healthz").await;
        assert_eq!((code, text.matches("[-]").count()), (500, 3), "{text}");
    }

    #[tokio::test]
    async fn a_check_of_the_same_name_is_replaced() {
        let health = Health::default();
        health.health_check("ping", async || Err(Error::message("no")));
        assert_eq!(get(&health, "/healthz?verbose").await.1.matches("ping").count(), 1);
    }
}
