//! `EventRateLimit`: Events of which there are too many.

use serde_json::{Value, json};

use super::configuration::told;
use super::{selection, why};
use crate::api::{Api, seconds_pass};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const ELSEWHERE: &str = "/api/v1/namespaces/kube-public/events";

/// A server with these limits.
async fn with(limits: &str) -> Api {
    let configuration = format!(
        "    apiVersion: eventratelimit.admission.k8s.io/v1alpha1\n    kind: Configuration\n    \
         limits: [{limits}]"
    );
    let selection = selection(&["EventRateLimit"], &[]);
    let selection = selection.configured(told("EventRateLimit", &configuration)).unwrap();
    Api::with_plugins(selection).await
}

fn event(namespace: &str, name: &str, pod: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "v1"},
        "source": {"component": "kubelet", "host": "node-0"}, "reason": "r", "message": "m",
    })
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_so_many_at_once_and_then_so_many_a_second() {
    let api = with("{type: Namespace, qps: 2, burst: 3}").await;
    for name in ["a", "b", "c"] {
        api.post(EVENTS, &event("default", name, "p")).await.ok();
    }
    let refused = api.post(EVENTS, &event("default", "d", "p")).await.refused(429);
    let text = "Too many requests: limit reached on type Namespace for key default";
    assert_eq!((why(&refused), &refused["reason"]), (text, &json!("TooManyRequests")));
    api.post(&format!("{EVENTS}?dryRun=All"), &event("default", "d", "p")).await.ok();
    api.post(ELSEWHERE, &event("kube-public", "a", "p")).await.ok();
    seconds_pass(1).await;
    for name in ["d", "e"] {
        api.post(EVENTS, &event("default", name, "p")).await.ok();
    }
    api.merge(&format!("{EVENTS}/e"), &json!({"count": 2})).await.refused(429);
    api.delete(&format!("{EVENTS}/e")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn all_limits_that_are_reached_are_told_and_the_oldest_keys_forgotten() {
    let api = with(
        "{type: SourceAndObject, qps: 1, burst: 1, cacheSize: 1}, {type: User, qps: 1, burst: 3}",
    )
    .await;
    let post = async |name: &str, pod: &str| api.post(EVENTS, &event("default", name, pod)).await;
    post("a", "p").await.ok();
    post("b", "q").await.ok();
    post("c", "p").await.ok();
    let refused = post("d", "p").await.refused(429);
    let text = "Too many requests: [limit reached on type SourceAndObject for key \
                kubeletnode-0Poddefaultpv1, limit reached on type User for key system:admin]";
    assert_eq!(why(&refused), text);
}
