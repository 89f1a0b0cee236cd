//! Where events go: a log file, and a webhook that may be slow or gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use steersman_apiserver::WebhookHandler;
use steersman_apiserver::audit::{Auditing, LogSettings, WebhookEndpoint, WebhookSettings};

use super::policy;
use crate::api::{Api, seconds_pass};

const ORIGIN: &str = "https://audit.test";

async fn metrics(api: &Api) -> String {
    String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_log_has_a_line_for_each_event() {
    let folder = std::env::temp_dir().join(format!("steersman-audit-{}", std::process::id()));
    let path = folder.join("audit.log");
    let api = Api::start().await;
    let rules = policy("- {level: Metadata, omitStages: [RequestReceived]}");
    api.server.audit(Auditing::new(rules).log(LogSettings::to(&path)).unwrap());
    for _ in 0..100 {
        api.get("/version").await.ok();
    }
    // Whoever stops the server waits until everything is written.
    drop(api);
    let lines = loop {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.lines().count() == 100 {
            break text;
        }
        tokio::task::yield_now().await;
    };
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(line.starts_with(r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"#));
        assert_eq!(event["requestURI"], "/version");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_full_disk_loses_events_and_counts_them_and_stops_nobody() {
    let api = Api::start().await;
    let rules = policy("- {level: Metadata, omitStages: [RequestReceived], verbs: [list]}");
    api.server.audit(Auditing::new(rules).log(LogSettings::to("/dev/full")).unwrap());
    for _ in 0..3 {
        api.get("/api/v1/pods").await.ok();
    }
    let line = "apiserver_audit_error_total{plugin=\"log\"} 3\n";
    while !metrics(&api).await.contains(line) {
        tokio::task::yield_now().await;
    }
    api.get("/api/v1/pods").await.ok();
}

/// What a webhook was sent, and whether it takes it.
#[derive(Clone, Default)]
struct Receiver {
    lists: Arc<Mutex<Vec<Value>>>,
    is_down: Arc<AtomicBool>,
}

impl Receiver {
    fn handler(&self) -> WebhookHandler {
        let receiver = self.clone();
        Arc::new(move |request: Request<Bytes>| {
            let list = serde_json::from_slice(request.body()).unwrap();
            receiver.lists.lock().unwrap().push(list);
            let mut response = Response::new(Bytes::new());
            if receiver.is_down.load(Ordering::Relaxed) {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            async move { response }.boxed()
        })
    }

    /// How many events each list had.
    fn sizes(&self) -> Vec<usize> {
        let lists = self.lists.lock().unwrap();
        lists.iter().map(|list| list["items"].as_array().unwrap().len()).collect()
    }
}

async fn with_webhook(settle: impl FnOnce(&mut WebhookSettings)) -> (Api, Receiver) {
    let api = Api::start().await;
    let receiver = Receiver::default();
    api.server.serve_webhooks(ORIGIN, receiver.handler());
    let mut settings = WebhookSettings::to(WebhookEndpoint::at(&format!("{ORIGIN}/events")));
    settle(&mut settings);
    let rules = policy("- {level: Metadata, omitStages: [RequestReceived], verbs: [list]}");
    api.server.audit(Auditing::new(rules).webhook(settings));
    (api, receiver)
}

async fn lists(api: &Api, number: usize) {
    for _ in 0..number {
        api.get("/api/v1/pods").await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_sent_when_it_is_full_or_has_waited() {
    let (api, receiver) = with_webhook(|settings| settings.batch_max_size = 4).await;
    lists(&api, 6).await;
    seconds_pass(1).await;
    assert_eq!(receiver.sizes(), [4]);
    seconds_pass(30).await;
    assert_eq!(receiver.sizes(), [4, 2]);
    let list = receiver.lists.lock().unwrap()[0].clone();
    assert_eq!(list["kind"], "EventList");
    assert_eq!(list["apiVersion"], "audit.k8s.io/v1");
    assert_eq!(list["items"][0]["requestURI"], "/api/v1/pods");
    assert_eq!(list["items"][0]["kind"], Value::Null);
    assert_eq!(list["metadata"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_not_taken_is_sent_again_later_and_later_then_counted() {
    let (api, receiver) = with_webhook(|settings| {
        settings.batch_max_size = 2;
        settings.initial_backoff = Duration::from_secs(10);
    })
    .await;
    receiver.is_down.store(true, Ordering::Relaxed);
    lists(&api, 2).await;
    for (seconds, attempts) in [(1, 1), (10, 2), (14, 2), (2, 3)] {
        seconds_pass(seconds).await;
        assert_eq!(receiver.sizes().len(), attempts);
    }
    receiver.is_down.store(false, Ordering::Relaxed);
    seconds_pass(60).await;
    assert_eq!(receiver.sizes().len(), 4);
    assert!(metrics(&api).await.contains("apiserver_audit_error_total{plugin=\"webhook\"} 0\n"));
    receiver.is_down.store(true, Ordering::Relaxed);
    lists(&api, 2).await;
    seconds_pass(200).await;
    assert_eq!(receiver.sizes().len(), 4 + 5);
    assert!(metrics(&api).await.contains("apiserver_audit_error_total{plugin=\"webhook\"} 2\n"));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_lost_and_counted() {
    let (api, receiver) = with_webhook(|settings| settings.buffer_size = 3).await;
    // Nobody takes them out meanwhile, for nothing here waits.
    lists(&api, 5).await;
    let counted = metrics(&api).await;
    let lost =
        counted.lines().find(|line| line.starts_with("apiserver_audit_error_total{plugin=\"web"));
    let lost: usize = lost.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    seconds_pass(31).await;
    assert_eq!(receiver.sizes().iter().sum::<usize>() + lost, 5);
}

#[tokio::test(start_paused = true)]
async fn no_more_batches_are_sent_than_are_allowed() {
    let (api, receiver) = with_webhook(|settings| {
        settings.batch_max_size = 1;
        settings.throttle_qps = 0.5;
        settings.throttle_burst = 2;
    })
    .await;
    lists(&api, 5).await;
    for (seconds, sent) in [(1, 2), (2, 3), (2, 4), (2, 5)] {
        seconds_pass(seconds).await;
        assert_eq!(receiver.sizes().len(), sent);
    }
}
