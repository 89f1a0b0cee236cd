//! Long work, off the threads that serve others.
//!
//! What is read, merged, checked or written of a large object or a long list takes milliseconds, in
//! which a worker of the runtime would serve nobody else. Such work is done here: each time it goes
//! on, its thread lends its other tasks to another one, and only so many do so at once that a
//! core is left for everybody else. While it waits for something it holds no place.
//!
//! What is long is known by size, or by what it [took before](Pace). Long work [breathes](breath)
//! where it can be given up.
//!
//! A runtime of one thread, as tests on virtual time have it, does everything in its turn.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;
use std::time::Duration;

use steersman_rules::abandoned::is_abandoned;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;

/// A body, or a stored object that is changed, of more bytes than this is long work: five thousand
/// empty containers, which are filled in and checked one by one, have as many.
pub(crate) const LONG_BYTES: usize = 16 * 1024;

/// A body that is not JSON is read much more slowly.
pub(crate) const LONG_BYTES_YAML: usize = 4 * 1024;

/// A list of more objects than this is long work.
pub(crate) const LONG_LIST: u64 = 1000;

/// A list of more bytes than this is long work.
pub(crate) const LONG_LIST_BYTES: u64 = 1 << 20;

/// How many objects of a list are looked at in one go.
pub(crate) const TURN: usize = 1000;

/// How many bytes of a list are looked at in one go.
pub(crate) const TURN_BYTES: usize = 1 << 20;

/// What keeps a thread for longer than this is long work.
const LONG: Duration = Duration::from_millis(5);

/// Work that has not gone on for so long does not breathe yet: another turn costs more.
const BREATH: Duration = Duration::from_millis(1);

thread_local! {
    /// Whether this thread is doing long work, and since when it does: what is begun within is
    /// part of it.
    static WITHIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The places for long work.
#[derive(Debug)]
pub(crate) struct Apart {
    places: Arc<Semaphore>,
    /// How often work went on apart.
    turns: AtomicU64,
}

impl Default for Apart {
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::with_places(cores.saturating_sub(1).max(1))
    }
}

impl Apart {
    fn with_places(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), turns: AtomicU64::new(0) }
    }

    /// Does work, apart if it is long, and says how long it kept a thread at once, at most.
    pub(crate) async fn run<F: Future>(
        &self,
        is_long: bool,
        mut work: Pin<&mut F>,
    ) -> (F::Output, Duration) {
        let mut places = self.places(is_long);
        let mut longest = Duration::ZERO;
        let mut timed = |context: &mut Context<'_>| {
            let began = Instant::now();
            let polled = work.as_mut().poll(context);
            longest = longest.max(began.elapsed());
            polled
        };
        let output = poll_fn(|context| match &mut places {
            Some(places) => self.go_on(places, &mut timed, context),
            None => timed(context),
        })
        .await;
        (output, longest)
    }

    /// Whether work is done apart, if it is long.
    pub(crate) fn is_apart(&self, is_long: bool) -> bool {
        WITHIN.get().is_none() && self.places(is_long).is_some()
    }

    /// Where to wait for a place, if work is done apart at all.
    fn places(&self, is_long: bool) -> Option<PollSemaphore> {
        let several = || {
            Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
        };
        (is_long && several()).then(|| PollSemaphore::new(Arc::clone(&self.places)))
    }

    fn go_on<T>(
        &self,
        places: &mut PollSemaphore,
        work: &mut impl FnMut(&mut Context<'_>) -> Poll<T>,
        context: &mut Context<'_>,
    ) -> Poll<T> {
        if WITHIN.get().is_some() {
            return work(context);
        }
        let _place = ready!(places.poll_acquire(context));
        self.turns.fetch_add(1, Ordering::Relaxed);
        tokio::task::block_in_place(|| {
            let _within = Within::begin();
            work(context)
        })
    }

    #[cfg(test)]
    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

/// Lets long work be given up here, and others take its place meanwhile.
pub(crate) async fn breath() {
    // Work that was given up has left something out, of which nothing may follow.
    if WITHIN.get().is_some_and(|since| since.elapsed() > BREATH || is_abandoned()) {
        tokio::task::yield_now().await;
    }
}

/// How long one sort of work keeps a thread, as learned from what was done before: the last time, or
/// a time before that, of which a quarter is forgotten each time.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The version of what is worked by, such as a schema; another one is another work.
    version: AtomicU64,
    /// In microseconds, and one more; zero if nothing is known.
    micros: AtomicU64,
}

