//! What is audited of requests: which events a policy asks for, what they tell, and what they never
//! tell.

mod backends;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_apiserver::audit::{AuditRecord, Auditing, Policy};
use steersman_apiserver::on_demand::{Held, OnDemand, Wanted};

use crate::api::{Api, CONFIG_MAPS, config_map, pod};
use crate::webhooks::{
    MUTATING, VALIDATING, configure, patched, serve_here, webhook, webhook_with,
};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server that audits by these rules, in YAML, and what it tells.
async fn audited(rules: &str) -> (Api, AuditRecord) {
    let api = Api::start().await;
    let record = audit(&api, rules);
    (api, record)
}

/// Begins to audit.
fn audit(api: &Api, rules: &str) -> AuditRecord {
    let record = AuditRecord::default();
    api.server.audit(Auditing::new(policy(rules)).recorded(&record));
    record
}

fn policy(rules: &str) -> Policy {
    Policy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")).unwrap()
}

/// The stages of the events of a verb, in order.
fn stages(record: &AuditRecord, verb: &str) -> Vec<String> {
    let events = record.documents();
    let of_verb = events.iter().filter(|event| event["verb"] == verb);
    of_verb.map(|event| event["stage"].as_str().unwrap().to_owned()).collect()
}

/// The last event of a verb.
#[track_caller]
fn last(record: &AuditRecord, verb: &str) -> Value {
    let events = record.documents();
    let event = events.into_iter().rfind(|event| event["verb"] == verb);
    event.unwrap_or_else(|| panic!("no event of {verb}"))
}

