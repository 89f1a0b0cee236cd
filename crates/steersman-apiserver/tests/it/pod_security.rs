//! The plug-in `PodSecurity` as clients meet it: what is refused, of what they are warned. What is
//! found wrong with which Pod is in the tables beside the checks.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, Config, PluginSelection};
use steersman_store::{Expected, WriteRequest};

use crate::api::{Answer, Api, clock, name, pod};

const PODS: &str = "/api/v1/namespaces/shop/pods";
const SHOP: &str = "/api/v1/namespaces/shop";

/// What is wrong with a Pod that says nothing of security, at the level `restricted`.
const PLAIN: &str = "allowPrivilegeEscalation != false (container \"web\" must set \
    securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"web\" \
    must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \
    \"web\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"web\" \
    must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

/// The labels of a namespace, by the part of their names that tells them apart.
fn labels(labels: &[(&str, &str)]) -> Value {
    let key = |name: &str| format!("pod-security.kubernetes.io/{name}");
    let labels = labels.iter().map(|(name, value)| (key(name), Value::from(*value)));
    Value::Object(labels.collect())
}

fn namespace(given: &[(&str, &str)]) -> Value {
    json!({"metadata": {"name": "shop", "labels": labels(given)}})
}

async fn with(given: &[(&str, &str)]) -> Api {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &namespace(given)).await.ok();
    api
}

async fn relabel(api: &Api, given: &[(&str, &str)]) -> Answer {
    api.merge(SHOP, &json!({"metadata": {"labels": labels(given)}})).await
}

