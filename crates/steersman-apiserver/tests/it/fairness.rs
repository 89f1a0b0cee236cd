//! Priority and fairness: one who floods the server, and others who must not notice.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header;
use serde_json::{Value, json};
use steersman_apiserver::on_demand::{Held, OnDemand, Wanted};
use steersman_store::memory::MemoryStore;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, names, seconds_pass};
use crate::authorization::bind;
use crate::webhooks::{VALIDATING, configure, webhook};

const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Lets requests for ConfigMaps go on one by one, so that they keep their seats until then.
struct Gate(Arc<Semaphore>);

impl OnDemand for Gate {
    fn wanted<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Option<Held>> {
        let gated = wanted.resource == "configmaps";
        async move {
            if gated {
                self.0.acquire().await.unwrap().forget();
            }
            None
        }
        .boxed()
    }
}

/// A server with so many seats, in front of whose ConfigMaps there is a gate.
async fn gated(seats: u32) -> (Api, Arc<Semaphore>) {
    let store = Arc::new(MemoryStore::new());
    let api = Api::with(store, |config| config.requests_inflight_max = seats).await;
    let gate = Arc::new(Semaphore::new(0));
    api.server.on_demand(Arc::new(Gate(Arc::clone(&gate))));
    for user in ["flood", "innocent"] {
        bind(&api, "", "ClusterRole", "cluster-admin", user).await;
    }
    (api, gate)
}

/// Sends so many requests at once that do not end before the gate opens.
fn flood(api: &Api, requests: usize) -> JoinSet<Answer> {
    let mut tasks = JoinSet::new();
    for _ in 0..requests {
        let api = api.acting_as("flood", &[]);
        tasks.spawn(async move { api.get(CONFIG_MAPS).await });
    }
    tasks
}

/// Lets everything happen that can happen now.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

async fn uid(api: &Api, plural: &str, name: &str) -> Value {
    api.get(&format!("{GROUP}/{plural}/{name}")).await.ok()["metadata"]["uid"].clone()
}

#[tokio::test(start_paused = true)]
async fn every_cluster_has_the_levels_and_schemas_of_kubernetes() {
    let api = Api::start().await;
    let levels = api.get(&format!("{GROUP}/prioritylevelconfigurations")).await.ok();
    assert_eq!(
        names(&levels),
        [
            "catch-all",
            "exempt",
            "global-default",
            "leader-election",
            "node-high",
            "system",
            "workload-high",
            "workload-low"
        ]
    );
    let schemas = api.get(&format!("{GROUP}/flowschemas")).await.ok();
    assert_eq!(
        names(&schemas),
        [
            "catch-all",
            "exempt",
            "global-default",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-system-service-accounts",
            "probes",
            "service-accounts",
            "system-leader-election",
            "system-node-high",
            "system-nodes"
        ]
    );
    for object in [&levels, &schemas].iter().flat_map(|list| list["items"].as_array().unwrap()) {
        let metadata = &object["metadata"];
        assert_eq!(metadata["annotations"]["apf.kubernetes.io/autoupdate-spec"], "true");
        assert_eq!(metadata["generation"], 1);
        let managers = metadata["managedFields"].as_array().unwrap().last().unwrap();
        assert_eq!(managers["manager"], "api-priority-and-fairness-config-producer-v1");
    }
    let condition = &schemas["items"][2]["status"]["conditions"][0];
    assert_eq!(condition["type"], "Dangling");
    assert_eq!(condition["status"], "False");
    let shown = api
        .get_as(&format!("{GROUP}/flowschemas"), "application/json;as=Table;v=v1;g=meta.k8s.io")
        .await
        .ok();
    assert_eq!(
        shown["rows"][2]["cells"].as_array().unwrap()[..4],
        json!(["system-leader-election", "leader-election", 100, "ByUser"]).as_array().unwrap()[..]
    );
}

