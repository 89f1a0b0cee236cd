//! Writes that come at once are charged at once, and what is charged is settled whatever becomes of
//! the client or the store.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures::future::join_all;
use serde_json::{Value, json};
use steersman_store::Store;

use super::restless::Restless;
use super::{count, message, quota, used};
use crate::api::{Answer, Api, CONFIG_MAPS, config_map, names, seconds_pass};
use crate::faulty::Faulty;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

/// How often a quota is written while sixty-four write at once, of which fourteen do not fit.
async fn writes_of_a_burst(store: Arc<dyn Store>) -> usize {
    let api = Api::over(store).await;
    quota(&api, "q", json!({"configmaps": "50"})).await;
    let version = api.get(QUOTAS).await.ok()["metadata"]["resourceVersion"].clone();
    let writes = (0..64).map(|n| {
        let api = &api;
        async move { api.post(CONFIG_MAPS, &config_map(&format!("map-{n}"), &json!({}))).await }
    });
    let codes: Vec<u16> = join_all(writes).await.iter().map(|answer| answer.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 50);
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 14);
    assert_eq!(used(&api, "q").await, json!({"configmaps": "50"}));
    let version = version.as_str().unwrap();
    let mut watch = api.watch(&format!("{QUOTAS}?watch=1&resourceVersion={version}")).await;
    let mut written = 0;
    while let Ok(event) =
        tokio::time::timeout(std::time::Duration::from_secs(1), watch.next()).await
    {
        assert_eq!(event.unwrap()["type"], "MODIFIED");
        written += 1;
    }
    written
}

#[tokio::test(start_paused = true)]
async fn sixty_four_at_once_cost_a_quota_few_writes() {
    assert_eq!(writes_of_a_burst(Arc::new(Faulty::new())).await, 1);
    for seed in 0..8 {
        let written = writes_of_a_burst(Arc::new(Restless::new(seed))).await;
        assert!(written <= 8, "seed {seed}: {written} writes");
    }
}

/// Lets a request come so far; its answer, if that is to the end. Then it is dropped.
async fn so_far(polls: usize, request: impl Future<Output = Answer>) -> Option<Answer> {
    let mut request = pin!(request);
    for _ in 0..polls {
        if let Poll::Ready(answer) = futures::poll!(&mut request) {
            return Some(answer);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Goes away at every point of a request that creates an object; what is used must be what is there.
async fn go_away_everywhere(seed: u64, name: impl Fn(usize) -> String) -> usize {
    let api = Api::over(Arc::new(Restless::new(seed))).await;
    for name in ["a", "b"] {
        quota(&api, name, json!({"configmaps": "1k"})).await;
    }
    api.config_map("there", &json!({})).await;
    for polls in 0..1000 {
        let object = config_map(&name(polls), &json!({}));
        let answer = so_far(polls, api.post(CONFIG_MAPS, &object)).await;
        seconds_pass(60).await;
        let there = names(&api.get(CONFIG_MAPS).await.ok()).len().to_string();
        for name in ["a", "b"] {
            let expected = json!({"configmaps": there});
            assert_eq!(used(&api, name).await, expected, "seed {seed}, after {polls} polls");
        }
        if answer.is_some() {
            return polls;
        }
    }
    panic!("the request never ends");
}

#[tokio::test(start_paused = true)]
async fn a_client_may_go_away_at_any_point() {
    for seed in 0..2 {
        let polls = go_away_everywhere(seed, |n| format!("map-{n}")).await;
        assert!(polls > 4, "there are points to go away at");
        go_away_everywhere(seed, |_| "there".to_owned()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_ten_seconds_for_its_quotas_and_gives_back_what_comes_later() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "q", json!({"configmaps": "9"})).await;
    store.hold("/registry/resourcequotas/default/q");
    let start = tokio::time::Instant::now();
    let status = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
    assert_eq!(start.elapsed().as_secs(), 10);
    let why = "Internal error occurred: resource quota evaluation timed out";
    assert_eq!((message(&status), &status["reason"]), (why, &json!("InternalError")));
    store.held().await;
    store.release();
    seconds_pass(1).await;
    assert_eq!(used(&api, "q").await, json!({"configmaps": "0"}));
    api.config_map("a", &json!({})).await;
    assert_eq!(used(&api, "q").await, json!({"configmaps": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_does_not_answer_holds_nobody_up_for_long() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "q", json!({"configmaps": "9"})).await;
    api.config_map("there", &json!({})).await;
    store.hold("/registry/configmaps/default/there");
    let again = config_map("there", &json!({}));
    let meanwhile = async {
        store.held().await;
        api.config_map("other", &json!({})).await;
        store.deaf.store(true, Ordering::SeqCst);
        store.release();
    };
    let start = tokio::time::Instant::now();
    let (answer, ()) = tokio::join!(api.post(CONFIG_MAPS, &again), meanwhile);
    answer.refused(409);
    assert_eq!(start.elapsed().as_secs(), 5);
    // What could not be given back is left to the next count.
    assert_eq!(used(&api, "q").await, json!({"configmaps": "3"}));
}

/// A claim of so much storage.
fn claim(name: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    })
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_claim_is_charged_and_never_refused_for_what_it_says() {
    let api = Api::start().await;
    quota(&api, "q", json!({"requests.storage": "2Gi"})).await;
    api.post(CLAIMS, &claim("c", "2Gi")).await.ok();
    api.post(CLAIMS, &claim("d", "1Gi")).await.refused(403);
    let allocated = |size: &str| json!({"status": {"allocatedResources": {"storage": size}}});
    let path = format!("{CLAIMS}/c/status");
    api.merge(&path, &allocated("3Gi")).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.storage": "3Gi"}));
    api.merge(&path, &json!({"status": {"phase": "Bound"}})).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.storage": "3Gi"}));
    // As in Kubernetes, one that nobody has counted refuses it all the same.
    let hard = json!({"requests.storage": "2Gi", "persistentvolumeclaims": "1"});
    count(&api, "q", hard, json!({"requests.storage": "3Gi"})).await;
    let status = api.merge(&path, &allocated("4Gi")).await.refused(403);
    let why = "persistentvolumeclaims \"c\" is forbidden: status unknown for quota: q, resources: \
               persistentvolumeclaims,requests.storage";
    assert_eq!(message(&status), why);
}
