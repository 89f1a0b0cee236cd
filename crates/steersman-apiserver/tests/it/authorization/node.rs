//! Requests of nodes: what they may do depends on what runs on them.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_store::Revision;

use super::{bind, role, rule};
use crate::api::{Api, pod, version};

const CORE: &str = "/api/v1/namespaces/default";
const UNRELATED: &str = "no relationship found between node 'n1' and this object";

fn node(api: &Api, name: &str) -> Api {
    api.acting_as(&format!("system:node:{name}"), &["system:nodes"])
}

/// Makes a Pod on a node that needs a Secret, a ConfigMap, a claim, a resource claim, and an account.
async fn run_pod(api: &Api, name: &str, node: &str) {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod["spec"]["serviceAccountName"] = "account".into();
    pod["spec"]["volumes"] = json!([
        {"name": "s", "secret": {"secretName": "secret"}},
        {"name": "c", "configMap": {"name": "map"}},
        {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}},
    ]);
    pod["spec"]["resourceClaims"] = json!([{"name": "r", "resourceClaimName": "device"}]);
    api.post(&format!("{CORE}/pods"), &pod).await.ok();
}

/// Makes a volume that is bound to the claim and needs another Secret.
async fn bind_volume(api: &Api) {
    let volume = json!({
        "metadata": {"name": "volume"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "claim"},
            "csi": {
                "driver": "example.com", "volumeHandle": "v",
                "nodePublishSecretRef": {"namespace": "default", "name": "key"},
            },
        },
    });
    api.post("/api/v1/persistentvolumes", &volume).await.ok();
}

async fn attach(api: &Api, node: &str) {
    let attachment = json!({
        "metadata": {"name": "attachment"},
        "spec": {
            "attacher": "example.com", "nodeName": node,
            "source": {"persistentVolumeName": "volume"},
        },
    });
    api.post("/apis/storage.k8s.io/v1/volumeattachments", &attachment).await.ok();
    let slice = json!({
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "example.com", "nodeName": node,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d"}],
        },
    });
    api.post("/apis/resource.k8s.io/v1/resourceslices", &slice).await.ok();
}

/// What is said about a request that is refused.
async fn refusal(user: &Api, method: Method, path: &str) -> Option<String> {
    let request = Request::builder().method(method).uri(path);
    let answer = user.send(request.body(Full::default()).unwrap()).await;
    (answer.code == 403).then(|| answer.json()["message"].as_str().unwrap().to_owned())
}

/// The paths that depend on a relation.
const RELATED: &[&str] = &[
    "/api/v1/namespaces/default/secrets/secret",
    "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dsecret",
    "/api/v1/namespaces/default/secrets/key",
    "/api/v1/namespaces/default/configmaps/map",
    "/api/v1/namespaces/default/persistentvolumeclaims/claim",
    "/api/v1/persistentvolumes/volume",
    "/api/v1/namespaces/default/serviceaccounts/account",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/device",
    "/apis/storage.k8s.io/v1/volumeattachments/attachment",
    "/apis/resource.k8s.io/v1/resourceslices/slice",
    "/api/v1/namespaces/default/pods/web",
    "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dweb",
];

/// Which of the related paths a node may read.
async fn readable(api: &Api, name: &str) -> Vec<&'static str> {
    let node = node(api, name);
    let mut readable = Vec::new();
    for path in RELATED {
        match refusal(&node, Method::GET, path).await {
            None => readable.push(*path),
            Some(why) => {
                let expected =
                    format!(": no relationship found between node '{name}' and this object");
                assert!(why.ends_with(&expected), "{why}");
            }
        }
    }
    readable
}

