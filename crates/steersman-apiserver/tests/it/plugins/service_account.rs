//! `ServiceAccount`.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{NAMESPACES, PODS, pod_with, why};
use crate::api::{Api, name, pod};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A server that wants accounts, with one that has these fields.
async fn with_account(name: &str, fields: Value) -> Api {
    let api = super::with(&["ServiceAccount"]).await;
    let mut account = fields;
    account["metadata"]["name"] = name.into();
    api.post(ACCOUNTS, &account).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_as_the_default_account_with_its_token_in_every_container() {
    let api = with_account("default", json!({})).await;
    let mut wanted = pod("p");
    wanted["spec"]["initContainers"] = json!([{"name": "i", "image": "b"}]);
    let created = api.post(&format!("{PODS}?fieldManager=me"), &wanted).await.ok();
    let spec = &created["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["serviceAccount"], "default");
    let volume = &spec["volumes"][0];
    let suffix = name_of(volume).strip_prefix("kube-api-access-").unwrap();
    assert_eq!(suffix.len(), 5);
    assert_eq!(
        volume["projected"],
        json!({"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {
                "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }},
            {"downwardAPI": {"items": [{
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                "path": "namespace",
            }]}},
        ]})
    );
    let mount = json!([{"name": name_of(volume), "readOnly": true, "mountPath": TOKEN_PATH}]);
    for list in ["initContainers", "containers"] {
        assert_eq!(spec[list][0]["volumeMounts"], mount, "{list}");
    }
    // What plug-ins add, nobody owns.
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    for field in ["f:volumes", "f:serviceAccountName", "f:serviceAccount"] {
        assert!(owned.get(field).is_none(), "{field}: {owned}");
    }
    let container = &owned["f:containers"]["k:{\"name\":\"web\"}"];
    assert!(container.is_object() && container.get("f:volumeMounts").is_none(), "{owned}");
}

fn name_of(object: &Value) -> &str {
    object["name"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_the_same_and_an_update_mounts_nothing() {
    let api = with_account("default", json!({})).await;
    let shown = api.post(&format!("{PODS}?dryRun=All"), &pod("p")).await.ok();
    assert!(name_of(&shown["spec"]["volumes"][0]).starts_with("kube-api-access-"));
    api.get(&format!("{PODS}/p")).await.refused(404);
    let created = api.post(PODS, &pod("p")).await.ok();
    let mut changed = created.clone();
    changed["metadata"]["labels"] = json!({"a": "b"});
    let updated = api.put(&format!("{PODS}/p"), &changed).await.ok();
    assert_eq!(updated["spec"], created["spec"]);
    assert_eq!(updated["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_mount_of_ones_own_stays_and_a_volume_of_the_name_is_used() {
    let api = with_account("default", json!({})).await;
    let own = json!([{"name": "v", "mountPath": TOKEN_PATH}]);
    let spec = json!({
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "web", "image": "nginx", "volumeMounts": own}],
    });
    let created = api.post(PODS, &pod_with("own", &spec)).await.ok();
    assert_eq!(created["spec"]["containers"][0]["volumeMounts"], own);
    assert_eq!(created["spec"]["volumes"].as_array().unwrap().len(), 1);

    let spec = json!({"volumes": [{"name": "kube-api-access-mine", "emptyDir": {}}]});
    let created = api.post(PODS, &pod_with("named", &spec)).await.ok();
    let mount = &created["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], "kube-api-access-mine");
    assert_eq!(created["spec"]["volumes"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_mounted_unless_the_pod_or_else_the_account_does_not_want_it() {
    for (account, pod, mounted) in [
        (json!(null), json!(null), true),
        (json!(false), json!(null), false),
        (json!(false), json!(true), true),
        (json!(true), json!(false), false),
    ] {
        let fields = match &account {
            Value::Null => json!({}),
            wanted => json!({"automountServiceAccountToken": wanted}),
        };
        let api = with_account("default", fields).await;
        let mut spec = json!({});
        if !pod.is_null() {
            spec["automountServiceAccountToken"] = pod.clone();
        }
        let created = api.post(PODS, &pod_with("p", &spec)).await.ok();
        let is_mounted = created["spec"].get("volumes").is_some();
        assert_eq!(is_mounted, mounted, "account {account}, pod {pod}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_lends_its_pull_secrets_to_pods_without_any() {
    let secrets = json!({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]});
    let api = with_account("default", secrets).await;
    let created = api.post(PODS, &pod("p")).await.ok();
    assert_eq!(created["spec"]["imagePullSecrets"], json!([{"name": "a"}, {"name": "b"}]));
    let own = json!({"imagePullSecrets": [{"name": "c"}]});
    let created = api.post(PODS, &pod_with("q", &own)).await.ok();
    assert_eq!(created["spec"]["imagePullSecrets"], json!([{"name": "c"}]));
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_default_account_and_for_no_other() {
    let api = super::with(&["ServiceAccount"]).await;
    let begin = Instant::now();
    let spec = json!({"serviceAccountName": "robot"});
    let refused = api.post(PODS, &pod_with("p", &spec)).await.refused(403);
    assert_eq!(
        why(&refused),
        "pods \"p\" is forbidden: error looking up service account default/robot: serviceaccount \
         \"robot\" not found"
    );
    assert_eq!(begin.elapsed(), Duration::ZERO);

    let mut generated = pod("");
    generated["metadata"] = json!({"generateName": "web-"});
    let refused = api.post(PODS, &generated).await.refused(403);
    assert_eq!(
        why(&refused),
        "pods \"web-\" is forbidden: error looking up service account default/default: \
         serviceaccount \"default\" not found"
    );
    assert_eq!(begin.elapsed().as_millis(), 1350);

    let late = async {
        tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.ok();
        api.post(ACCOUNTS, &json!({"metadata": {"name": "default"}})).await.ok();
    };
    let wanted = pod("p");
    let (created, ()) = tokio::join!(api.post(PODS, &wanted), late);
    assert_eq!(name(&created.ok()), "p");
    assert_eq!(begin.elapsed().as_millis(), 2350, "it is there as soon as the account is");
}

/// What refers to a secret that the account does not name, and what is said about it.
fn referring() -> Vec<(Value, String)> {
    let env = json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]);
    let from = json!([{"secretRef": {"name": "x"}}]);
    let container = |field: &str, value: &Value| {
        let mut container = json!({"name": "c", "image": "b"});
        container[field] = value.clone();
        json!([container])
    };
    let no = "is not allowed because service account default does not reference that secret";
    let name = "referencing secret.secretName=\"x\"";
    vec![
        (
            json!({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}),
            format!("volume with secret.secretName=\"x\" {no}"),
        ),
        (
            json!({"initContainers": container("env", &env)}),
            format!("init container c with envVar E {name} {no}"),
        ),
        (
            json!({"initContainers": container("envFrom", &from)}),
            format!("init container c with envFrom {name} {no}"),
        ),
        (
            json!({"containers": container("env", &env)}),
            format!("container c with envVar E {name} {no}"),
        ),
        (
            json!({"containers": container("envFrom", &from)}),
            format!("container c with envFrom {name} {no}"),
        ),
        (
            json!({"imagePullSecrets": [{"name": "mine"}, {"name": "x"}]}),
            "imagePullSecrets[0].name=\"mine\" is not allowed because service account default \
             does not reference that imagePullSecret"
                .to_owned(),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_account_may_limit_its_pods_to_its_own_secrets() {
    for (annotation, limits) in [("true", true), ("1", true), ("false", false), ("yes", false)] {
        let api = with_account(
            "default",
            json!({
                "metadata": {"annotations": {
                    "kubernetes.io/enforce-mountable-secrets": annotation,
                }},
                "secrets": [{"name": "mine"}],
            }),
        )
        .await;
        for (n, (spec, text)) in referring().into_iter().enumerate() {
            let answer = api.post(PODS, &pod_with(&format!("p{n}"), &spec)).await;
            if limits {
                let refused = answer.refused(403);
                assert_eq!(why(&refused), format!("pods \"p{n}\" is forbidden: {text}"));
            } else {
                answer.ok();
            }
        }
        let own = json!({"volumes": [{"name": "v", "secret": {"secretName": "mine"}}]});
        api.post(PODS, &pod_with("own", &own)).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_is_limited_as_well() {
    let annotations = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    let api = with_account("default", json!({"metadata": {"annotations": annotations}})).await;
    api.post(PODS, &pod("p")).await.ok();
    let debug = |env: Value| {
        json!({"spec": {"ephemeralContainers": [{
            "name": "d", "image": "b", "terminationMessagePolicy": "File", "envFrom": env,
        }]}})
    };
    let path = format!("{PODS}/p/ephemeralcontainers");
    let secret = debug(json!([{"secretRef": {"name": "x"}}]));
    let refused = api.merge(&path, &secret).await.refused(500);
    assert_eq!(
        why(&refused),
        "ephemeral container d with envFrom referencing secret.secretName=\"x\" is not allowed \
         because service account default does not reference that secret"
    );
    api.merge(&path, &debug(json!([]))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_mirror_pod_is_left_alone_and_may_refer_to_nothing() {
    let api = super::with(&["ServiceAccount"]).await;
    let mirror = |name: &str, spec: Value| {
        let mut pod = pod_with(name, &spec);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "hash"});
        pod["spec"]["nodeName"] = "n".into();
        pod
    };
    let created = api.post(PODS, &mirror("p", json!({}))).await.ok();
    assert!(created["spec"].get("serviceAccountName").is_none(), "{created}");
    assert!(created["spec"].get("volumes").is_none(), "{created}");
    let projected =
        |source: Value| json!({"volumes": [{"name": "v", "projected": {"sources": [source]}}]});
    for (spec, text) in [
        (json!({"serviceAccountName": "default"}), "reference service accounts"),
        (json!({"imagePullSecrets": [{"name": "x"}]}), "reference secrets"),
        (json!({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}), "reference secrets"),
        (projected(json!({"secret": {"name": "x"}})), "reference secrets"),
        (
            projected(json!({"serviceAccountToken": {"path": "token"}})),
            "use ServiceAccountToken volume projections",
        ),
    ] {
        let refused = api.post(PODS, &mirror("q", spec)).await.refused(403);
        assert_eq!(why(&refused), format!("pods \"q\" is forbidden: a mirror pod may not {text}"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_account_is_that_of_the_pods_namespace() {
    let api = with_account("default", json!({})).await;
    api.post(NAMESPACES, &json!({"metadata": {"name": "shop"}})).await.ok();
    let refused = api.post("/api/v1/namespaces/shop/pods", &pod("p")).await.refused(403);
    assert!(why(&refused).contains("service account shop/default"), "{refused}");
}
