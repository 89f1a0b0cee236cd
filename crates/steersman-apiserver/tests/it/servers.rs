//! Two servers over one store: what is written through one, the other follows.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_store::{Expected, RangeRequest, Store, WriteRequest};

use crate::api::{Api, CONFIG_MAPS, config_map, names, seconds_pass};
use crate::crd::{DEFINITIONS, WIDGETS, condition, definition, widget};
use crate::faulty::Faulty;

const WIDGET_DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

async fn two() -> (Api, Api) {
    let one = Api::start().await;
    let other = Api::over(Arc::clone(&one.store)).await;
    (one, other)
}

async fn revision(store: &Arc<dyn Store>) -> steersman_store::Revision {
    store.range(RangeRequest::default()).await.unwrap().revision
}

#[tokio::test(start_paused = true)]
async fn a_server_that_nobody_has_any_more_lets_go_of_the_store() {
    let api = Api::start().await;
    let store = Arc::clone(&api.store);
    seconds_pass(1).await;
    drop(api);
    seconds_pass(1).await;
    assert_eq!(Arc::strong_count(&store), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_definition_says_is_served_and_ends_everywhere() {
    let (one, other) = two().await;
    one.post(DEFINITIONS, &definition()).await.ok();
    one.post(WIDGETS, &widget("a", 1)).await.ok();
    seconds_pass(1).await;
    other.post(WIDGETS, &widget("b", 1)).await.ok();
    assert_eq!(names(&other.get(WIDGETS).await.ok()), ["a", "b"]);
    let mut changed = other.get(WIDGET_DEFINITION).await.ok();
    changed["spec"]["versions"][1]["served"] = false.into();
    other.put(WIDGET_DEFINITION, &changed).await.ok();
    seconds_pass(1).await;
    one.get("/apis/example.com/v2/namespaces/default/widgets").await.no_page();
    let mut events = one.watch(&format!("{WIDGETS}?watch=1")).await;
    other.delete(WIDGET_DEFINITION).await.ok();
    seconds_pass(1).await;
    for api in [&one, &other] {
        api.get(WIDGETS).await.no_page();
        api.get(WIDGET_DEFINITION).await.refused(404);
    }
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["ADDED", "ADDED", "DELETED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn names_that_one_server_gave_the_other_does_not_give_again() {
    let (one, other) = two().await;
    one.post(DEFINITIONS, &definition()).await.ok();
    let mut rival = definition();
    rival["metadata"]["name"] = "gadgets.example.com".into();
    rival["spec"]["names"]["plural"] = "gadgets".into();
    // Not a moment passes: what the other has not followed yet, it reads.
    let rival = other.post(DEFINITIONS, &rival).await.ok();
    assert_eq!(condition(&rival, "NamesAccepted")["status"], "False");
    one.delete(WIDGET_DEFINITION).await.ok();
    seconds_pass(15).await;
    let rival = other.get(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    assert_eq!(condition(&rival, "NamesAccepted")["status"], "True");
    for api in [&one, &other] {
        api.get("/apis/example.com/v1/namespaces/default/gadgets").await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_that_one_server_was_told_of_the_other_asks_too() {
    let (one, other) = two().await;
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let configuration = json!({
        "metadata": {"name": "nobody"},
        "webhooks": [{
            "name": "nobody.example.com", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE"],
            }],
        }],
    });
    other.post(CONFIG_MAPS, &config_map("before", &json!({}))).await.ok();
    one.post(configurations, &configuration).await.ok();
    seconds_pass(1).await;
    let status = other.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
    assert!(status["message"].as_str().unwrap().contains("failed calling webhook"), "{status}");
    one.delete(&format!("{configurations}/nobody")).await.ok();
    seconds_pass(1).await;
    other.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.ok();
}

/// Deletes a definition as a server would that dies right after it was asked to.
async fn begin_deletion(api: &Api) {
    let mut object = api.get(WIDGET_DEFINITION).await.ok();
    object["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into();
    object["metadata"]["finalizers"] = json!(["customresourcecleanup.apiextensions.k8s.io"]);
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    let request = WriteRequest::put(key, object.to_string(), Expected::Any);
    api.store.write(request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_server_died_is_ended_by_another() {
    let (one, other) = two().await;
    one.post(DEFINITIONS, &definition()).await.ok();
    for name in ["a", "b"] {
        one.post(WIDGETS, &widget(name, 1)).await.ok();
    }
    begin_deletion(&one).await;
    drop(one);
    seconds_pass(1).await;
    other.post(WIDGETS, &widget("c", 1)).await.refused(403);
    assert_eq!(names(&other.get(WIDGETS).await.ok()), ["a", "b"]);
    seconds_pass(15).await;
    other.get(WIDGETS).await.no_page();
    other.get(WIDGET_DEFINITION).await.refused(404);
    let prefix = "/registry/example.com/".to_owned();
    let left = other.store.range(RangeRequest { prefix, ..RangeRequest::default() }).await.unwrap();
    assert!(left.entries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namesake_made_anew_keeps_its_instances_whoever_still_cleans_up() {
    let (one, other) = two().await;
    for round in 0..5 {
        one.post(DEFINITIONS, &definition()).await.ok();
        one.post(WIDGETS, &widget("a", round)).await.ok();
        begin_deletion(&other).await;
        seconds_pass(9).await;
        // Both care for it at the same moment, and it is made anew as soon as it is gone.
        while one.post(DEFINITIONS, &definition()).await.code != 201 {
            seconds_pass(1).await;
        }
        one.post(WIDGETS, &widget("a", round)).await.ok();
        seconds_pass(60).await;
        assert_eq!(names(&other.get(WIDGETS).await.ok()), ["a"]);
        one.delete(WIDGET_DEFINITION).await.ok();
        seconds_pass(1).await;
        other.get(WIDGETS).await.no_page();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_held_up_does_not_delete_the_instances_of_a_namesake() {
    let store = Faulty::new();
    let one = Api::over(Arc::new(store.clone())).await;
    let other = Api::over(Arc::new(store.clone())).await;
    one.post(DEFINITIONS, &definition()).await.ok();
    let old = one.post(WIDGETS, &widget("a", 1)).await.ok();
    begin_deletion(&one).await;
    store.hold("/registry/example.com/widgets/default/a");
    store.held().await;
    // One of the two is held up; the other ends the deletion.
    seconds_pass(15).await;
    one.get(WIDGET_DEFINITION).await.refused(404);
    one.post(DEFINITIONS, &definition()).await.ok();
    let new = one.post(WIDGETS, &widget("a", 2)).await.ok();
    assert_ne!(new["metadata"]["uid"], old["metadata"]["uid"]);
    store.release();
    seconds_pass(60).await;
    for api in [&one, &other] {
        let kept = api.get(&format!("{WIDGETS}/a")).await.ok();
        assert_eq!(kept["metadata"]["uid"], new["metadata"]["uid"]);
        api.get(WIDGET_DEFINITION).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn who_could_not_follow_for_a_while_looks_at_everything_again() {
    let store = Faulty::new();
    let other = Api::over(Arc::new(store.clone())).await;
    let one = Api::over(Arc::new(store.clone())).await;
    let mut gone = definition();
    gone["metadata"]["name"] = "gadgets.example.com".into();
    gone["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    one.post(DEFINITIONS, &gone).await.ok();
    seconds_pass(1).await;
    other.get("/apis/example.com/v1/gadgets").await.ok();
    // Both hear that the store is gone; what happens meanwhile is compacted.
    store.fail(Some(steersman_store::StoreError::Unavailable { reason: "gone".to_owned() }));
    seconds_pass(30).await;
    store.fail(None);
    one.delete(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    one.post(DEFINITIONS, &definition()).await.ok();
    let now = revision(&one.store).await;
    one.store.compact(now).await.unwrap();
    seconds_pass(30).await;
    other.get("/apis/example.com/v1/gadgets").await.no_page();
    other.get(WIDGETS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_late_write_of_a_definition_that_is_gone_does_not_serve_it_again() {
    let store = Faulty::new();
    let api = Arc::new(Api::over(Arc::new(store.clone())).await);
    api.post(DEFINITIONS, &definition()).await.ok();
    let other = Api::over(Arc::new(store.clone())).await;
    for _ in 0..20 {
        let writing = {
            let api = Arc::clone(&api);
            tokio::spawn(async move {
                api.merge(WIDGET_DEFINITION, &json!({"metadata": {"labels": {"a": "b"}}})).await
            })
        };
        tokio::task::yield_now().await;
        other.delete(WIDGET_DEFINITION).await.ok();
        writing.await.unwrap();
        seconds_pass(1).await;
        for api in [&*api, &other] {
            api.get(WIDGETS).await.no_page();
        }
        api.post(DEFINITIONS, &definition()).await.ok();
        seconds_pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_not_heard_of_an_end_puts_nothing_into_what_ends() {
    let store = Faulty::new();
    let one = Api::over(Arc::new(store.clone())).await;
    let other = Api::over(Arc::new(store.clone())).await;
    other.post("/api/v1/namespaces", &json!({"metadata": {"name": "doomed"}})).await.ok();
    one.post(DEFINITIONS, &definition()).await.ok();
    seconds_pass(1).await;
    store.lag(true);
    other.delete("/api/v1/namespaces/doomed").await.ok();
    seconds_pass(1).await;
    let maps = "/api/v1/namespaces/doomed/configmaps";
    one.post(maps, &config_map("a", &json!({}))).await.refused(403);
    assert_eq!(names(&other.get(maps).await.ok()), [""; 0]);
    // Both lose their watches, and have not looked again when the definition begins to go.
    store.fail(Some(steersman_store::StoreError::Unavailable { reason: "gone".to_owned() }));
    seconds_pass(30).await;
    store.fail(None);
    begin_deletion(&other).await;
    one.post(WIDGETS, &widget("a", 1)).await.refused(403);
    let prefix = "/registry/example.com/".to_owned();
    let left = one.store.range(RangeRequest { prefix, ..RangeRequest::default() }).await.unwrap();
    assert!(left.entries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_through_one_server_takes_nothing_more_through_the_other() {
    let store = Faulty::new();
    let one = Arc::new(Api::over(Arc::new(store.clone())).await);
    let other = Api::over(Arc::new(store.clone())).await;
    other.post("/api/v1/namespaces", &json!({"metadata": {"name": "doomed"}})).await.ok();
    let maps = "/api/v1/namespaces/doomed/configmaps";
    store.hold("/registry/configmaps/doomed/a");
    let creating = {
        let one = Arc::clone(&one);
        tokio::spawn(async move { one.post(maps, &config_map("a", &json!({}))).await })
    };
    store.held().await;
    other.delete("/api/v1/namespaces/doomed").await.ok();
    seconds_pass(1).await;
    store.release();
    creating.await.unwrap().refused(403);
    assert_eq!(names(&other.get(maps).await.ok()), [""; 0]);
    one.post(maps, &config_map("b", &json!({}))).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn two_servers_with_one_seed_never_give_the_same_uid_nor_does_one_that_starts_again() {
    let (one, other) = two().await;
    let again = Api::over(Arc::clone(&one.store)).await;
    let mut uids = HashSet::new();
    for (api, server) in [(&one, "one"), (&other, "other"), (&again, "again")] {
        for n in 0..20 {
            let created = api.config_map(&format!("{server}-{n}"), &json!({})).await;
            assert!(uids.insert(created["metadata"]["uid"].as_str().unwrap().to_owned()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_servers_never_give_the_same_node_port_or_address() {
    let (one, other) = two().await;
    let services = "/api/v1/namespaces/default/services";
    let mut seen = HashSet::new();
    for n in 0..40 {
        let api = if n % 2 == 0 { &one } else { &other };
        let service = json!({
            "metadata": {"name": format!("s{n}")},
            "spec": {"type": "NodePort", "ports": [{"port": 80}, {"name": "b", "port": 81}]},
        });
        let mut service = service;
        service["spec"]["ports"][0]["name"] = "a".into();
        let created = api.post(services, &service).await.ok();
        for port in created["spec"]["ports"].as_array().unwrap() {
            assert!(seen.insert(port["nodePort"].to_string()), "{created}");
        }
        assert!(seen.insert(created["spec"]["clusterIP"].to_string()), "{created}");
    }
    let taken =
        one.get(&format!("{services}/s1")).await.ok()["spec"]["ports"][0]["nodePort"].clone();
    let named = json!({
        "metadata": {"name": "named"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": taken}]},
    });
    one.post(services, &named).await.refused(422);
    other.delete(&format!("{services}/s1")).await.ok();
    one.post(services, &named).await.ok();
    // A third finds everything as it is.
    let third = Api::over(Arc::clone(&one.store)).await;
    let mut again = named.clone();
    again["metadata"]["name"] = "again".into();
    third.post(services, &again).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn all_servers_that_live_are_endpoints_and_those_that_stop_or_die_are_not() {
    let (one, other) = two().await;
    let third = Api::over(Arc::clone(&one.store)).await;
    let mut running = Vec::new();
    for (api, address) in
        [(&one, "10.0.0.1:6443"), (&other, "10.0.0.1:6444"), (&third, "10.0.0.2:6443")]
    {
        api.server.advertise(address.parse().unwrap());
        let server = api.server.clone();
        running.push(tokio::spawn(async move { server.run_bootstrap().await }));
    }
    seconds_pass(60).await;
    let all = ["10.0.0.1:6443", "10.0.0.1:6444", "10.0.0.2:6443"];
    assert_eq!(endpoints(&one).await, all);
    assert_eq!(slices(&one).await, all);
    // One stops in order: it is gone at once.
    other.server.shutdown();
    other.server.withdraw().await.unwrap();
    assert_eq!(endpoints(&one).await, ["10.0.0.1:6443", "10.0.0.2:6443"]);
    assert_eq!(slices(&one).await, ["10.0.0.1:6443", "10.0.0.2:6443"]);
    seconds_pass(60).await;
    assert_eq!(endpoints(&one).await, ["10.0.0.1:6443", "10.0.0.2:6443"]);
    // One dies: it is missed.
    running[2].abort();
    seconds_pass(30).await;
    assert_eq!(endpoints(&one).await, ["10.0.0.1:6443"]);
    assert_eq!(slices(&one).await, ["10.0.0.1:6443"]);
    // The last one leaves its name.
    one.server.shutdown();
    one.server.withdraw().await.unwrap();
    assert_eq!(endpoints(&one).await, ["10.0.0.1:6443"]);
}

async fn endpoints(api: &Api) -> Vec<String> {
    let object = api.get("/api/v1/namespaces/default/endpoints/kubernetes").await.ok();
    let subsets = object["subsets"].as_array().unwrap().iter();
    let mut all: Vec<String> = subsets
        .flat_map(|subset| {
            let port = subset["ports"][0]["port"].clone();
            let addresses = subset["addresses"].as_array().unwrap().iter();
            addresses.map(move |address| format!("{}:{port}", address["ip"].as_str().unwrap()))
        })
        .collect();
    all.sort_unstable();
    all
}

async fn slices(api: &Api) -> Vec<String> {
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices\
                ?labelSelector=kubernetes.io/service-name=kubernetes";
    let list = api.get(path).await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut all = Vec::new();
    for slice in list["items"].as_array().unwrap() {
        for endpoint in slice["endpoints"].as_array().unwrap() {
            all.push(format!("{}:{}", text(&endpoint["addresses"][0]), slice["ports"][0]["port"]));
        }
    }
    all.sort_unstable();
    all
}
