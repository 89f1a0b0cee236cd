//! A store that fails, lags behind, or does not say whether it wrote.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use steersman_store::StoreError;

use crate::api::{Api, CONFIG_MAPS, config_map, name, names, pod, seconds_pass, version};
use crate::faulty::Faulty;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn faulty() -> (Api, Faulty) {
    let store = Faulty::new();
    (Api::over(Arc::new(store.clone())).await, store)
}

fn gone() -> StoreError {
    StoreError::Unavailable { reason: "no member answers".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_is_a_503_to_try_again_and_the_health_says_so() {
    let (api, store) = faulty().await;
    api.config_map("a", &json!({})).await;
    store.fail(Some(gone()));
    let answer = api.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(answer.refused(503)["reason"], "ServiceUnavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.refused(503);
    for path in ["/readyz", "/livez", "/healthz"] {
        let answer = api.get(path).await;
        assert_eq!(answer.code, 500, "{path}");
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        assert!(text.contains("[-]etcd failed: reason withheld\n"), "{text}");
        assert!(text.ends_with(&format!("{} check failed\n", &path[1..])), "{text}");
        assert_eq!(api.get(&format!("{path}/etcd")).await.code, 500);
        assert_eq!(api.get(&format!("{path}/ping")).await.code, 200);
        assert_eq!(api.get(&format!("{path}?exclude=etcd")).await.bytes, "ok");
    }
    store.fail(None);
    assert_eq!(api.get("/readyz").await.bytes, "ok");
    assert_eq!(api.get("/readyz/etcd").await.bytes, "ok");
    let verbose = api.get("/livez?verbose&exclude=etcd&exclude=b&exclude=a&exclude=b").await;
    let text = String::from_utf8_lossy(&verbose.bytes).into_owned();
    let first = "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd excluded: ok\n";
    assert!(text.starts_with(first), "{text}");
    let warning = "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nlivez check passed\n";
    assert!(text.ends_with(warning), "{text}");
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_more_writes_is_read_and_the_health_says_so() {
    let (api, store) = faulty().await;
    api.config_map("a", &json!({})).await;
    store.break_down(Some(StoreError::Failed { reason: "the disk is gone".to_owned() }));
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.refused(500);
    for path in ["/readyz", "/livez", "/readyz/etcd"] {
        assert_eq!(api.get(path).await.code, 500, "{path}");
    }
    store.break_down(None);
    assert_eq!(api.get("/readyz").await.bytes, "ok");
}

#[tokio::test(start_paused = true)]
async fn a_full_store_lives_but_is_not_ready() {
    let (api, store) = faulty().await;
    store.break_down(Some(StoreError::Full { reason: "no room".to_owned() }));
    assert_eq!(api.get("/livez").await.code, 200);
    assert_eq!(api.get("/readyz/etcd").await.code, 200);
    let answer = api.get("/readyz").await;
    assert_eq!(answer.code, 500);
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert!(text.contains("[-]etcd-readiness failed: reason withheld\n"), "{text}");
    assert_eq!(api.get("/readyz/etcd-readiness").await.code, 500);
    store.break_down(None);
    assert_eq!(api.get("/readyz").await.bytes, "ok");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_is_alive_but_not_ready() {
    let api = Api::start().await;
    api.server.shutdown();
    assert_eq!(api.get("/livez").await.code, 200);
    let answer = api.get("/readyz").await;
    assert_eq!(answer.code, 500);
    assert!(String::from_utf8_lossy(&answer.bytes).contains("[-]shutdown failed"));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_need_the_latest_is_answered_without_the_store() {
    let (api, store) = faulty().await;
    let created = api.config_map("a", &json!({})).await;
    store.fail(Some(gone()));
    for query in ["resourceVersion=0".to_owned(), format!("resourceVersion={}", version(&created))]
    {
        let list = api.get(&format!("{CONFIG_MAPS}?{query}")).await.ok();
        assert_eq!(names(&list), ["a"]);
        assert_eq!(name(&api.get(&format!("{CONFIG_MAPS}/a?{query}")).await.ok()), "a");
    }
    api.get(CONFIG_MAPS).await.refused(503);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lags_behind_still_decides_by_the_latest() {
    let (api, store) = faulty().await;
    let old = api.config_map("a", &json!({"n": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    store.lag(true);
    let new = api.merge(&path, &json!({"data": {"n": "2"}})).await.ok();
    // Each of these begins with the old version, which is not what counts.
    assert_eq!(api.get(&format!("{path}?resourceVersion=0")).await.ok()["data"]["n"], "1");
    assert_eq!(api.get(&path).await.ok()["data"]["n"], "2");
    let same = api.merge(&path, &json!({"data": {"n": "2"}})).await.ok();
    assert_eq!(version(&same), version(&new), "nothing to write");
    let back = api.merge(&path, &json!({"data": {"n": "1"}})).await.ok();
    assert!(version(&back) > version(&new), "what is the same as the old is a change");
    let seen = format!("{path}?resourceVersion={}", version(&back));
    let fresh = api.get(&seen).await;
    assert!(fresh.code == 504 || fresh.ok()["data"]["n"] == "1");
    let mut stale = old.clone();
    stale["data"]["n"] = "3".into();
    api.put(&path, &stale).await.refused(409);
    let mut latest = back.clone();
    latest["data"]["n"] = "4".into();
    let put = api.put(&path, &latest).await.ok();
    assert_eq!(put["data"]["n"], "4");
    let wrong = json!({"preconditions": {"resourceVersion": version(&old).to_string()}});
    api.delete_with(&path, &wrong).await.refused(409);
    let right = json!({"preconditions": {"resourceVersion": version(&put).to_string()}});
    api.delete_with(&path, &right).await.ok();
    api.delete(&path).await.refused(404);
    api.merge(&path, &json!({})).await.refused(404);
    // What it has never heard of exists all the same.
    api.config_map("b", &json!({})).await;
    api.merge(&format!("{CONFIG_MAPS}/b"), &json!({"data": {"n": "1"}})).await.ok();
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "new"}})).await.ok();
    let elsewhere = "/api/v1/namespaces/new/configmaps";
    api.post(elsewhere, &config_map("c", &json!({}))).await.ok();
    api.delete(&format!("{CONFIG_MAPS}/b")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_another_server_has_told_is_there_for_a_server_that_lags_behind() {
    let (api, store) = faulty().await;
    store.lag(true);
    let mut last = Value::Null;
    for name in ["a", "b", "c"] {
        last = api.config_map(name, &json!({})).await;
    }
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&rest), ["c"]);
    let exact = format!("resourceVersion={}&resourceVersionMatch=Exact", version(&last));
    assert_eq!(names(&api.get(&format!("{CONFIG_MAPS}?{exact}")).await.ok()), ["a", "b", "c"]);
    // A revision that nobody has reached is not waited for in vain.
    let future = format!("{CONFIG_MAPS}?resourceVersion={}", version(&last) + 1000);
    assert_eq!(api.get(&future).await.refused(504)["reason"], "Timeout");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_not_done_again() {
    let (api, store) = faulty().await;
    store.forget_answer("/registry/configmaps/");
    let status = api.post(CONFIG_MAPS, &config_map("a", &json!({"n": "1"}))).await.refused(504);
    assert!(status["message"].as_str().unwrap().contains("may or may not have happened"));
    assert!(status["details"]["retryAfterSeconds"].is_null(), "{status}");
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(409);
    let path = format!("{CONFIG_MAPS}/a");
    let json_patch = json!([{"op": "add", "path": "/data/m", "value": "1"}]);
    for behind in [false, true] {
        store.lag(behind);
        let before = api.get(&path).await.ok();
        store.counts();
        store.forget_answer("/registry/configmaps/");
        api.patch(&path, "application/json-patch+json", &json_patch).await.refused(504);
        assert_eq!(store.counts()[2], 1, "written once");
        assert_eq!(version(&api.get(&path).await.ok()), version(&before) + 1);
        api.merge(&path, &json!({"data": {"m": null}})).await.ok();
    }
    store.lag(false);
    store.forget_answer("/registry/configmaps/");
    api.delete(&path).await.refused(504);
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_fate_is_unknown_keeps_what_was_taken_for_it() {
    let (api, store) = faulty().await;
    store.forget_answer("/registry/services/specs/");
    let service = |name: &str, port: i64| -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        })
    };
    api.post(SERVICES, &service("a", 30500)).await.refused(504);
    let written = api.get(&format!("{SERVICES}/a")).await.ok();
    let status = api.post(SERVICES, &service("b", 30500)).await.refused(422);
    assert!(status["message"].as_str().unwrap().contains("already allocated"), "{status}");
    let address = written["spec"]["clusterIP"].as_str().unwrap();
    api.get(&format!("/apis/networking.k8s.io/v1/ipaddresses/{address}")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_a_broken_write_left_behind_is_found_after_a_while() {
    let (api, store) = faulty().await;
    // The service was never written, but nobody knew, so its port stayed taken.
    store.forget_answer("/registry/services/specs/");
    let service = json!({
        "metadata": {"name": "a"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30500}]},
    });
    api.post(SERVICES, &service).await.refused(504);
    let address = api.get(&format!("{SERVICES}/a")).await.ok()["spec"]["clusterIP"].clone();
    let key = "/registry/services/specs/default/a";
    let delete = steersman_store::WriteRequest::delete(key, steersman_store::Expected::Any);
    api.store.write(delete).await.unwrap();
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{}", address.as_str().unwrap());
    seconds_pass(2 * 180 + 1).await;
    api.get(&path).await.refused(404);
    api.post(SERVICES, &service).await.refused(422);
    seconds_pass(180).await;
    api.post(SERVICES, &service).await.ok();
    // What is in use stays.
    seconds_pass(20 * 180).await;
    let mut other = service.clone();
    other["metadata"]["name"] = "b".into();
    api.post(SERVICES, &other).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_store_ends_ends_without_an_error_and_goes_on_elsewhere() {
    let (api, store) = faulty().await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=0");
    let mut events = api.watch(&path).await;
    let a = api.config_map("a", &json!({})).await;
    assert_eq!(events.brief().await, ("ADDED".to_owned(), "a".to_owned()));
    let b = api.config_map("b", &json!({})).await;
    store.fail(Some(gone()));
    assert_eq!(events.next().await, None);
    api.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&a))).await.refused(503);
    store.fail(None);
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&a));
    let mut events = api.watch(&path).await;
    assert_eq!(version(&events.next().await.unwrap()["object"]), version(&b));
}

#[tokio::test(start_paused = true)]
async fn objects_that_change_at_one_revision_are_all_told_to_everyone() {
    let (api, store) = faulty().await;
    let names: Vec<String> = (0..20).map(|n| format!("map-{n:02}")).collect();
    let large = "x".repeat(20_000);
    let path = format!("{CONFIG_MAPS}?watch=1");
    let (mut one, mut other) = (api.watch(&path).await, api.watch(&path).await);
    for name in &names {
        api.config_map(name, &json!({"large": large})).await;
    }
    store.together.store(true, Ordering::SeqCst);
    for events in [&mut one, &mut other] {
        let mut told = Vec::new();
        for _ in &names {
            told.push(events.brief().await.1);
        }
        assert_eq!(told, names);
    }
}

/// On a store that is shared, every read that is not stale asks over the network.
#[tokio::test(start_paused = true)]
async fn plain_requests_ask_the_store_no_more_than_they_must() {
    let (api, store) = faulty().await;
    let path = format!("{CONFIG_MAPS}/a");
    let [read, write, create] = [[1, 0, 0], [0, 1, 1], [0, 3, 1]];
    store.counts();
    api.config_map("a", &json!({})).await;
    assert_eq!(
        store.counts(),
        create,
        "create: its namespace before and after, its quotas, and the write"
    );
    api.get(&path).await.ok();
    assert_eq!(store.counts(), read, "get");
    api.get(&format!("{path}?resourceVersion=0")).await.ok();
    assert_eq!(store.counts(), [0, 2, 0], "get of whatever is known");
    api.merge(&path, &json!({"data": {"n": "1"}})).await.ok();
    assert_eq!(store.counts(), write, "patch");
    let mut object = api.get(&path).await.ok();
    object["data"]["n"] = "2".into();
    store.counts();
    let object = api.put(&path, &object).await.ok();
    assert_eq!(store.counts(), write, "update");
    api.put(&path, &object).await.ok();
    assert_eq!(store.counts(), [1, 1, 0], "update that changes nothing");
    api.get(CONFIG_MAPS).await.ok();
    assert_eq!(store.counts(), [1, 1, 0], "list, and how many there are, which says how much work");
    api.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await.ok();
    assert_eq!(store.counts(), [0, 2, 0], "list of whatever is known");
    api.delete(&path).await.ok();
    assert_eq!(store.counts(), write, "delete");
    api.post(PODS, &pod("p")).await.ok();
    let [reads, _, writes] = store.counts();
    assert_eq!([reads, writes], [0, 1], "create of a pod: plug-ins look at what is known");
}

#[tokio::test(start_paused = true)]
async fn a_put_creates_what_is_gone_although_the_server_has_not_heard() {
    let (api, store) = faulty().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    api.put(path, &lease).await.ok();
    store.lag(true);
    api.delete(path).await.ok();
    assert_eq!(api.put(path, &lease).await.ok()["spec"]["holderIdentity"], "me");
}