fn privileged(name: &str) -> Value {
    let mut object = pod(name);
    object["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    object
}

fn restricted(name: &str) -> Value {
    let mut object = pod(name);
    object["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    object["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    object
}

/// The texts of the warnings of an answer.
fn warnings(answer: &Answer) -> Vec<String> {
    let text = |value: &http::HeaderValue| {
        let text = value.to_str().unwrap().strip_prefix("299 - \"").unwrap();
        text.strip_suffix('"').unwrap().replace("\\\"", "\"")
    };
    answer.headers.get_all("warning").iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_violates_its_namespace_is_refused() {
    let api = with(&[("enforce", "restricted")]).await;
    let answer = api.post(PODS, &pod("x")).await;
    let refused = answer.refused(403);
    let text =
        format!("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": {PLAIN}");
    assert_eq!(refused["message"], text);
    assert_eq!(refused["reason"], "Forbidden");
    assert_eq!(refused["details"], json!({"name": "x", "kind": "pods"}));
    assert!(warnings(&answer).is_empty(), "nobody is warned of what is refused");
    api.post(&format!("{PODS}?dryRun=All"), &pod("x")).await.refused(403);
    assert!(warnings(&api.post(PODS, &restricted("y")).await).is_empty());
    let elsewhere = api.post("/api/v1/namespaces/default/pods", &privileged("x")).await;
    assert_eq!((elsewhere.code, warnings(&elsewhere).len()), (201, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_shows_the_version_and_the_generated_name() {
    let api = with(&[("enforce", "baseline"), ("enforce-version", "v1.22")]).await;
    let mut object = privileged("");
    object["metadata"] = json!({"generateName": "web-"});
    let refused = api.post(PODS, &object).await.refused(403);
    let name = refused["details"]["name"].as_str().unwrap();
    assert_eq!((&name[..4], name.len()), ("web-", 9));
    assert_eq!(
        refused["message"],
        format!(
            "pods \"{name}\" is forbidden: violates PodSecurity \"baseline:v1.22\": privileged \
             (container \"web\" must not set securityContext.privileged=true)"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_is_counted() {
    let api =
        with(&[("enforce", "baseline"), ("warn", "restricted"), ("warn-version", "v1.99")]).await;
    api.post(PODS, &privileged("bad")).await.refused(403);
    api.post(PODS, &pod("plain")).await.ok();
    let metrics = api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    for [decision, mode, level, version] in [
        ["deny", "enforce", "baseline", "latest"],
        ["allow", "enforce", "baseline", "latest"],
        ["deny", "warn", "restricted", "future"],
    ] {
        let line = format!(
            "pod_security_evaluations_total{{decision=\"{decision}\",mode=\"{mode}\",\
             policy_level=\"{level}\",policy_version=\"{version}\",request_operation=\"create\",\
             resource=\"pod\",subresource=\"\"}} 1\n"
        );
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_without_force_is_a_warning() {
    let api =
        with(&[("warn", "restricted"), ("warn-version", "v1.30"), ("audit", "baseline")]).await;
    for path in [&format!("{PODS}?dryRun=All"), PODS] {
        let answer = api.post(path, &pod("x")).await;
        answer.ok();
        let text = format!("would violate PodSecurity \"restricted:v1.30\": {PLAIN}");
        assert_eq!(warnings(&answer), [text]);
    }
}

#[tokio::test(start_paused = true)]
async fn workloads_are_warned_of_and_not_refused() {
    let api = with(&[("enforce", "restricted")]).await;
    let template = |restart: &str| {
        let mut spec = pod("x")["spec"].take();
        spec["restartPolicy"] = restart.into();
        json!({"metadata": {"labels": {"app": "x"}}, "spec": spec})
    };
    let selected = || {
        let selector = json!({"matchLabels": {"app": "x"}});
        json!({"selector": selector, "template": template("Always")})
    };
    let job = || json!({"template": template("Never")});
    let bodies = [
        ("apis/apps/v1", "deployments", json!({"spec": selected()})),
        ("apis/apps/v1", "replicasets", json!({"spec": selected()})),
        ("apis/apps/v1", "statefulsets", json!({"spec": selected()})),
        ("apis/apps/v1", "daemonsets", json!({"spec": selected()})),
        ("apis/batch/v1", "jobs", json!({"spec": job()})),
        (
            "apis/batch/v1",
            "cronjobs",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job()}}}),
        ),
        (
            "api/v1",
            "replicationcontrollers",
            json!({"spec": {"selector": {"app": "x"}, "template": template("Always")}}),
        ),
        ("api/v1", "podtemplates", json!({"template": template("Always")})),
    ];
    let expected = format!("would violate PodSecurity \"restricted:latest\": {PLAIN}");
    for (group, plural, mut body) in bodies {
        body["metadata"] = json!({"name": "x"});
        let path = format!("/{group}/namespaces/shop/{plural}");
        let created = api.post(&path, &body).await;
        created.ok();
        assert!(warnings(&created).contains(&expected), "{plural}: {:?}", warnings(&created));
        let changed = json!({"metadata": {"labels": {"a": "b"}}});
        let changed = api.merge(&format!("{path}/x"), &changed).await;
        changed.ok();
        assert!(warnings(&changed).contains(&expected), "{plural}: {:?}", warnings(&changed));
    }
    let scaled = json!({"spec": {"replicas": 2}});
    let scaled = api.merge("/apis/apps/v1/namespaces/shop/deployments/x/scale", &scaled).await;
    assert!(warnings(&scaled).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_there_is_judged_again_when_its_images_change() {
    let api = with(&[]).await;
    api.post(PODS, &privileged("x")).await.ok();
    relabel(&api, &[("enforce", "baseline")]).await.ok();
    let path = format!("{PODS}/x");
    let unimportant = [
        (path.clone(), json!({"metadata": {"labels": {"a": "b"}}})),
        (path.clone(), json!({"spec": {"activeDeadlineSeconds": 60}})),
        (format!("{path}/status"), json!({"status": {"phase": "Running"}})),
    ];
    for (path, change) in unimportant {
        let answer = api.merge(&path, &change).await;
        answer.ok();
        assert!(warnings(&answer).is_empty());
    }
    let mut object = api.get(&path).await.ok();
    object["spec"]["containers"][0]["image"] = "nginx:2".into();
    let refused = api.put(&path, &object).await.refused(403);
    assert_eq!(
        refused["message"],
        "pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": privileged (container \
         \"web\" must not set securityContext.privileged=true)"
    );
    assert_eq!(name(&api.delete(&path).await.ok()), "x");
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_must_be_as_sound_as_the_others() {
    let api = with(&[("enforce", "baseline")]).await;
    api.post(PODS, &pod("x")).await.ok();
    let path = format!("{PODS}/x/ephemeralcontainers");
    let debug = |security: Value| {
        let debug = json!({"name": "debug", "image": "busybox", "securityContext": security});
        json!({"spec": {"ephemeralContainers": [debug]}})
    };
    let refused = api.merge(&path, &debug(json!({"capabilities": {"add": ["SYS_PTRACE"]}}))).await;
    assert_eq!(
        refused.refused(403)["message"],
        "pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": non-default \
         capabilities (container \"debug\" must not include \"SYS_PTRACE\" in \
         securityContext.capabilities.add)"
    );
    api.merge(&path, &debug(json!({}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn labels_that_mean_nothing_are_refused() {
    let api = Api::start().await;
    let wrong = namespace(&[("enforce", "strict"), ("warn-version", "1.36")]);
    let refused = api.post("/api/v1/namespaces", &wrong).await.refused(422);
    assert_eq!(
        refused["message"],
        "Namespace \"shop\" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: \
         Invalid value: \"strict\": must be one of privileged, baseline, restricted, \
         metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.36\": must \
         be \"latest\" or \"v1.x\"]"
    );
    let causes = refused["details"]["causes"].as_array().unwrap();
    let field = "metadata.labels[pod-security.kubernetes.io/enforce]";
    assert_eq!((causes.len(), &causes[0]["field"]), (2, &json!(field)));
    api.post("/api/v1/namespaces", &namespace(&[])).await.ok();
    let refused = relabel(&api, &[("audit", "")]).await.refused(422);
    assert_eq!(
        refused["message"],
        "Namespace \"shop\" is invalid: metadata.labels[pod-security.kubernetes.io/audit]: Invalid \
         value: \"\": must be one of privileged, baseline, restricted"
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_labels_from_before_may_stay_and_count_as_the_strictest() {
    let lax = Api::start().await;
    let mut config = Config::new(Arc::clone(&lax.store), clock());
    config.admission = PluginSelection::new([], ["PodSecurity", "ServiceAccount"]).unwrap();
    let lax = Api { server: ApiServer::start(config).await.unwrap(), store: lax.store };
    lax.post("/api/v1/namespaces", &namespace(&[("enforce", "strict")])).await.ok();
    lax.post(PODS, &privileged("unjudged")).await.ok();

    let api = Api::over(lax.store).await;
    api.merge(SHOP, &json!({"metadata": {"annotations": {"a": "b"}}})).await.ok();
    relabel(&api, &[("enforce", "stricter")]).await.refused(422);
    let refused = api.post(PODS, &pod("x")).await.refused(403);
    let text =
        format!("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": {PLAIN}");
    assert_eq!(refused["message"], text);
    api.post(PODS, &restricted("y")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn whoever_enforces_more_is_told_which_pods_violate_it() {
    let api = with(&[]).await;
    for name in ["c", "a", "b"] {
        api.post(PODS, &privileged(name)).await.ok();
    }
    for name in ["e", "d"] {
        api.post(PODS, &pod(name)).await.ok();
    }
    let mut shares = pod("f");
    shares["spec"]["hostNetwork"] = true.into();
    api.post(PODS, &shares).await.ok();
    api.post(PODS, &restricted("sound")).await.ok();

    let missing = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != \
                   true, seccompProfile";
    let expected = [
        "existing pods in namespace \"shop\" violate the new PodSecurity enforce level \
         \"restricted:latest\"",
        &format!("a (and 2 other pods): privileged, {missing}"),
        &format!("d (and 1 other pod): {missing}"),
        &format!("f: host namespaces, {missing}"),
    ];
    let change = json!({"metadata": {"labels": labels(&[("enforce", "restricted")])}});
    for path in [&format!("{SHOP}?dryRun=All"), SHOP] {
        assert_eq!(warnings(&api.merge(path, &change).await), expected);
    }
    let quiet: [&[(&str, &str)]; 5] = [
        &[("warn", "baseline")],
        &[("enforce", "restricted"), ("audit", "restricted")],
        &[("enforce", "baseline")],
        &[("enforce", "privileged"), ("enforce-version", "v1.20")],
        &[("enforce-version", "latest")],
    ];
    for change in quiet {
        assert!(warnings(&relabel(&api, change).await).is_empty(), "{change:?}");
    }
    let told = relabel(&api, &[("enforce", "baseline"), ("enforce-version", "v1.30")]).await;
    assert_eq!(warnings(&told).len(), 3);
    let told = relabel(&api, &[("enforce-version", "v1.29")]).await;
    assert_eq!(
        warnings(&told),
        [
            "existing pods in namespace \"shop\" violate the new PodSecurity enforce level \
             \"baseline:v1.29\"",
            "a (and 2 other pods): privileged",
            "f: host namespaces",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn of_very_many_pods_those_of_different_controllers_are_looked_at_first() {
    let api = with(&[]).await;
    let put = async |name: String, owner: &str, bad: bool| {
        let mut object = if bad { privileged(&name) } else { restricted(&name) };
        let owner =
            json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": owner, "controller": true});
        object["metadata"]["ownerReferences"] = json!([owner]);
        let key = format!("/registry/pods/shop/{name}");
        let write = WriteRequest::put(key, object.to_string(), Expected::Absent);
        api.store.write(write).await.unwrap();
    };
    for i in 0..3005 {
        put(format!("a-{i:04}"), "one", i == 3004).await;
    }
    put("z".to_owned(), "two", true).await;
    assert_eq!(
        warnings(&relabel(&api, &[("enforce", "baseline")]).await),
        [
            "new PodSecurity enforce level only checked against the first 3000 of 3006 existing \
             pods",
            "existing pods in namespace \"shop\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "z: privileged",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn defaults_are_filled_in_before_a_pod_is_judged() {
    let api = with(&[("enforce", "restricted")]).await;
    let mut object = restricted("x");
    object["spec"]["volumes"] = json!([{"name": "v"}]);
    api.post(PODS, &object).await.ok();
}

#[tokio::test(start_paused = true)]
async fn who_turns_app_armor_off_by_annotation_does_so_by_field() {
    let api = with(&[("enforce", "baseline")]).await;
    let mut object = pod("x");
    let key = "container.apparmor.security.beta.kubernetes.io/web";
    object["metadata"]["annotations"] = json!({key: "unconfined"});
    assert_eq!(
        api.post(PODS, &object).await.refused(403)["message"],
        "pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": forbidden AppArmor \
         profiles (container \"web\" and annotation must not set AppArmor profile type to \
         \"Unconfined\", \"container.apparmor.security.beta.kubernetes.io/web=\"unconfined\"\")"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_cannot_be_read_asks_for_more_than_nothing() {
    let only = PluginSelection::without_controllers();
    let off = PluginSelection::new([], ["NamespaceLifecycle", "LimitRanger"]).unwrap();
    for plugins in [only, off.by_default("ServiceAccount", false)] {
        let api = Api::with_plugins(plugins).await;
        let write = WriteRequest::put("/registry/namespaces/shop", "{", Expected::Absent);
        api.store.write(write).await.unwrap();
        let status = api.post(PODS, &privileged("x")).await.refused(500);
        assert_eq!(status["reason"], "InternalError", "{status}");
    }
}
