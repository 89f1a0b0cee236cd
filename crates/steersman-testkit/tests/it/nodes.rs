//! Simulated nodes are to the cluster what kubelets are: each may do what its own may.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Context, Controller, Impersonation, Next, Result};
use steersman_testkit::Cluster;

use crate::config_map;

/// Who did what to which resource.
type Seen = Arc<Mutex<BTreeSet<(String, String, String)>>>;

/// Asks to be told of all that is written.
fn configuration() -> ValidatingWebhookConfiguration {
    let rule = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
    });
    let webhook = json!({
        "name": "all.watcher.test", "clientConfig": {"url": "https://watcher.test/"},
        "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    let whole = json!({"metadata": {"name": "watcher"}, "webhooks": [webhook]});
    serde_json::from_value(whole).unwrap()
}

/// Notes who writes, and allows it.
fn allowed(request: &Request<Bytes>, seen: &Seen) -> Response<Bytes> {
    let review: Value = serde_json::from_slice(request.body()).unwrap();
    let asked = &review["request"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let resource = match text(&asked["subResource"]).as_str() {
        "" => text(&asked["resource"]["resource"]),
        subresource => format!("{}/{subresource}", text(&asked["resource"]["resource"])),
    };
    let user = text(&asked["userInfo"]["username"]);
    seen.lock().unwrap().insert((user, text(&asked["operation"]), resource));
    let response = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": asked["uid"], "allowed": true},
    });
    Response::new(response.to_string().into())
}

#[steersman::test(nodes = 2)]
async fn what_a_node_writes_it_writes_as_its_kubelet(cluster: Cluster) -> Result<()> {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let handler = move |request| std::future::ready(allowed(&request, &noted)).boxed();
    cluster.serve_webhooks("https://watcher.test", Arc::new(handler));
    cluster.client().create(&configuration()).await?;
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]},
    });
    cluster.client().create(&serde_json::from_value::<Pod>(pod)?).await?;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    cluster.eventually("web", move |pod| phase(pod).as_deref() == Some("Running")).await?;
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    cluster.client().patch::<Node, _>("node-1", &labels).await?;
    cluster.advance(Duration::from_secs(600)).await;
    let _: Option<Node> = cluster.client().get("node-1").await?;
    cluster.settle().await;
    assert!(cluster.client().get::<Pod>("web").await?.is_none());
    let seen = seen.lock().unwrap().clone();
    let by = |name: &str| -> BTreeSet<(&str, &str)> {
        let own = seen.iter().filter(|(user, ..)| user == name);
        own.map(|(_, operation, resource)| (operation.as_str(), resource.as_str())).collect()
    };
    let expected = [
        ("CREATE", "csinodes"),
        ("CREATE", "events"),
        ("CREATE", "leases"),
        ("CREATE", "nodes"),
        ("DELETE", "pods"),
        ("UPDATE", "leases"),
        ("UPDATE", "nodes/status"),
        ("UPDATE", "pods/status"),
    ];
    assert_eq!(by("system:node:node-1"), expected.into(), "{seen:?}");
    for (user, operation, resource) in &seen {
        let is_node = user.starts_with("system:node:");
        let of_nodes = ["leases", "nodes/status", "pods/status"].contains(&resource.as_str());
        assert!(is_node || !of_nodes, "{user}: {operation} {resource}");
        assert!(is_node || user != "steersman:simulated-nodes", "{operation} {resource}");
    }
    Ok(())
}

#[steersman::test]
async fn a_reconcile_acts_as_another_user_from_its_first_request_on(
    cluster: Cluster,
) -> Result<()> {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let ours = |map: &ConfigMap| map.metadata.name.as_deref() == Some("a");
    cluster.run(Controller::of::<ConfigMap>().only(ours).reconcile(
        async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            let jane = Impersonation::new("jane", &["dev"]).unwrap();
            ctx.act_as(&jane)?;
            let refused = ctx.live().get::<ConfigMap>("a").await.unwrap_err();
            let again = ctx.act_as(&jane).unwrap_err();
            SEEN.lock().unwrap().extend([refused.to_string(), again.to_string()]);
            Ok(Next::Settled)
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    cluster.settle().await;
    let seen = SEEN.lock().unwrap().clone();
    assert!(seen[0].contains("User \"jane\" cannot get resource \"configmaps\""), "{seen:?}");
    assert_eq!(seen[1], "a reconcile acts as a user from its first request on");
    Ok(())
}
