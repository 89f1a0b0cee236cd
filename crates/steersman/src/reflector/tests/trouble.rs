//! What goes wrong, and how it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;
use tracing_subscriber::layer::SubscriberExt;

use super::script::{
    Answer, AnswerBody, Reflection, Script, Then, bookmark, describe, event, list, object, status,
    watch,
};
use crate::delta_queue::{self, Mode};
use crate::reflector::{Delta, Options, Phase, Reflector, Selection};

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_pauses() {
    let failed = || Answer::new(500, &status(500, "InternalError"));
    let script = Script::new([failed(), failed(), failed(), list("5", &["a"], "")]);
    let start = Instant::now();
    assert_eq!(script.list().told(1).await, ["=a@5"]);
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_a_delay_is_left_alone_for_it() {
    let busy = Answer::new(429, &status(429, "TooManyRequests")).retry_after(20);
    let script = Script::new([list("5", &["a"], ""), busy, watch([bookmark("6")], Then::Hang)]);
    let start = Instant::now();
    let mut reflection = script.list();
    assert_eq!(reflection.told(2).await, ["=a@5", "#6"]);
    assert!(start.elapsed() >= Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(script.asked()[2].contains("resourceVersion=5"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_answers_is_given_up() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<AnswerBody>, tower::BoxError>>()
    });
    let reflection = Reflection::start(kube::Client::new(silent, "default"), Options::default());
    let failing = |phase: &Phase| matches!(phase, Phase::BackingOff { .. });
    let start = Instant::now();
    let phase = reflection.status.reached(failing).await;
    assert!(matches!(phase, Phase::BackingOff { error, .. } if &*error == "no answer"));
    assert!(start.elapsed() < Duration::from_secs(70));
}

/// kube's own client repeats requests that are answered 504, as an unknown version is.
#[tokio::test(start_paused = true)]
async fn an_unknown_version_that_the_client_hides_by_repeating_is_given_up() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::End),
        Answer::never(),
        Answer::never(),
        list("2", &["b"], ""),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "#6", "=b@2"]);
    let asked = script.asked();
    assert!(asked[3].contains("resourceVersion=6"), "{asked:?}");
    assert!(!asked[4].contains("resourceVersion"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_nobody_listens() {
    let script = Script::new([list("5", &["a"], "")]);
    let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: 16 });
    let reflector: Reflector<_> = Reflector::<crate::reflector::Typed<ConfigMap>>::new(
        script.client(),
        &(),
        Selection::default(),
        send,
    );
    let status = reflector.status();
    let task = tokio::spawn(reflector.run());
    drop(deltas);
    task.await.unwrap();
    assert_eq!(status.phase(), Phase::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_does_not_take_stops_the_reading() {
    let events: Vec<String> =
        (6..1000).map(|n| event("ADDED", &object("b", &n.to_string()))).collect();
    let script = Script::new([list("5", &["a"], ""), watch(events, Then::Hang)]);
    let reflection = script.list();
    let quiet = tokio::time::timeout(Duration::from_secs(60), std::future::pending::<()>());
    assert!(quiet.await.is_err());
    assert_eq!(reflection.deltas.observer().stats().len, 16);
    assert!(reflection.status.counts().events <= 17, "{:?}", reflection.status.counts());
}

#[tokio::test(start_paused = true)]
async fn merged_deltas_lead_to_the_latest_state() {
    let (send, mut deltas) = delta_queue::channel(Mode::Coalescing { threshold: 0 });
    let events = [
        event("ADDED", &object("a", "6")),
        bookmark("7"),
        event("MODIFIED", &object("a", "8")),
        event("DELETED", &object("a", "9")),
        bookmark("10"),
    ];
    let script = Script::new([list("5", &["a"], ""), watch(events, Then::Hang)]);
    let reflector = Reflector::new(script.client(), &(), Selection::default(), send)
        .options(Options { streaming: false, ..Options::default() });
    let status = reflector.status();
    tokio::spawn(reflector.run());
    let quiet = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>());
    assert!(quiet.await.is_err());
    let told: Vec<String> =
        deltas.pop_batch(99).await.iter().map(|delta: &Delta<ConfigMap>| describe(delta)).collect();
    assert_eq!(told, ["=a@5", "-a", "#10"]);
    assert_eq!(status.counts().events, 5);
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        if *event.metadata().level() == tracing::Level::WARN {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_broken_for_long_is_warned_of_when_it_changes() {
    let warned = Arc::new(AtomicUsize::new(0));
    // While there is only one subscriber in the process, tracing asks that of whichever thread comes
    // to a place first whether anybody listens there: other tests' threads have none.
    let _another = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(Warnings(Arc::clone(&warned)));
    let _guard = tracing::subscriber::set_default(subscriber);
    let failed = |reason: &str| Answer::new(500, &status(500, reason));
    let answers = (0..20).map(|n| failed(if n < 10 { "InternalError" } else { "Broken" }));
    let script = Script::new(answers.chain([list("5", &["a"], "")]));
    script.list().told(1).await;
    assert_eq!(warned.load(Ordering::SeqCst), 2, "once for each trouble, not for each try");
}
