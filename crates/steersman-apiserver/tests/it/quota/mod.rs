//! What is written into a namespace is charged to its quotas, and refused where it does not fit.

mod limited;
mod oracle;
mod restless;
mod together;

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config, PluginSelection};
use steersman_store::StoreError;

use crate::api::{Api, CONFIG_MAPS, clock, config_map, pod, seconds_pass};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::faulty::Faulty;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Makes a quota with this spec, and counts it as a controller would while nothing is there.
async fn scoped(api: &Api, name: &str, spec: Value) {
    let hard = spec["hard"].clone();
    let names = hard.as_object().unwrap().keys();
    let used: Value = names.map(|name| (name.clone(), json!("0"))).collect();
    let quota = json!({"metadata": {"name": name}, "spec": spec});
    api.post(QUOTAS, &quota).await.ok();
    count(api, name, hard, used).await;
}

/// Writes what is limited and used into a quota.
async fn count(api: &Api, name: &str, hard: Value, used: Value) {
    let status = json!({"status": {"hard": hard, "used": used}});
    api.merge(&format!("{QUOTAS}/{name}/status"), &status).await.ok();
}

async fn quota(api: &Api, name: &str, hard: Value) {
    scoped(api, name, json!({"hard": hard})).await;
}

/// What of a quota is used.
async fn used(api: &Api, name: &str) -> Value {
    api.get(&format!("{QUOTAS}/{name}")).await.ok()["status"]["used"].clone()
}