#[tokio::test(start_paused = true)]
async fn a_node_reads_what_is_related_to_it_while_it_is() {
    let api = Api::start().await;
    assert!(readable(&api, "n1").await.is_empty());
    run_pod(&api, "web", "n1").await;
    run_pod(&api, "other", "n3").await;
    bind_volume(&api).await;
    attach(&api, "n1").await;
    assert_eq!(readable(&api, "n1").await, RELATED);
    assert!(readable(&api, "n2").await.is_empty());
    assert_eq!(readable(&api, "n3").await, RELATED[..8]);
    let token = format!("{CORE}/serviceaccounts/account/token");
    for (name, is_refused) in [("n1", false), ("n2", true), ("n3", false)] {
        assert_eq!(refusal(&node(&api, name), Method::POST, &token).await.is_some(), is_refused);
    }

    let volume = "/api/v1/persistentvolumes/volume";
    api.merge(volume, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.delete(volume).await.ok();
    api.delete("/apis/storage.k8s.io/v1/volumeattachments/attachment").await.ok();
    api.delete("/apis/resource.k8s.io/v1/resourceslices/slice").await.ok();
    let left = readable(&api, "n1").await;
    let gone = [RELATED[2], RELATED[5], RELATED[8], RELATED[9]];
    let expected: Vec<&str> = RELATED.iter().copied().filter(|path| !gone.contains(path)).collect();
    assert_eq!(left, expected);
    api.delete(&format!("{CORE}/pods/web?gracePeriodSeconds=0")).await.ok();
    assert!(readable(&api, "n1").await.is_empty());
    assert_eq!(readable(&api, "n3").await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_related_once_it_is_bound_and_by_what_is_added_to_it() {
    let api = Api::start().await;
    api.post(&format!("{CORE}/pods"), &pod("web")).await.ok();
    let n1 = node(&api, "n1");
    let path = format!("{CORE}/pods/web");
    assert!(refusal(&n1, Method::GET, &path).await.is_some());
    let binding = json!({"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}});
    api.post(&format!("{path}/binding"), &binding).await.ok();
    n1.get(&path).await.ok();
    let secret = format!("{CORE}/secrets/debug");
    assert!(refusal(&n1, Method::GET, &secret).await.is_some());
    let from = json!([{"secretRef": {"name": "debug"}}]);
    let debugger = json!([{"name": "debug", "image": "busybox", "envFrom": from}]);
    let added = json!({"spec": {"ephemeralContainers": debugger}});
    let strategic = "application/strategic-merge-patch+json";
    api.patch(&format!("{path}/ephemeralcontainers"), strategic, &added).await.ok();
    assert_eq!(refusal(&n1, Method::GET, &secret).await, None);
}

#[tokio::test(start_paused = true)]
async fn other_servers_and_those_that_start_later_decide_the_same() {
    let one = Api::start().await;
    let other = Api::over(Arc::clone(&one.store)).await;
    assert!(readable(&other, "n1").await.is_empty());
    run_pod(&one, "web", "n1").await;
    bind_volume(&one).await;
    attach(&one, "n1").await;
    let later = Api::over(Arc::clone(&one.store)).await;
    for api in [&one, &other, &later] {
        assert_eq!(readable(api, "n1").await, RELATED);
        assert!(readable(api, "n2").await.is_empty());
    }
    // History goes by while nobody asks.
    other.delete(&format!("{CORE}/pods/web?gracePeriodSeconds=0")).await.ok();
    let last = one.config_map("last", &json!({})).await;
    one.store.compact(Revision(version(&last))).await.unwrap();
    for api in [&one, &other, &later] {
        assert_eq!(readable(api, "n1").await, [RELATED[8], RELATED[9]]);
    }
}

/// What a node may do whatever runs on it.
const ALLOWED: &[(&str, &str)] = &[
    ("GET", "/api/v1/nodes/n1"),
    ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"),
    ("GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1&watch=1&timeoutSeconds=1"),
    ("POST", "/api/v1/nodes"),
    ("PUT", "/api/v1/nodes/n2"),
    ("PATCH", "/api/v1/nodes/n1/status"),
    ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"),
    ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D%3Dn1,status.phase!%3DFailed"),
    ("GET", "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn1"),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("DELETE", "/api/v1/namespaces/default/pods/web"),
    ("PATCH", "/api/v1/namespaces/default/pods/web/status"),
    ("POST", "/api/v1/namespaces/default/pods/web/eviction"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
    ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"),
    ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"),
    ("GET", "/apis/storage.k8s.io/v1/csinodes/n1"),
    ("POST", "/apis/storage.k8s.io/v1/csinodes"),
    ("POST", "/apis/resource.k8s.io/v1/resourceslices"),
    ("GET", "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1"),
    ("DELETE", "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1"),
    ("GET", "/api/v1/services"),
    ("GET", "/api/v1/namespaces/default/endpoints/kubernetes"),
    ("GET", "/apis/storage.k8s.io/v1/csidrivers"),
    ("GET", "/apis/node.k8s.io/v1/runtimeclasses"),
    ("POST", "/api/v1/namespaces/default/events"),
    ("PATCH", "/apis/events.k8s.io/v1/namespaces/default/events/e"),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
];

/// What a node may not do, and what it is told.
const REFUSED: &[(&str, &str, &str)] = &[
    ("GET", "/api/v1/namespaces/default/secrets/secret", UNRELATED),
    ("GET", "/api/v1/namespaces/default/secrets", "No Object name found"),
    ("GET", "/api/v1/secrets", "can only read namespaced object of this type"),
    ("POST", "/api/v1/namespaces/default/secrets", "can only read resources of this type"),
    ("DELETE", "/api/v1/namespaces/default/configmaps/m", "can only read resources of this type"),
    (
        "GET",
        "/api/v1/namespaces/default/persistentvolumeclaims",
        "can only get individual resources of this type",
    ),
    ("GET", "/api/v1/persistentvolumes/volume/status", "cannot get subresource"),
    (
        "GET",
        "/api/v1/namespaces/default/persistentvolumeclaims/claim/status",
        "can only get/update/patch this type",
    ),
    ("PATCH", "/api/v1/namespaces/default/persistentvolumeclaims/claim/status", UNRELATED),
    (
        "GET",
        "/api/v1/namespaces/default/serviceaccounts",
        "can only create tokens for individual service accounts",
    ),
    (
        "POST",
        "/api/v1/namespaces/default/serviceaccounts",
        "can only create tokens for individual service accounts",
    ),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/account/token", UNRELATED),
    (
        "GET",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        "can only get, create, update, patch, or delete a node lease",
    ),
    (
        "GET",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1",
        "can only access leases in the \"kube-node-lease\" system namespace",
    ),
    (
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2",
        "can only access node lease with the same name as the requesting node",
    ),
    (
        "GET",
        "/apis/storage.k8s.io/v1/csinodes",
        "can only get, create, update, patch, or delete a CSINode",
    ),
    ("GET", "/apis/storage.k8s.io/v1/csinodes/n1/status", "cannot authorize CSINode subresources"),
    (
        "DELETE",
        "/apis/storage.k8s.io/v1/csinodes/n2",
        "can only access CSINode with the same name as the requesting node",
    ),
    (
        "GET",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName!%3Dn1",
        "can only list/watch/deletecollection resourceslices with nodeName field selector",
    ),
    ("PUT", "/apis/resource.k8s.io/v1/resourceslices/slice", UNRELATED),
    ("GET", "/api/v1/nodes/n2", "node 'n1' cannot read 'n2', only its own Node object"),
    ("GET", "/api/v1/nodes", "node 'n1' cannot read all nodes, only its own Node object"),
    ("DELETE", "/api/v1/nodes/n1", ""),
    ("GET", "/api/v1/pods", "can only list/watch pods with spec.nodeName field selector"),
    (
        "GET",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2",
        "can only list/watch pods with spec.nodeName field selector",
    ),
    ("GET", "/api/v1/namespaces/default/pods/web", UNRELATED),
    ("GET", "/api/v1/namespaces/default/pods/web/log", ""),
    ("PUT", "/api/v1/namespaces/default/pods/web", ""),
    ("DELETE", "/api/v1/namespaces/default/pods", ""),
    ("GET", "/api/v1/namespaces/default/endpoints", ""),
    ("GET", "/apis/apps/v1/deployments", ""),
    ("GET", "/metrics", ""),
];

#[tokio::test(start_paused = true)]
async fn a_node_does_what_nodes_do_and_is_told_why_not_more() {
    let api = Api::start().await;
    let n1 = node(&api, "n1");
    let method = |method: &str| method.parse::<Method>().unwrap();
    for (verb, path) in ALLOWED {
        assert_eq!(refusal(&n1, method(verb), path).await, None, "{verb} {path}");
    }
    for (verb, path, why) in REFUSED {
        let told = refusal(&n1, method(verb), path).await;
        let told = told.unwrap_or_else(|| panic!("{verb} {path} is allowed"));
        assert!(told.contains("User \"system:node:n1\" cannot "), "{told}");
        let (_, told) = told.split_once("cannot ").unwrap();
        let reason = told.split_once(": ").map_or("", |(_, reason)| reason);
        assert_eq!(reason, *why, "{verb} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_name_and_the_group_make_a_node_and_roles_still_count() {
    let api = Api::start().await;
    let own = "/api/v1/nodes/n1";
    assert!(refusal(&api.acting_as("system:node:n1", &[]), Method::GET, own).await.is_some());
    assert!(refusal(&api.acting_as("n1", &["system:nodes"]), Method::GET, own).await.is_some());
    let nameless = node(&api, "");
    let told = refusal(&nameless, Method::GET, own).await.unwrap();
    assert!(told.ends_with(": unknown node for user \"system:node:\""), "{told}");

    let n1 = node(&api, "n1");
    let nodes = "/api/v1/nodes";
    bind(&api, "", "ClusterRole", "lost", "system:node:n1").await;
    let told = refusal(&n1, Method::GET, nodes).await.unwrap();
    let both = "node 'n1' cannot read all nodes, only its own Node object\n\
                RBAC: clusterrole.rbac.authorization.k8s.io \"lost\" not found";
    assert!(told.ends_with(both), "{told}");
    role(&api, "", "lister", &[rule(&["list"], &[""], &["nodes"])]).await;
    bind(&api, "", "ClusterRole", "lister", "system:node:n1").await;
    n1.get(nodes).await.ok();
}

#[tokio::test(start_paused = true)]
async fn questions_about_nodes_are_answered_like_their_requests() {
    let api = Api::start().await;
    run_pod(&api, "web", "n1").await;
    let ask = async |name: &str, attributes: Value| {
        let spec = json!({
            "user": format!("system:node:{name}"), "groups": ["system:nodes"],
            "resourceAttributes": attributes,
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        api.post(path, &json!({"spec": spec})).await.ok()["status"].clone()
    };
    let secret =
        json!({"verb": "get", "resource": "secrets", "namespace": "default", "name": "secret"});
    assert_eq!(ask("n1", secret.clone()).await, json!({"allowed": true}));
    let refused = json!({
        "allowed": false, "reason": "no relationship found between node 'n2' and this object",
    });
    assert_eq!(ask("n2", secret).await, refused);
    let pods =
        |selector: Value| json!({"verb": "list", "resource": "pods", "fieldSelector": selector});
    let is = json!({"key": "spec.nodeName", "operator": "In", "values": ["n1"]});
    let exists = json!({"key": "spec.nodeName", "operator": "Exists"});
    for (selector, allowed, ignored) in [
        (json!({"rawSelector": "spec.nodeName=n1"}), true, Value::Null),
        (json!({"rawSelector": "spec.nodeName=n2"}), false, Value::Null),
        (json!({"requirements": [is]}), true, Value::Null),
        (
            json!({"requirements": [is, exists]}),
            true,
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error".into(),
        ),
        (
            json!({"requirements": [exists]}),
            false,
            "spec.resourceAttributes.fieldSelector ignored due to parse error".into(),
        ),
    ] {
        let status = ask("n1", pods(selector.clone())).await;
        assert_eq!(status["allowed"], allowed, "{selector}");
        assert_eq!(status["evaluationError"], ignored, "{selector}");
    }
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let n1 = node(&api, "n1");
    let rules = n1.post(path, &json!({"spec": {"namespace": "default"}})).await.ok();
    assert_eq!(rules["status"]["incomplete"], true);
    let why = "node authorizer does not support user rule resolution";
    assert_eq!(rules["status"]["evaluationError"], why);
}

#[tokio::test(start_paused = true)]
async fn who_acts_as_a_node_may_do_what_the_node_may() {
    let api = Api::start().await;
    run_pod(&api, "web", "n1").await;
    let path = format!("{CORE}/pods/web");
    for (name, code) in [("n1", 200), ("n2", 403)] {
        let request = Request::get(&path)
            .header("Impersonate-User", format!("system:node:{name}"))
            .header("Impersonate-Group", "system:nodes");
        assert_eq!(api.send(request.body(Full::default()).unwrap()).await.code, code);
    }
}
