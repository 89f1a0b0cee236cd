//! `ImagePolicyWebhook`: whether images may be run is up to somebody elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::Response;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config, WebhookHandler};
use steersman_store::memory::MemoryStore;

use super::configuration::told;
use super::{PODS, selection, why};
use crate::api::{Api, clock, pod};
use crate::webhooks::json_handler;

const ORIGIN: &str = "https://images.test";

const KUBECONFIG: &str = "
clusters:
- name: images
  cluster: {server: 'https://images.test/review'}
contexts:
- name: images
  context: {cluster: images}
current-context: images
";

/// A server that asks about images, with settings that are its own.
async fn asking(name: &str, settings: &str) -> Api {
    let folder = std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("images.conf");
    std::fs::write(&file, KUBECONFIG).unwrap();
    let file = file.display();
    let settings = format!("    imagePolicy: {{kubeConfigFile: '{file}', {settings}}}");
    let selection = selection(&["ImagePolicyWebhook"], &[]);
    let selection = selection.configured(told("ImagePolicyWebhook", &settings)).unwrap();
    let api = Api::with_plugins(selection).await;
    std::fs::remove_dir_all(&folder).unwrap();
    api
}

/// A pod of one image.
fn running(name: &str, image: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["image"] = image.into();
    pod["metadata"]["annotations"] =
        json!({"my.image-policy.k8s.io/ticket": "7", "example.com/other": "x"});
    pod
}

#[tokio::test(start_paused = true)]
async fn images_run_if_somebody_elsewhere_consents() {
    let api = asking("images", "allowTTL: 10").await;
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&asked);
    let handler = json_handler(move |review| {
        log.lock().unwrap().push(review.clone());
        let status = match review["spec"]["containers"][0]["image"].as_str() {
            Some("bad") => json!({"allowed": false, "reason": "it is old"}),
            Some("worse") => json!({"allowed": false}),
            _ => json!({"allowed": true}),
        };
        json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "status": status})
    });
    api.server.serve_webhooks(ORIGIN, handler);
    api.post(PODS, &running("a", "good")).await.ok();
    let question = json!({
        "apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "metadata": {},
        "spec": {
            "containers": [{"image": "good"}], "namespace": "default",
            "annotations": {"my.image-policy.k8s.io/ticket": "7"},
        },
        "status": {"allowed": false},
    });
    assert_eq!(asked.lock().unwrap()[..], [question]);
    api.post(PODS, &running("b", "good")).await.ok();
    assert_eq!(asked.lock().unwrap().len(), 1, "it is remembered");
    tokio::time::advance(Duration::from_secs(10)).await;
    api.post(PODS, &running("c", "good")).await.ok();
    assert_eq!(asked.lock().unwrap().len(), 2);
    for (image, expected) in [
        ("bad", "image policy webhook backend denied one or more images: it is old"),
        ("worse", "one or more images rejected by webhook backend"),
    ] {
        let refused = api.post(PODS, &running("d", image)).await.refused(403);
        assert_eq!(why(&refused), format!("pods \"d\" is forbidden: {expected}"));
    }
}

#[tokio::test(start_paused = true)]
async fn images_that_nobody_can_be_asked_about_run_if_the_configuration_says_so() {
    for (allow, code) in [("true", 201), ("false", 403)] {
        let api = asking(&format!("images-{allow}"), &format!("defaultAllow: {allow}")).await;
        let down = || Response::builder().status(502).body(Bytes::new()).unwrap();
        let handler: WebhookHandler = Arc::new(move |_| async move { down() }.boxed());
        api.server.serve_webhooks(ORIGIN, handler);
        assert_eq!(api.post(PODS, &running("a", "any")).await.code, code, "{allow}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_server_runs_without_whoever_is_to_judge_images() {
    let mut config = Config::new(Arc::new(MemoryStore::new()), clock());
    config.admission = selection(&["ImagePolicyWebhook"], &[]);
    let refused = ApiServer::start(config).await.unwrap_err();
    assert!(refused.message.ends_with("\"ImagePolicyWebhook\": no config specified"), "{refused}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let selection = || selection(&["ImagePolicyWebhook"], &[]);
    let without = selection().configured(Default::default()).unwrap_err().to_string();
    assert!(without.ends_with("no config specified"), "{without}");
    for (settings, expected) in [
        ("allowTTL: 1801", "valid value is between 1s and 30m0s, got 30m1s"),
        ("denyTTL: -2", "valid value is between 1s and 30m0s, got -2s"),
        ("retryBackoff: 300001", "valid value is between 1ns and 5m0s, got 5m0.001s"),
        ("kubeConfigFile: /nowhere/at-all", "cannot read /nowhere/at-all"),
    ] {
        let told = told("ImagePolicyWebhook", &format!("    imagePolicy: {{{settings}}}"));
        let refused = selection().configured(told).unwrap_err().to_string();
        assert!(refused.ends_with(expected), "{refused}");
    }
}