impl Pace {
    /// Whether it is long work by a version; unknown, if nothing was done by it.
    pub(crate) fn is_long(&self, version: u64) -> Option<bool> {
        let micros = self.micros.load(Ordering::Relaxed);
        let known = micros > 0 && self.version.load(Ordering::Relaxed) == version;
        known.then(|| u128::from(micros) > LONG.as_micros())
    }

    /// It took so long.
    pub(crate) fn took(&self, version: u64, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 1).saturating_add(1);
        let before = match self.version.swap(version, Ordering::Relaxed) == version {
            true => self.micros.load(Ordering::Relaxed),
            false => 0,
        };
        self.micros.store(micros.max(before - before / 4), Ordering::Relaxed);
    }
}

/// Says that this thread does long work, until dropped.
struct Within;

impl Within {
    fn begin() -> Self {
        WITHIN.set(Some(Instant::now()));
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::{Method, Request, header};
    use http_body_util::{BodyExt, Full};
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use steersman_store::memory::MemoryStore;
    use tower::ServiceExt;

    use super::{Apart, LONG, LONG_BYTES, Pace, TURN, WITHIN};
    use crate::{ApiServer, Config};

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_more_work_is_done_apart_than_there_are_places() {
        let apart = Arc::new(Apart::with_places(2));
        let busy = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let (apart, busy) = (apart.clone(), busy.clone());
            tasks.spawn(async move {
                let work = pin!(async {
                    for _ in 0..10 {
                        assert!(WITHIN.get().is_some());
                        let now = busy.0.fetch_add(1, Ordering::SeqCst) + 1;
                        busy.1.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        busy.0.fetch_sub(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                    }
                });
                apart.run(true, work).await;
                assert!(WITHIN.get().is_none());
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        assert!(busy.1.load(Ordering::SeqCst) <= 2);
        assert_eq!(apart.turns(), 16 * 11);
        assert_eq!(apart.places.available_permits(), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_within_work_needs_no_place_of_its_own() {
        let apart = Apart::with_places(1);
        let inner = async {
            let inner = pin!(async { 7 });
            apart.run(true, inner).await.0
        };
        assert_eq!(apart.run(true, pin!(inner)).await.0, 7);
        assert_eq!(apart.turns(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_waits_holds_no_place() {
        let apart = Apart::with_places(1);
        let (tell, told) = tokio::sync::oneshot::channel();
        let waiting = pin!(async { told.await.unwrap() });
        let telling = pin!(async { tell.send(5).unwrap() });
        let both = futures::future::join(apart.run(true, waiting), apart.run(true, telling));
        assert_eq!(both.await.0.0, 5);
    }

    /// Sends a request, and says how often its work went on apart.
    async fn turns(api: &ApiServer, method: Method, path: &str, body: Value) -> u64 {
        let before = api.server().apart.turns();
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::CONTENT_TYPE, content_type);
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = api.clone().oneshot(request).await.unwrap();
        assert!(response.status().is_success(), "{path}: {response:?}");
        response.into_body().collect().await.unwrap();
        api.server().apart.turns() - before
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn large_bodies_large_objects_and_long_lists_are_worked_on_apart() {
        let store = Arc::new(MemoryStore::new());
        let config = Config::new(store, Arc::new(|| Timestamp::UNIX_EPOCH));
        let api = ApiServer::start(config).await.unwrap();
        let path = "/api/v1/namespaces/default/configmaps";
        let object = |name: &str, size: usize| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                "data": {"text": "x".repeat(size)},
            })
        };
        assert_eq!(turns(&api, Method::POST, path, object("small", 10)).await, 0);
        assert_eq!(turns(&api, Method::GET, path, Value::Null).await, 0);
        assert!(turns(&api, Method::POST, path, object("large", 2 * LONG_BYTES)).await > 0);
        let patch = json!({"data": {"more": "yes"}});
        let large = format!("{path}/large");
        assert!(turns(&api, Method::PATCH, &large, patch.clone()).await > 0);
        let small = format!("{path}/small");
        assert_eq!(turns(&api, Method::PATCH, &small, patch).await, 0);
        for number in 0..2 * TURN {
            let new = object(&format!("n-{number}"), 10);
            assert_eq!(turns(&api, Method::POST, path, new).await, 0);
        }
        assert!(turns(&api, Method::GET, path, Value::Null).await > 0);
        let read = format!("{path}?labelSelector=!absent");
        assert!(turns(&api, Method::GET, &read, Value::Null).await > 2);
        let first = format!("{path}?limit=10");
        assert_eq!(turns(&api, Method::GET, &first, Value::Null).await, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_writes_definitions_and_first_objects_does_so_apart() {
        let store = Arc::new(MemoryStore::new());
        let config = Config::new(store, Arc::new(|| Timestamp::UNIX_EPOCH));
        let api = ApiServer::start(config).await.unwrap();
        let definition = |plural: &str, pattern: &str, rule: &str| {
            let schema = json!({"type": "object", "properties": {"spec": {
                "type": "string", "maxLength": 9, "pattern": pattern,
                "x-kubernetes-validations": [{"rule": rule}],
            }}});
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.b.test")},
                "spec": {
                    "group": "b.test", "scope": "Cluster",
                    "names": {"plural": plural, "kind": plural.to_uppercase()},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": schema},
                    }],
                },
            })
        };
        let object = |name: &str| {
            json!({
                "apiVersion": "b.test/v1", "kind": "AS", "metadata": {"name": name}, "spec": "a",
            })
        };
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let copying = "optional.of(self).optMap(it, it).hasValue()";
        let long = [("bs", "a", copying), ("cs", "a{9}", "true"), ("ds", r"\pL", "true")];
        for (plural, pattern, rule) in long {
            let definition = definition(plural, pattern, rule);
            assert!(turns(&api, Method::POST, definitions, definition).await > 0, "{plural}");
        }
        // The server follows definitions apart, and may do so before it has served what it wrote itself.
        let mut fewest = u64::MAX;
        for plural in ["as", "es", "fs", "gs"] {
            let plain = definition(plural, "a", "self != 'b'");
            fewest = fewest.min(turns(&api, Method::POST, definitions, plain).await);
        }
        assert_eq!(fewest, 0, "it takes no time");
        let patch = json!({"metadata": {"labels": {"a": "b"}}});
        let one = format!("{definitions}/as.b.test");
        assert!(turns(&api, Method::PATCH, &one, patch).await > 0);
        let objects = "/apis/b.test/v1/as";
        assert!(turns(&api, Method::POST, objects, object("one")).await > 0);
        let mut apart = 0;
        for number in 0..100 {
            apart += turns(&api, Method::POST, objects, object(&format!("n-{number}"))).await;
        }
        assert!(apart < 100, "{apart}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_writes_policies_and_the_first_objects_under_them_does_so_apart() {
        let store = Arc::new(MemoryStore::new());
        let config = Config::new(store, Arc::new(|| Timestamp::UNIX_EPOCH));
        let api = ApiServer::start(config).await.unwrap();
        let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic";
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "p"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["*"], "operations": ["*"],
                    "resources": ["configmaps"],
                }]},
                "validations": [{"expression": "true"}],
            },
        });
        assert!(turns(&api, Method::POST, &format!("{policies}ies"), policy).await > 0);
        let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let path = "/api/v1/namespaces/default";
        let maps = format!("{path}/configmaps");
        assert_eq!(turns(&api, Method::POST, &maps, object("ConfigMap", "unbound")).await, 0);
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"},
            "spec": {"policyName": "p", "validationActions": ["Deny"]},
        });
        turns(&api, Method::POST, &format!("{policies}ybindings"), binding).await;
        assert!(turns(&api, Method::POST, &maps, object("ConfigMap", "first")).await > 0);
        let mut apart = 0;
        for number in 0..100 {
            let new = object("ConfigMap", &format!("n-{number}"));
            apart += turns(&api, Method::POST, &maps, new).await;
        }
        assert!(apart < 100, "{apart}");
        let secrets = format!("{path}/secrets");
        assert_eq!(turns(&api, Method::POST, &secrets, object("Secret", "other")).await, 0);
    }

    #[test]
    fn what_took_long_is_long_work_for_a_while_and_a_new_version_is_unknown() {
        let pace = Pace::default();
        assert_eq!(pace.is_long(1), None);
        pace.took(1, LONG / 2);
        assert_eq!(pace.is_long(1), Some(false));
        assert_eq!(pace.is_long(2), None);
        pace.took(1, 2 * LONG);
        pace.took(1, LONG / 2);
        assert_eq!(pace.is_long(1), Some(true));
        for _ in 0..4 {
            pace.took(1, LONG / 2);
        }
        assert_eq!(pace.is_long(1), Some(false));
        pace.took(1, std::time::Duration::MAX);
        pace.took(2, LONG / 2);
        assert_eq!((pace.is_long(1), pace.is_long(2)), (None, Some(false)));
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_does_everything_itself() {
        let apart = Apart::with_places(1);
        assert!(apart.run(true, pin!(async { WITHIN.get() })).await.0.is_none());
        assert_eq!(apart.turns(), 0);
        let many = Apart::default();
        assert!(many.places.available_permits() >= 1);
        assert_eq!(many.run(false, pin!(async { 1 })).await.0, 1);
    }
}