/// A Pod whose container has these resources.
fn sized(name: &str, resources: Value) -> Value {
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["resources"] = resources;
    pod
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_refused_in_the_words_of_kubernetes() {
    let api = Api::start().await;
    quota(&api, "q", json!({"pods": "1", "requests.cpu": "1200m", "limits.memory": "1Gi"})).await;
    let fits = json!({"requests": {"cpu": "700m"}, "limits": {"memory": "512Mi"}});
    let table = [
        (
            "a",
            json!({}),
            "pods \"a\" is forbidden: failed quota: q: must specify limits.memory for: web; \
             requests.cpu for: web",
        ),
        (
            "b",
            json!({"requests": {"cpu": "2"}, "limits": {"memory": "2Gi"}}),
            "pods \"b\" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,\
             requests.cpu=2, used: limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,\
             requests.cpu=1200m",
        ),
        ("c", fits.clone(), ""),
        (
            "d",
            fits,
            "pods \"d\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=700m, \
             used: pods=1,requests.cpu=700m, limited: pods=1,requests.cpu=1200m",
        ),
    ];
    for (name, resources, refusal) in table {
        let answer = api.post(PODS, &sized(name, resources)).await;
        if refusal.is_empty() {
            answer.ok();
            continue;
        }
        let status = answer.refused(403);
        assert_eq!(message(&status), refusal);
        assert_eq!(status["reason"], "Forbidden");
        assert_eq!(status["details"], json!({"name": name, "kind": "pods"}));
    }
    let left = json!({"pods": "1", "requests.cpu": "700m", "limits.memory": "512Mi"});
    assert_eq!(used(&api, "q").await, left);
}

#[tokio::test(start_paused = true)]
async fn who_charges_stands_in_the_quota() {
    let api = Api::start().await;
    quota(&api, "q", json!({"configmaps": "1"})).await;
    api.config_map("a", &json!({})).await;
    let quota = api.get(&format!("{QUOTAS}/q")).await.ok();
    let managers = quota["metadata"]["managedFields"].as_array().unwrap();
    let server = managers.iter().find(|entry| entry["manager"] == "kube-apiserver").unwrap();
    assert_eq!(
        (&server["operation"], &server["subresource"]),
        (&json!("Update"), &json!("status"))
    );
    let fields = json!({"f:status": {"f:used": {"f:configmaps": {}}}});
    assert_eq!(server["fieldsV1"], fields);
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_the_one_that_is_refused() {
    let api = Api::start().await;
    quota(&api, "q", json!({"count/configmaps": "0"})).await;
    let map = json!({"metadata": {"generateName": "map-"}});
    let status = api.post(CONFIG_MAPS, &map).await.refused(403);
    assert!(message(&status).starts_with("configmaps \"map-"), "{status}");
    let end = "\" is forbidden: exceeded quota: q, requested: count/configmaps=1, \
               used: count/configmaps=0, limited: count/configmaps=0";
    assert!(message(&status).ends_with(end), "{status}");
    assert_eq!(message(&status).len(), "configmaps \"map-xxxxx".len() + end.len());
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_nobody_has_counted_limits_nothing_and_one_half_counted_refuses() {
    let api = Api::start().await;
    let hard = json!({"configmaps": "0", "secrets": "0"});
    api.post(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await.ok();
    api.config_map("a", &json!({})).await;
    count(&api, "q", hard, json!({"secrets": "0"})).await;
    let status = api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.refused(403);
    let why = "configmaps \"b\" is forbidden: status unknown for quota: q, resources: configmaps";
    assert_eq!(message(&status), why);
}

#[tokio::test(start_paused = true)]
async fn all_quotas_of_a_namespace_are_charged_or_none() {
    let api = Api::start().await;
    for name in ["a", "b", "d"] {
        quota(&api, name, json!({"configmaps": "2"})).await;
    }
    quota(&api, "c", json!({"configmaps": "1", "secrets": "9"})).await;
    api.config_map("one", &json!({})).await;
    let status = api.post(CONFIG_MAPS, &config_map("two", &json!({}))).await.refused(403);
    assert!(message(&status).contains("exceeded quota: c,"), "{status}");
    for name in ["a", "b", "d"] {
        assert_eq!(used(&api, name).await, json!({"configmaps": "1"}), "{name}");
    }
    assert_eq!(used(&api, "c").await, json!({"configmaps": "1", "secrets": "0"}));
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    api.post(elsewhere, &config_map("two", &json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn only_objects_in_the_scope_of_a_quota_are_charged() {
    let api = Api::start().await;
    let best_effort = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
    scoped(&api, "best-effort", best_effort).await;
    let expression =
        json!({"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]});
    let critical = json!({
        "hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [expression]},
    });
    scoped(&api, "critical", critical).await;
    let asking = json!({"requests": {"cpu": "1"}});
    api.post(PODS, &sized("asking", asking.clone())).await.ok();
    api.post(PODS, &pod("modest")).await.ok();
    let status = api.post(PODS, &pod("another")).await.refused(403);
    assert!(message(&status).contains("exceeded quota: best-effort,"), "{status}");
    let mut important = sized("important", asking);
    important["spec"]["priorityClassName"] = json!("system-node-critical");
    let status = api.post(PODS, &important).await.refused(403);
    assert!(message(&status).contains("exceeded quota: critical,"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_change_is_charged_what_it_adds_and_what_it_frees_is_left_to_the_next_count() {
    let api = Api::start().await;
    quota(&api, "q", json!({"services": "1", "services.nodeports": "2"})).await;
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]);
    let spec = json!({"ports": ports, "selector": {"a": "b"}});
    api.post(SERVICES, &json!({"metadata": {"name": "web"}, "spec": spec})).await.ok();
    let path = format!("{SERVICES}/web");
    let expect = async |ports: &str| {
        let expected = json!({"services": "1", "services.nodeports": ports});
        assert_eq!(used(&api, "q").await, expected);
    };
    expect("0").await;
    api.merge(&path, &json!({"spec": {"type": "NodePort"}})).await.ok();
    expect("2").await;
    api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    expect("2").await;
    let third = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2},
        {"name": "c", "port": 3}]);
    let status = api.merge(&path, &json!({"spec": {"ports": third}})).await.refused(403);
    let why = "services \"web\" is forbidden: exceeded quota: q, requested: services.nodeports=1, \
               used: services.nodeports=2, limited: services.nodeports=2";
    assert_eq!(message(&status), why);
    api.merge(&path, &json!({"spec": {"type": "ClusterIP"}})).await.ok();
    expect("2").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_resized_is_charged_the_difference() {
    let api = Api::start().await;
    quota(&api, "q", json!({"requests.cpu": "3"})).await;
    api.post(PODS, &sized("a", json!({"requests": {"cpu": "1"}}))).await.ok();
    let path = format!("{PODS}/a/resize");
    let to = |cpu: &str| {
        json!({"spec": {"containers": [
            {"name": "web", "resources": {"requests": {"cpu": cpu}}}]}})
    };
    let strategic = "application/strategic-merge-patch+json";
    api.patch(&path, strategic, &to("2500m")).await.ok();
    assert_eq!(used(&api, "q").await, json!({"requests.cpu": "2500m"}));
    let status = api.patch(&path, strategic, &to("4")).await.refused(403);
    let why = "pods \"a\" is forbidden: exceeded quota: q, requested: requests.cpu=1500m, \
               used: requests.cpu=2500m, limited: requests.cpu=3";
    assert_eq!(message(&status), why);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_and_quotas_themselves_are_counted() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    quota(&api, "q", json!({"count/widgets.example.com": "1", "resourcequotas": "2"})).await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let status = api.post(WIDGETS, &widget("b", 1)).await.refused(403);
    let why = "widgets.example.com \"b\" is forbidden: exceeded quota: q, requested: \
               count/widgets.example.com=1, used: count/widgets.example.com=1, limited: \
               count/widgets.example.com=1";
    assert_eq!(message(&status), why);
    for (name, code) in [("two", 201), ("three", 201), ("four", 403)] {
        let quota = json!({"metadata": {"name": name}, "spec": {}});
        assert_eq!(api.post(QUOTAS, &quota).await.code, code, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_but_never_charged() {
    let api = Api::start().await;
    quota(&api, "q", json!({"configmaps": "1"})).await;
    let dry = format!("{CONFIG_MAPS}?dryRun=All");
    api.post(&dry, &config_map("a", &json!({}))).await.ok();
    assert_eq!(used(&api, "q").await, json!({"configmaps": "0"}));
    api.config_map("a", &json!({})).await;
    api.post(&dry, &config_map("b", &json!({}))).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_gives_back_what_it_was_charged() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "a", json!({"configmaps": "9"})).await;
    quota(&api, "b", json!({"configmaps": "9"})).await;
    api.config_map("there", &json!({})).await;
    let expect = async |count: &str| {
        for name in ["a", "b"] {
            assert_eq!(used(&api, name).await, json!({"configmaps": count}), "{name}");
        }
    };
    api.post(CONFIG_MAPS, &config_map("there", &json!({}))).await.refused(409);
    expect("1").await;
    // Nobody knows what became of it: better charged too much than too little.
    store.forget_answer("/registry/configmaps/default/unknown");
    api.post(CONFIG_MAPS, &config_map("unknown", &json!({}))).await.refused(504);
    expect("2").await;
    // The client goes away before the write.
    store.hold("/registry/configmaps/default/late");
    let object = config_map("late", &json!({}));
    tokio::select! {
        _ = api.post(CONFIG_MAPS, &object) => panic!("it is held back"),
        () = store.held() => {}
    }
    expect("3").await;
    store.release();
    seconds_pass(1).await;
    api.get(&format!("{CONFIG_MAPS}/late")).await.ok();
    expect("3").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_anew_meanwhile_is_not_given_back_as_well() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "q", json!({"configmaps": "9"})).await;
    api.config_map("there", &json!({})).await;
    store.hold("/registry/configmaps/default/there");
    let again = config_map("there", &json!({}));
    let counted = async {
        store.held().await;
        assert_eq!(used(&api, "q").await, json!({"configmaps": "2"}));
        let one = json!({"configmaps": "1"});
        count(&api, "q", json!({"configmaps": "9"}), one).await;
        store.release();
    };
    let (answer, ()) = tokio::join!(api.post(CONFIG_MAPS, &again), counted);
    answer.refused(409);
    assert_eq!(used(&api, "q").await, json!({"configmaps": "1"}));
    // From here on it can be given back again.
    api.post(CONFIG_MAPS, &again).await.refused(409);
    assert_eq!(used(&api, "q").await, json!({"configmaps": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_cannot_be_charged_leaves_nothing_behind() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "a", json!({"configmaps": "9"})).await;
    quota(&api, "b", json!({"configmaps": "9"})).await;
    store.hold("/registry/resourcequotas/default/b");
    let object = config_map("x", &json!({}));
    let broken = async {
        store.held().await;
        store.break_down(Some(StoreError::Unavailable { reason: "away".to_owned() }));
        store.release();
    };
    let (answer, ()) = tokio::join!(api.post(CONFIG_MAPS, &object), broken);
    answer.refused(503);
    store.break_down(None);
    api.get(&format!("{CONFIG_MAPS}/x")).await.refused(404);
    assert_eq!(used(&api, "b").await, json!({"configmaps": "0"}));
    // That could not be written either, and is left to the next count.
    assert_eq!(used(&api, "a").await, json!({"configmaps": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_neither_refuses_nor_admits_by_what_was() {
    let store = Faulty::new();
    let api = Api::over(Arc::new(store.clone())).await;
    quota(&api, "q", json!({"configmaps": "1"})).await;
    store.lag(true);
    api.config_map("a", &json!({})).await;
    api.post(CONFIG_MAPS, &config_map("b", &json!({}))).await.refused(403);
    store.lag(false);
    store.lag(true);
    let path = format!("{QUOTAS}/q");
    let hard = json!({"configmaps": "2"});
    api.merge(&path, &json!({"spec": {"hard": hard}})).await.ok();
    count(&api, "q", hard, json!({"configmaps": "1"})).await;
    api.config_map("b", &json!({})).await;
    assert_eq!(used(&api, "q").await, json!({"configmaps": "2"}));
}

/// What one ConfigMap costs: reads that show everything, stale ones, and writes. Others may be at
/// work meanwhile, so it is the least of several that counts.
async fn cost(api: &Api, store: &Faulty, stage: &str) -> [usize; 3] {
    let mut least = [usize::MAX; 3];
    for n in 0..8 {
        store.counts();
        api.config_map(&format!("{stage}-{n}"), &json!({})).await;
        let counts = store.counts();
        least = std::array::from_fn(|index| least[index].min(counts[index]));
    }
    least
}

#[tokio::test(start_paused = true)]
async fn a_namespace_without_quotas_pays_one_look_and_one_with_quotas_never_more_and_more() {
    let store = Faulty::new();
    let config = Config::new(Arc::new(store.clone()), clock());
    let admission = PluginSelection::new([], ["ResourceQuota"]).unwrap();
    let server = ApiServer::start(Config { admission, ..config }).await.unwrap();
    let without = Api { server, store: Arc::new(store.clone()) };
    let [reads, stale, writes] = cost(&without, &store, "without").await;
    drop(without);
    let api = Api::over(Arc::new(store.clone())).await;
    assert_eq!(cost(&api, &store, "free").await, [reads, stale + 1, writes]);
    quota(&api, "q", json!({"configmaps": "1k"})).await;
    for stage in ["few", "more", "many"] {
        let [charged_reads, charged_stale, charged_writes] = cost(&api, &store, stage).await;
        assert_eq!((charged_reads, charged_writes), (reads, writes + 1), "{stage}");
        // Before and in its turn, and perhaps once more at its namespace, since the charge came
        // between.
        assert!((stale + 2..=stale + 3).contains(&charged_stale), "{stage}: {charged_stale}");
        for n in 0..50 {
            api.config_map(&format!("{stage}-and-{n}"), &json!({})).await;
        }
    }
}