fn text(record: &AuditRecord) -> String {
    record.events().iter().map(|event| event.to_json()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_request_is_told_when_it_comes_and_when_it_is_answered() {
    let (api, record) = audited("- level: Metadata").await;
    let jane = api.acting_as("jane", &["system:masters"]);
    jane.config_map("a", &json!({"key": "hidden"})).await;
    assert_eq!(stages(&record, "create"), ["RequestReceived", "ResponseComplete"]);
    let events = record.documents();
    assert_eq!(events[0]["auditID"], events[1]["auditID"]);
    assert_eq!(events[0]["responseStatus"], Value::Null);
    assert_eq!(events[0]["stageTimestamp"], events[0]["requestReceivedTimestamp"]);
    let mut event = events[1].clone();
    assert_eq!(event["auditID"].as_str().unwrap().len(), 36);
    event["auditID"] = Value::Null;
    assert_eq!(
        event,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": null, "stage": "ResponseComplete", "requestURI": CONFIG_MAPS,
            "verb": "create",
            "user": {"username": "jane", "groups": ["system:masters", "system:authenticated"]},
            "objectRef": {
                "resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": "2025-01-01T00:00:00.000000Z",
            "stageTimestamp": "2025-01-01T00:00:00.000000Z",
            "annotations": {
                "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "",
            },
        })
    );
    assert!(!text(&record).contains("hidden"), "{}", text(&record));
}

#[tokio::test(start_paused = true)]
async fn fields_stand_in_the_order_of_kubernetes() {
    let (api, record) = audited("- level: RequestResponse").await;
    let request = Request::post(format!("{CONFIG_MAPS}?fieldManager=me"))
        .header("user-agent", "test/1")
        .header("x-forwarded-for", "1.2.3.4")
        .header("content-type", "application/json");
    let body = config_map("a", &json!({})).to_string();
    api.send(request.body(Full::new(body.into())).unwrap()).await.ok();
    let line = record.events().last().unwrap().to_json();
    let fields = [
        "kind",
        "apiVersion",
        "level",
        "auditID",
        "stage",
        "requestURI",
        "verb",
        "user",
        "sourceIPs",
        "userAgent",
        "objectRef",
        "responseStatus",
        "requestObject",
        "responseObject",
        "requestReceivedTimestamp",
        "stageTimestamp",
        "annotations",
    ];
    let mut from = 0;
    for field in fields {
        let found = line[from..].find(&format!("\"{field}\":"));
        from += found.unwrap_or_else(|| panic!("{field} is not there, or too early: {line}"));
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_are_told_from_their_level_on_and_never_below() {
    let rules = "\
- level: Metadata
  resources: [{resources: [secrets, serviceaccounts/token]}, {group: authentication.k8s.io}]
- level: Request
  verbs: [update]
- level: RequestResponse
";
    let (api, record) = audited(rules).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    api.post(SECRETS, &secret).await.ok();
    api.get(&format!("{SECRETS}/s")).await.ok();
    api.merge(&format!("{SECRETS}/s"), &json!({"stringData": {"password": "hunter2"}})).await.ok();
    api.post("/apis/authentication.k8s.io/v1/tokenreviews", &json!({"spec": {"token": "hunter2"}}))
        .await
        .ok();
    let told = text(&record);
    assert!(!told.contains("hunter2") && !told.contains("aHVudGVyMg"), "{told}");
    assert!(!told.contains("Object\":"), "{told}");

    let created = api.config_map("a", &json!({"key": "value"})).await;
    let event = last(&record, "create");
    assert_eq!(event["requestObject"]["data"]["key"], "value");
    assert_eq!(event["requestObject"]["kind"], "ConfigMap");
    assert_eq!(event["responseObject"], created);
    api.put(&format!("{CONFIG_MAPS}/a"), &config_map("a", &json!({"key": "new"}))).await.ok();
    let event = last(&record, "update");
    assert_eq!(event["requestObject"]["data"]["key"], "new");
    assert_eq!(event["responseObject"], Value::Null);
    api.merge(&format!("{CONFIG_MAPS}/a"), &json!({"data": {"key": "3"}})).await.ok();
    assert_eq!(last(&record, "patch")["requestObject"], json!({"data": {"key": "3"}}));
    // Whatever form the client reads, events tell JSON.
    api.get_as(CONFIG_MAPS, "application/vnd.kubernetes.protobuf").await;
    let listed = &last(&record, "list")["responseObject"];
    assert_eq!(listed["kind"], "ConfigMapList");
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    let event = last(&record, "delete");
    assert_eq!(event["responseStatus"]["status"], "Success", "{event}");
    assert_eq!(event["responseObject"]["kind"], "Status");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_told_with_its_defaults_and_without_its_managers_if_nobody_wants_them() {
    let (api, record) = audited("- level: RequestResponse\n  omitManagedFields: true").await;
    api.post("/api/v1/namespaces/default/pods", &pod("p")).await.ok();
    api.get("/api/v1/namespaces/default/pods").await.ok();
    let event = last(&record, "create");
    assert_eq!(event["requestObject"]["spec"]["restartPolicy"], "Always", "{event}");
    assert_eq!(event["responseObject"]["metadata"]["name"], "p");
    assert!(!text(&record).contains("managedFields"), "{}", text(&record));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_told_with_the_reason() {
    let (api, record) = audited("- level: RequestResponse").await;
    api.get(&format!("{CONFIG_MAPS}/gone")).await.refused(404);
    let event = last(&record, "get");
    assert_eq!(event["responseStatus"]["reason"], "NotFound");
    assert_eq!(event["responseStatus"]["code"], 404);
    assert_eq!(event["responseStatus"]["details"]["name"], "gone");
    assert_eq!(event["responseObject"]["kind"], "Status");
    let jane = api.acting_as("jane", &[]);
    jane.get(CONFIG_MAPS).await.refused(403);
    let event = last(&record, "list");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
    jane.get("/version").await.ok();
    let event = last(&record, "get");
    let reason = event["annotations"]["authorization.k8s.io/reason"].as_str().unwrap();
    let role = "RBAC: allowed by ClusterRoleBinding \"system:public-info-viewer\"";
    let discovery = "RBAC: allowed by ClusterRoleBinding \"system:discovery\"";
    assert!(reason.starts_with(role) || reason.starts_with(discovery), "{reason}");
    assert_eq!(event["objectRef"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn rules_choose_what_is_told() {
    let rules = "\
- level: None
  users: [jane]
- level: None
  nonResourceURLs: ['/healthz*', /version]
- level: Metadata
  omitStages: [RequestReceived]
  resources: [{resources: [configmaps], resourceNames: [a]}]
";
    let (api, record) = audited(rules).await;
    let admins = &["system:masters"];
    api.acting_as("jane", admins).config_map("a", &json!({})).await;
    api.get("/healthz").await;
    api.get("/version").await.ok();
    api.get(CONFIG_MAPS).await.ok();
    assert!(record.events().is_empty(), "{}", text(&record));
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(stages(&record, "get"), ["ResponseComplete"]);
    let metrics = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        "apiserver_audit_level_total{level=\"None\"} 5\n",
        "apiserver_audit_level_total{level=\"Metadata\"} 1\n",
        "apiserver_audit_event_total 1\n",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_when_it_begins_and_when_it_ends() {
    let (api, record) = audited("- level: RequestResponse").await;
    let watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(stages(&record, "watch"), ["RequestReceived", "ResponseStarted"]);
    assert_eq!(last(&record, "watch")["responseStatus"]["code"], 200);
    drop(watch);
    let all = ["RequestReceived", "ResponseStarted", "ResponseComplete"];
    assert_eq!(stages(&record, "watch"), all);
}

#[tokio::test(start_paused = true)]
async fn whom_a_user_acts_as_is_told_beside_the_user() {
    let (api, record) = audited("- level: Metadata").await;
    let request = Request::get("/version").header("impersonate-user", "jane");
    let request = request.header("impersonate-group", "dev");
    api.send(request.body(Full::default()).unwrap()).await.ok();
    let event = last(&record, "get");
    assert_eq!(event["user"]["username"], "system:admin");
    let acting = json!({"username": "jane", "groups": ["dev", "system:authenticated"]});
    assert_eq!(event["impersonatedUser"], acting);
    let constraint = &event["authenticationMetadata"]["impersonationConstraint"];
    assert_eq!(constraint, "impersonate:user-info");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_given_out_is_told_by_its_id() {
    let (api, record) = audited("- level: Metadata").await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, &json!({"metadata": {"name": "robot"}})).await.ok();
    let given = api.post(&format!("{accounts}/robot/token"), &json!({"spec": {}})).await.ok();
    let told = last(&record, "create")["annotations"].clone();
    let review = json!({"spec": {"token": given["status"]["token"]}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reviewed = api.post(reviews, &review).await.ok();
    let extra = &reviewed["status"]["user"]["extra"];
    let known = &extra["authentication.kubernetes.io/credential-id"][0];
    assert!(known.is_string());
    assert_eq!(told["authentication.kubernetes.io/issued-credential-id"], *known);
}

#[tokio::test(start_paused = true)]
async fn plug_ins_and_webhooks_say_what_they_did() {
    let (api, record) = audited("- level: Request").await;
    let labels = json!({"pod-security.kubernetes.io/audit": "baseline"});
    let namespace = json!({"metadata": {"name": "shop", "labels": labels}});
    api.post("/api/v1/namespaces", &namespace).await.ok();
    let mut risky = pod("p");
    risky["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    api.post("/api/v1/namespaces/shop/pods", &risky).await.ok();
    let annotations = last(&record, "create")["annotations"].clone();
    let violations = annotations["pod-security.kubernetes.io/audit-violations"].as_str().unwrap();
    assert!(
        violations.starts_with("would violate PodSecurity \"baseline:latest\""),
        "{violations}"
    );
    assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "privileged:latest");

    serve_here(&api, |_| {
        let mut answer = patched(&json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]));
        answer["auditAnnotations"] = json!({"seen": "yes", "no/name": "x"});
        answer
    });
    let mute = json!({
        "clientConfig": {"url": "https://127.0.0.1:1"}, "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
    });
    configure(&api, MUTATING, "m", &[webhook("adds")]).await;
    configure(&api, VALIDATING, "v", &[webhook_with("mute", &mute)]).await;
    api.config_map("a", &json!({})).await;
    let annotations = last(&record, "create")["annotations"].clone();
    let first = "webhook.admission.k8s.io/round_0_index_0";
    assert_eq!(annotations["adds.example.com/seen"], "yes");
    assert_eq!(annotations.get("adds.example.com/no/name"), None);
    assert_eq!(
        annotations[format!("mutation.{first}")],
        r#"{"configuration":"m","webhook":"adds.example.com","mutated":true}"#
    );
    let patch = annotations[format!("patch.{first}")].as_str().unwrap();
    assert!(patch.ends_with(r#","patchType":"JSONPatch"}"#), "{patch}");
    assert_eq!(annotations[format!("failed-open.validating.{first}")], "mute.example.com");
    // A patch is told also if it leaves the object as it is.
    api.config_map("b", &json!({"a": "b"})).await;
    let annotations = last(&record, "create")["annotations"].clone();
    assert_eq!(annotations[format!("patch.{first}")], patch);
    let mutation = annotations[format!("mutation.{first}")].as_str().unwrap();
    assert!(mutation.ends_with(r#""mutated":false}"#), "{mutation}");
}

/// Fails over whatever is looked at.
struct Panics;

impl OnDemand for Panics {
    fn wanted<'a>(&'a self, _: Wanted<'a>) -> BoxFuture<'a, Option<Held>> {
        async { panic!("out of order") }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_told_as_such() {
    let (api, record) = audited("- level: Metadata").await;
    api.server.on_demand(Arc::new(Panics));
    api.get(CONFIG_MAPS).await.refused(500);
    assert_eq!(stages(&record, "list"), ["RequestReceived", "Panic"]);
    let status = last(&record, "list")["responseStatus"].clone();
    assert_eq!(status["message"], "APIServer panic'd: out of order");
    assert_eq!(status["code"], 500);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_is_told_and_counted() {
    let api = Api::start().await;
    let record = audit(&api, "- level: Metadata");
    let (asked, has_asked) = tokio::sync::oneshot::channel();
    api.server.on_demand(Arc::new(Waits(std::sync::Mutex::new(Some(asked)))));
    let server = api.server.clone();
    let request = Request::builder().method(Method::GET).uri(CONFIG_MAPS);
    let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
    let asking = tokio::spawn(tower::ServiceExt::oneshot(server, request));
    has_asked.await.unwrap();
    asking.abort();
    let _ = asking.await;
    assert_eq!(stages(&record, "list"), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(last(&record, "list")["responseStatus"]["message"], "Connection closed early");
    let metrics = String::from_utf8(api.get("/metrics").await.bytes.to_vec()).unwrap();
    let line = "apiserver_request_aborts_total{group=\"\",resource=\"configmaps\",\
        scope=\"namespace\",subresource=\"\",verb=\"LIST\",version=\"v1\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
}

/// Never lets anybody look, and says when somebody wants to.
struct Waits(std::sync::Mutex<Option<tokio::sync::oneshot::Sender<()>>>);

impl OnDemand for Waits {
    fn wanted<'a>(&'a self, _: Wanted<'a>) -> BoxFuture<'a, Option<Held>> {
        if let Some(asked) = self.0.lock().unwrap().take() {
            asked.send(()).unwrap();
        }
        std::future::pending().boxed()
    }
}