/// What the server makes by itself is what somebody who creates it would see.
#[tokio::test(start_paused = true)]
async fn what_is_made_at_the_start_is_what_a_create_would_store() {
    let api = Api::start().await;
    for (plural, name) in [
        ("flowschemas", "probes"),
        ("flowschemas", "system-node-high"),
        ("prioritylevelconfigurations", "system"),
    ] {
        let path = format!("{GROUP}/{plural}/{name}");
        let made = api.get(&path).await.ok();
        let mut sent = made.clone();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"]
        {
            sent["metadata"].as_object_mut().unwrap().remove(field);
        }
        sent["metadata"]["name"] = format!("my-{name}").into();
        let manager = "api-priority-and-fairness-config-producer-v1";
        let created =
            api.post(&format!("{GROUP}/{plural}?fieldManager={manager}"), &sent).await.ok();
        assert_eq!(created["spec"], made["spec"]);
        let fields = |object: &Value| {
            let managers = object["metadata"]["managedFields"].as_array().unwrap();
            managers.last().unwrap()["fieldsV1"].clone()
        };
        assert_eq!(fields(&created), fields(&made), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_changes_what_is_mandatory() {
    let api = Api::start().await;
    let fixed = |name: &str| format!("spec of '{name}' must equal the fixed value");
    let schemas = [("catch-all", "matchingPrecedence", 5000), ("exempt", "matchingPrecedence", 2)];
    for (name, field, number) in schemas {
        let path = format!("{GROUP}/flowschemas/{name}");
        let made = api.get(&path).await.ok();
        assert_eq!(api.put(&path, &made).await.ok()["metadata"]["generation"], 1);
        let refused = api.merge(&path, &json!({"spec": {field: number}})).await.refused(422);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&fixed(name)), "{message}");
    }
    let levels = format!("{GROUP}/prioritylevelconfigurations");
    for name in ["catch-all", "exempt"] {
        let path = format!("{levels}/{name}");
        let made = api.get(&path).await.ok();
        assert_eq!(api.put(&path, &made).await.ok()["metadata"]["generation"], 1);
    }
    let more = json!({"spec": {"limited": {"nominalConcurrencyShares": 50}}});
    let refused = api.merge(&format!("{levels}/catch-all"), &more).await.refused(422);
    assert!(refused["message"].as_str().unwrap().contains(&fixed("catch-all")));
    // How much of the server is exempt may be changed.
    let more = json!({"spec": {"exempt": {"nominalConcurrencyShares": 50}}});
    api.merge(&format!("{levels}/exempt"), &more).await.ok();
    let odd = json!({"metadata": {"annotations": {
        "flowcontrol.k8s.io/preserve-zero-concurrency-shares": "",
    }}});
    let refused = api.merge(&format!("{levels}/system"), &odd).await.refused(422);
    assert!(refused["message"].as_str().unwrap().contains("annotation 'flowcontrol.k8s.io"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_tells_by_which_schema_and_level_it_was_served() {
    let (api, _) = gated(600).await;
    let told = |answer: &Answer| {
        [SCHEMA_UID, LEVEL_UID].map(|name| answer.headers[name].to_str().unwrap().to_owned())
    };
    for (user, path, schema, level) in [
        ("admin", SECRETS, "exempt", "exempt"),
        ("innocent", SECRETS, "global-default", "global-default"),
        ("innocent", "/api/v1/namespaces/default/secrets/none", "global-default", "global-default"),
        ("innocent", "/readyz", "probes", "exempt"),
        ("system:kube-scheduler", "/version", "kube-scheduler", "workload-high"),
    ] {
        let answer = match user {
            "admin" => api.get(path).await,
            user => api.acting_as(user, &[]).get(path).await,
        };
        let expected = [
            uid(&api, "flowschemas", schema).await,
            uid(&api, "prioritylevelconfigurations", level).await,
        ];
        assert_eq!(told(&answer).map(Value::from), expected, "{user} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_authorizer_tells_it_as_well() {
    let api = Api::start().await;
    let nobody = api.acting_as("nobody", &[]);
    let refused = nobody.get(SECRETS).await;
    refused.refused(403);
    let told = refused.headers[SCHEMA_UID].to_str().unwrap().to_owned();
    assert_eq!(Value::from(told), uid(&api, "flowschemas", "global-default").await);
    assert!(refused.headers.contains_key(LEVEL_UID));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_webhook_keeps_nobody_else_waiting() {
    let store = Arc::new(MemoryStore::new());
    let api = Api::with(store, |config| config.requests_inflight_max = 60).await;
    for user in ["flood", "innocent"] {
        bind(&api, "", "ClusterRole", "cluster-admin", user).await;
    }
    let never: steersman_apiserver::WebhookHandler = Arc::new(|_| std::future::pending().boxed());
    api.server.serve_webhooks("https://webhooks.test", never);
    configure(&api, VALIDATING, "never", &[webhook("never")]).await;
    let mut flood = JoinSet::new();
    for number in 0..40 {
        let api = api.acting_as("flood", &[]);
        let object = config_map(&format!("n{number}"), &json!({}));
        flood.spawn(async move { api.post(CONFIG_MAPS, &object).await });
    }
    settle().await;
    let began = tokio::time::Instant::now();
    let other = api.acting_as("innocent", &[]);
    for _ in 0..10 {
        other.get(SECRETS).await.ok();
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Those who are asked about give way only when the webhook had its time.
    assert!(flood.try_join_next().is_none());
    let (answered, _) = (flood.join_next().await.unwrap().unwrap(), flood.abort_all());
    assert_eq!((answered.code, began.elapsed()), (500, Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn one_who_floods_is_refused_and_others_hardly_wait() {
    let (api, gate) = gated(60).await;
    let mut flood = flood(&api, 1000);
    settle().await;
    // The queues of its hand are full: what is too much is refused at once.
    let refused = flood.try_join_next().expect("too many at once").unwrap();
    assert_eq!(refused.code, 429);
    assert_eq!(&refused.bytes[..], b"Too many requests, please try again later.\n");
    assert_eq!(refused.headers[header::RETRY_AFTER], "1");
    assert_eq!(refused.headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    assert!(refused.headers.contains_key(SCHEMA_UID) && refused.headers.contains_key(LEVEL_UID));
    while flood.try_join_next().is_some() {}
    let left = flood.len();
    assert!((300..400).contains(&left), "{left}");
    // Whoever is exempt is served at once.
    api.get(SECRETS).await.ok();
    // An innocent is served when a few of those have gone that were before it.
    let other = api.acting_as("innocent", &[]);
    let innocent = tokio::spawn(async move { other.get(SECRETS).await });
    settle().await;
    assert!(!innocent.is_finished());
    let mut went = 0;
    while !innocent.is_finished() {
        gate.add_permits(1);
        settle().await;
        went += 1;
        assert!(went <= 20, "the innocent waits for the flood");
    }
    innocent.await.unwrap().ok();
    gate.add_permits(1000);
    while let Some(answer) = flood.join_next().await {
        answer.unwrap().ok();
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_a_quarter_of_the_time_a_request_has() {
    let (api, gate) = gated(60).await;
    let flood = flood(&api, 200);
    settle().await;
    let began = tokio::time::Instant::now();
    let other = api.acting_as("innocent", &[]);
    let late = other.get(&format!("{SECRETS}?timeout=4s")).await;
    assert_eq!((late.code, began.elapsed()), (429, Duration::from_secs(1)));
    let late = other.get(SECRETS).await;
    assert_eq!((late.code, began.elapsed()), (429, Duration::from_secs(1 + 15)));
    drop(flood);
    settle().await;
    // Those who were given up lost no seat; all but five had waited in vain as well.
    drop(gate);
    other.get(SECRETS).await.ok();
    let metrics = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    let labels = r#"flow_schema="global-default",priority_level="global-default""#;
    for line in [
        format!("apiserver_flowcontrol_current_executing_requests{{{labels}}} 0\n"),
        format!("apiserver_flowcontrol_current_inqueue_requests{{{labels}}} 0\n"),
        format!("apiserver_flowcontrol_current_executing_seats{{{labels}}} 0\n"),
        format!(
            r#"apiserver_flowcontrol_rejected_requests_total{{{labels},reason="time-out"}} 197"#
        ),
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"global-default\"} 5\n".into(),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_keeps_no_seat_once_it_has_told_what_there_is() {
    let (api, _gate) = gated(60).await;
    let other = api.acting_as("innocent", &[]);
    let mut watches = Vec::new();
    for number in 0..40 {
        let mut watch = other.watch(&format!("{SECRETS}?watch=1&n={number}")).await;
        assert!(watch.next().now_or_never().is_none());
        watches.push(watch);
    }
    other.get(SECRETS).await.ok();
    // One that is never read keeps its seat for a second at most.
    for _ in 0..40 {
        let path = format!("{SECRETS}?watch=1");
        let unread = tokio::time::timeout(Duration::from_secs(5), other.watch(&path));
        watches.push(unread.await.expect("seats come back"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_says_whether_its_level_is_there_and_leads_requests_to_it() {
    let (api, _) = gated(600).await;
    let schema = json!({
        "metadata": {"name": "mine"},
        "spec": {
            "matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "mine"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "innocent"}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"],
                    "namespaces": ["*"], "clusterScope": true,
                }],
            }],
        },
    });
    let made = api.post(&format!("{GROUP}/flowschemas"), &schema).await.ok();
    let condition = async || {
        settle().await;
        let schema = api.get(&format!("{GROUP}/flowschemas/mine")).await.ok();
        schema["status"]["conditions"][0].clone()
    };
    let dangling = condition().await;
    assert_eq!((&dangling["type"], &dangling["status"]), (&"Dangling".into(), &"True".into()));
    let written = api.get(&format!("{GROUP}/flowschemas/mine")).await.ok();
    let manager = &written["metadata"]["managedFields"][0];
    assert_eq!(manager["operation"], "Apply", "the server applies what it says of a schema");
    assert_eq!(
        manager["fieldsV1"]["f:status"]["f:conditions"].as_object().unwrap().len(),
        1,
        "and owns that condition, not the list of them: {manager}"
    );
    assert_eq!(
        dangling["message"],
        "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" but \
         there is no such object"
    );
    let other = api.acting_as("innocent", &[]);
    let serving =
        async || other.get(SECRETS).await.headers[SCHEMA_UID].to_str().unwrap().to_owned();
    assert_eq!(Value::from(serving().await), uid(&api, "flowschemas", "global-default").await);
    let level = json!({
        "metadata": {"name": "mine"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 10, "limitResponse": {"type": "Reject"},
        }},
    });
    api.post(&format!("{GROUP}/prioritylevelconfigurations"), &level).await.ok();
    assert_eq!(condition().await["status"], "False");
    assert_eq!(Value::from(serving().await), made["metadata"]["uid"]);
    let dump = api.get("/debug/api_priority_and_fairness/dump_priority_levels").await;
    let dump = String::from_utf8(dump.bytes.to_vec()).unwrap();
    let row = dump.lines().find(|line| line.starts_with("mine,")).unwrap();
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    assert_eq!(cells, ["mine", "0", "true", "false", "0", "0", "1", "0", "0", "0"]);
    api.delete(&format!("{GROUP}/prioritylevelconfigurations/mine")).await.ok();
    assert_eq!(condition().await["status"], "True");
    assert_eq!(Value::from(serving().await), uid(&api, "flowschemas", "global-default").await);
}

#[tokio::test(start_paused = true)]
async fn what_every_cluster_has_comes_back_and_what_was_made_ones_own_stays() {
    let api = Api::start().await;
    let kept = api.server.clone();
    let _upkeep = ended_with(tokio::spawn(async move { kept.run_bootstrap().await }));
    let path = |name: &str| format!("{GROUP}/flowschemas/{name}");
    api.delete(&path("service-accounts")).await.ok();
    let other = json!({"spec": {"matchingPrecedence": 9001}});
    api.merge(&path("system-nodes"), &other).await.ok();
    let own = json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}});
    api.merge(&path("global-default"), &own).await.ok();
    api.merge(&path("global-default"), &other).await.ok();
    seconds_pass(15).await;
    api.get(&path("service-accounts")).await.ok();
    let precedence =
        async |name: &str| api.get(&path(name)).await.ok()["spec"]["matchingPrecedence"].clone();
    assert_eq!(precedence("system-nodes").await, 500);
    assert_eq!(precedence("global-default").await, 9001);
}

/// Ends a task when dropped.
fn ended_with(task: tokio::task::JoinHandle<()>) -> impl Drop {
    struct Ends(tokio::task::JoinHandle<()>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    Ends(task)
}
