//! The plug-in `NodeRestriction`: nodes that roles allow everything are kept to what is theirs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::api::{Answer, Api, pod};
use crate::authorization::{bind, role, rule};

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A server, and a node that may do everything as far as roles are concerned.
async fn start() -> (Api, Api) {
    let api = Api::start().await;
    role(&api, "", "everything", &[rule(&["*"], &["*"], &["*"])]).await;
    let n1 = unrestricted(&api, "n1").await;
    (api, n1)
}

async fn unrestricted(api: &Api, name: &str) -> Api {
    let user = format!("system:node:{name}");
    bind(api, "", "ClusterRole", "everything", &user).await;
    api.acting_as(&user, &["system:nodes"])
}

#[track_caller]
fn refused(answer: &Answer, expected: &str) {
    assert_eq!(answer.refused(403)["message"], expected);
}

/// An object with some fields set, by path.
fn with(mut object: Value, fields: &[(&str, Value)]) -> Value {
    for (path, value) in fields {
        let mut at = &mut object;
        for step in path.split('.') {
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[step],
            };
        }
        *at = value.clone();
    }
    object
}

async fn run_pod(api: &Api, name: &str, node: &str) -> Value {
    api.post(PODS, &with(pod(name), &[("spec.nodeName", node.into())])).await.ok()
}

async fn mirror(api: &Api) -> Value {
    let node = api.post(NODES, &json!({"metadata": {"name": "n1"}})).await.ok();
    let owner = json!({
        "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"],
        "controller": true,
    });
    with(
        pod("m"),
        &[
            ("spec.nodeName", "n1".into()),
            ("metadata.annotations", json!({MIRROR: "hash"})),
            ("metadata.ownerReferences", json!([owner])),
        ],
    )
}

/// Fields of a Pod, and why a node may not set them so.
type Refused = (Vec<(&'static str, Value)>, &'static str);

/// What a mirror of what a node runs does not refer to.
fn references() -> Vec<Refused> {
    vec![
        (
            vec![("spec.serviceAccountName", "default".into())],
            r#"node "n1" can not create pods that reference serviceaccounts"#,
        ),
        (
            vec![("spec.imagePullSecrets", json!([{"name": "s"}]))],
            r#"node "n1" can not create pods that reference secrets"#,
        ),
        (
            vec![("spec.containers.0.envFrom", json!([{"configMapRef": {"name": "c"}}]))],
            r#"node "n1" can not create pods that reference configmaps"#,
        ),
        (
            vec![("spec.resourceClaims", json!([{"name": "r", "resourceClaimName": "r"}]))],
            r#"node "n1" can not create pods that reference resourceclaims"#,
        ),
        (
            vec![(
                "spec.volumes",
                json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            )],
            r#"node "n1" can not create pods that reference persistentvolumeclaims"#,
        ),
        (
            vec![("spec.volumes", json!([{"name": "v", "csi": {"driver": "example.com"}}]))],
            r#"node "n1" can not create pods that reference csidrivers (via CSI volumes)"#,
        ),
        (
            vec![(
                "spec.volumes",
                json!([{"name": "v", "projected": {"sources": [
                    {"downwardAPI": {"items": []}}, {"serviceAccountToken": {"path": "token"}},
                ]}}]),
            )],
            r#"node "n1" can not create pods that reference serviceaccounts (via projected volumes)"#,
        ),
        (
            vec![("spec.volumes", json!([{"name": "v", "projected": {"sources": [{}]}}]))],
            r#"error checking mirror pod for API references: unknown source for projected volume "v""#,
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_node_makes_only_pods_that_mirror_what_it_runs() {
    let (api, n1) = start().await;
    let mirror = mirror(&api).await;
    let owner = "metadata.ownerReferences.0";
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "1"});
    for (fields, why) in [
        (
            vec![("metadata.annotations", Value::Null)],
            r#"pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods"#,
        ),
        (
            vec![("spec.nodeName", "n2".into())],
            r#"node "n1" can only create pods with spec.nodeName set to itself"#,
        ),
        (
            vec![("metadata.ownerReferences", Value::Null)],
            r#"node "n1" can only create pods with an owner reference set to itself"#,
        ),
        (
            vec![(
                "metadata.ownerReferences",
                json!([mirror["metadata"]["ownerReferences"][0], other]),
            )],
            r#"node "n1" can only create pods with a single owner reference set to itself"#,
        ),
        (
            vec![(owner, other.clone())],
            r#"node "n1" can only create pods with an owner reference set to itself"#,
        ),
        (
            vec![("metadata.ownerReferences.0.controller", false.into())],
            r#"node "n1" can only create pods with a controller owner reference set to itself"#,
        ),
        (
            vec![("metadata.ownerReferences.0.blockOwnerDeletion", true.into())],
            r#"node "n1" must not set blockOwnerDeletion on an owner reference"#,
        ),
    ]
    .into_iter()
    .chain(references())
    {
        let answer = n1.post(PODS, &with(mirror.clone(), &fields)).await;
        refused(&answer, &format!("pods \"m\" is forbidden: {why}"));
    }
    let uid = mirror["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap();
    let other_uid = with(mirror.clone(), &[("metadata.ownerReferences.0.uid", "x".into())]);
    let why = format!("node n1 UID mismatch: expected x got {uid}");
    refused(&n1.post(PODS, &other_uid).await, &format!("pods \"m\" is forbidden: {why}"));

    let volumes = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}]);
    n1.post(PODS, &with(mirror.clone(), &[("spec.volumes", volumes)])).await.ok();
    api.delete(&format!("{NODES}/n1")).await.ok();
    let lost = n1.post(PODS, &with(mirror, &[("metadata.name", "lost".into())])).await.refused(404);
    assert_eq!(lost["message"], "node \"n1\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_node_ends_and_reports_on_pods_that_run_on_it() {
    let (api, n1) = start().await;
    for (name, node) in [("mine", "n1"), ("other", "n2")] {
        run_pod(&api, name, node).await;
    }
    let of = |name: &str| format!("{PODS}/{name}");
    let forbidden = |name: &str, why: &str| format!("pods {name:?} is forbidden: {why}");

    refused(
        &n1.merge(&of("mine"), &json!({"metadata": {"labels": {"a": "b"}}})).await,
        &forbidden(
            "mine",
            r#"unexpected operation "UPDATE", node "n1" can only create and delete mirror pods"#,
        ),
    );
    let status = |name: &str| format!("{PODS}/{name}/status");
    let running = json!({"status": {"phase": "Running"}});
    n1.merge(&status("mine"), &running).await.ok();
    refused(
        &n1.merge(&status("other"), &running).await,
        &forbidden(
            "other",
            r#"node "n1" can only update pod status for pods with spec.nodeName set to itself"#,
        ),
    );
    for (change, why) in [
        (json!({"metadata": {"labels": {"a": "b"}}}), "labels through pod status"),
        (
            json!({"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "c"}]}}),
            "resource claim statues",
        ),
        (
            json!({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}}),
            "extended resource claim status",
        ),
    ] {
        let why = format!("node \"n1\" cannot update {why}");
        refused(&n1.merge(&status("mine"), &change).await, &forbidden("mine", &why));
    }
    for part in ["ephemeralcontainers", "resize"] {
        let answer = n1.merge(&format!("{PODS}/mine/{part}"), &json!({})).await;
        let why = format!(
            "unexpected pod subresource {part:?}, only 'status' and 'eviction' are allowed"
        );
        refused(&answer, &forbidden("mine", &why));
    }
    let evict = async |name: &str| {
        n1.post(&format!("{PODS}/{name}/eviction"), &json!({"metadata": {"name": name}})).await
    };
    refused(
        &evict("other").await,
        &forbidden("other", "node n1 can only evict pods with spec.nodeName set to itself"),
    );
    assert_eq!(evict("none").await.refused(404)["message"], "pod \"none\" not found");
    evict("mine").await.ok();
    refused(
        &n1.delete(&of("other")).await,
        &forbidden("other", r#"node "n1" can only delete pods with spec.nodeName set to itself"#),
    );
    n1.delete(&format!("{PODS}/mine?gracePeriodSeconds=0")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_node_writes_only_its_own_node_and_not_what_brings_pods_to_it() {
    let (api, n1) = start().await;
    let labels = |labels: &[&str]| -> Value {
        labels.iter().map(|label| ((*label).to_owned(), Value::from("x"))).collect()
    };
    let own = ["example.com/a", "kubernetes.io/hostname", "node.kubernetes.io/b"];
    let not_own = ["k8s.io/c", "node-restriction.kubernetes.io/d"];
    let node = json!({"metadata": {"name": "n1", "labels": labels(&own)}});
    refused(
        &n1.post(NODES, &json!({"metadata": {"name": "n2"}})).await,
        r#"nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2""#,
    );
    refused(
        &n1.post(NODES, &json!({"metadata": {"generateName": "n"}})).await,
        r#"nodes "n" is forbidden: node "n1" is not allowed to modify node """#,
    );
    let all: Vec<&str> = own.into_iter().chain(not_own).collect();
    refused(
        &n1.post(NODES, &with(node.clone(), &[("metadata.labels", labels(&all))])).await,
        r#"nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: k8s.io/c, node-restriction.kubernetes.io/d"#,
    );
    let source = json!({"configMap": {
        "name": "c", "namespace": "kube-system", "kubeletConfigKey": "kubelet",
    }});
    refused(
        &n1.post(NODES, &with(node.clone(), &[("spec.configSource", source.clone())])).await,
        r#"nodes "n1" is forbidden: node "n1" is not allowed to create pods with a non-nil configSource"#,
    );
    let taints = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
    n1.post(NODES, &with(node, &[("spec.taints", taints)])).await.ok();
    api.post(NODES, &json!({"metadata": {"name": "n2"}})).await.ok();

    let path = format!("{NODES}/n1");
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"}]);
    for (change, why) in [
        (
            json!({"spec": {"configSource": source}}),
            r#"node "n1" is not allowed to update configSource to a new non-nil configSource"#,
        ),
        (json!({"spec": {"taints": null}}), r#"node "n1" is not allowed to modify taints"#),
        (
            json!({"metadata": {"ownerReferences": owner}}),
            r#"node "n1" is not allowed to modify ownerReferences"#,
        ),
        (
            json!({"metadata": {"labels": labels(&not_own)}}),
            "is not allowed to modify labels: k8s.io/c, node-restriction.kubernetes.io/d",
        ),
    ] {
        let answer = n1.merge(&path, &change).await;
        refused(&answer, &format!("nodes \"n1\" is forbidden: {why}"));
    }
    n1.merge(&path, &json!({"metadata": {"labels": {"node.kubernetes.io/b": "y"}}})).await.ok();
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    n1.merge(&format!("{path}/status"), &ready).await.ok();
    let other = format!("{NODES}/n2");
    for answer in [n1.merge(&format!("{other}/status"), &ready).await, n1.delete(&other).await] {
        refused(
            &answer,
            r#"nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2""#,
        );
    }
    n1.delete(&path).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_node_writes_of_a_claim_only_how_large_it_is() {
    let (api, n1) = start().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({
        "metadata": {"name": "c"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let only = "may only update PVC status";
    refused(
        &n1.post(claims, &claim).await,
        &format!("persistentvolumeclaims \"c\" is forbidden: {only}"),
    );
    api.post(claims, &claim).await.ok();
    let path = format!("{claims}/c");
    for answer in [
        n1.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await,
        n1.delete(&path).await,
    ] {
        refused(&answer, &format!("persistentvolumeclaims \"c\" is forbidden: {only}"));
    }
    let status = format!("{path}/status");
    let grown = json!({"status": {
        "capacity": {"storage": "1Gi"},
        "conditions": [{"type": "FileSystemResizePending", "status": "True"}],
        "allocatedResources": {"storage": "1Gi"},
    }});
    n1.merge(&status, &grown).await.ok();
    let refused =
        n1.merge(&status, &json!({"metadata": {"labels": {"a": "b"}}})).await.refused(403);
    let expected = "persistentvolumeclaims \"c\" is forbidden: node \"n1\" is not allowed to update \
                    fields other than status.quantity and status.conditions: \
                    +metadata.labels: {\"a\":\"b\"}";
    assert_eq!(refused["message"], expected);
}

/// A service account and a Pod on a node that runs as it.
async fn account(api: &Api) -> Value {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, &json!({"metadata": {"name": "a"}})).await.ok();
    let token = json!({"serviceAccountToken": {"path": "t", "audience": "vault"}});
    let volumes = json!([
        {"name": "t", "projected": {"sources": [token, {"serviceAccountToken": {"path": "d"}}]}},
        {"name": "c", "csi": {"driver": "csi.example.com"}},
    ]);
    let fields = [
        ("spec.nodeName", "n1".into()),
        ("spec.serviceAccountName", "a".into()),
        ("spec.volumes", volumes),
    ];
    api.post(PODS, &with(pod("p"), &fields)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_tokens_of_its_pods_for_the_audiences_that_they_name() {
    let (api, n1) = start().await;
    let pod = account(&api).await;
    let driver = json!({
        "metadata": {"name": "csi.example.com"}, "spec": {"tokenRequests": [{"audience": "csi"}]},
    });
    api.post("/apis/storage.k8s.io/v1/csidrivers", &driver).await.ok();
    let n2 = unrestricted(&api, "n2").await;
    // Roles must not allow audiences here.
    api.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/everything").await.ok();
    let tokens = rule(&["create"], &[""], &["serviceaccounts/token"]);
    role(&api, "", "everything", &[tokens]).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/a/token";
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
    let request = |bound: &Value, audiences: &[&str]| json!({"spec": {"boundObjectRef": bound, "audiences": audiences}});
    let other_uid = with(bound.clone(), &[("uid", "x".into())]);
    let not_found = with(bound.clone(), &[("name", "none".into())]);
    for (node, bound, audiences, why) in [
        (&n1, &Value::Null, &[][..], "node requested token not bound to a pod"),
        (
            &n1,
            &json!({"apiVersion": "v1", "kind": "Secret", "name": "p", "uid": "x"}),
            &[],
            "node requested token not bound to a pod",
        ),
        (
            &n1,
            &json!({"apiVersion": "v1", "kind": "Pod", "name": "p"}),
            &[],
            "node requested token with a pod binding without a uid",
        ),
        (
            &n1,
            &other_uid,
            &[],
            "the UID in the bound object reference (x) does not match the UID in record. The object \
             might have been deleted and then recreated",
        ),
        (&n2, &bound, &[], "node requested token bound to a pod scheduled on a different node"),
        (&n1, &bound, &["a", "b"], "node may only request 0 or 1 audiences"),
        (
            &n1,
            &bound,
            &["else"],
            "audience \"else\" not found in pod spec volume, system:node:n1 is not authorized to \
             request tokens for this audience",
        ),
    ] {
        let answer = node.post(path, &request(bound, audiences)).await;
        refused(&answer, &format!("serviceaccounts \"a\" is forbidden: {why}"));
    }
    let lost = n1.post(path, &request(&not_found, &[])).await.refused(404);
    assert_eq!(lost["message"], "pod \"none\" not found");
    for audiences in [&[][..], &["vault"], &["csi"]] {
        n1.post(path, &request(&bound, audiences)).await.ok();
    }
    let verb = "request-serviceaccounts-token-audience";
    role(&api, "", "audiences", &[rule(&[verb], &[""], &["else"])]).await;
    bind(&api, "", "ClusterRole", "audiences", "system:node:n1").await;
    n1.post(path, &request(&bound, &["else"])).await.ok();

    api.delete("/apis/storage.k8s.io/v1/csidrivers/csi.example.com").await.ok();
    refused(
        &n1.post(path, &request(&bound, &["else"])).await,
        "serviceaccounts \"a\" is forbidden: error validating audience \"else\": \
         csidriver.storage.k8s.io \"csi.example.com\" not found",
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_has_one_lease_one_csi_node_and_slices_of_its_own() {
    let (api, n1) = start().await;
    let leases =
        |namespace: &str| format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let own = leases("kube-node-lease");
    let named = |name: &str| json!({"metadata": {"name": name}, "spec": {}});
    let lease =
        |name: &str, why: &str| format!("leases.coordination.k8s.io {name:?} is forbidden: {why}");
    let namespace = "can only access leases in the \"kube-node-lease\" system namespace";
    refused(&n1.post(&leases("default"), &named("n1")).await, &lease("n1", namespace));
    let same = "can only access node lease with the same name as the requesting node";
    refused(&n1.post(&own, &named("n2")).await, &lease("n2", same));
    n1.post(&own, &named("n1")).await.ok();
    api.post(&own, &named("n2")).await.ok();
    let renewed = json!({"spec": {"holderIdentity": "n1"}});
    n1.merge(&format!("{own}/n1"), &renewed).await.ok();
    refused(&n1.merge(&format!("{own}/n2"), &renewed).await, &lease("n2", same));
    refused(&n1.delete(&format!("{own}/n2")).await, &lease("n2", same));
    n1.delete(&format!("{own}/n1")).await.ok();

    let csi = "/apis/storage.k8s.io/v1/csinodes";
    let node = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    refused(
        &n1.post(csi, &node("n2")).await,
        "csinodes.storage.k8s.io \"n2\" is forbidden: can only access CSINode with the same name \
         as the requesting node",
    );
    n1.post(csi, &node("n1")).await.ok();
    n1.delete(&format!("{csi}/n1")).await.ok();

    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let slice = |name: &str, node: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "driver": "example.com", "nodeName": node, "devices": [{"name": "d"}],
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            },
        })
    };
    let refusal = |name: &str, verb: &str| {
        format!(
            "resourceslices.resource.k8s.io {name:?} is forbidden: can only {verb} ResourceSlice \
             with the same NodeName as the requesting node"
        )
    };
    refused(&n1.post(slices, &slice("other", "n2")).await, &refusal("other", "create"));
    n1.post(slices, &slice("mine", "n1")).await.ok();
    api.post(slices, &slice("other", "n2")).await.ok();
    refused(&n1.delete(&format!("{slices}/other")).await, &refusal("other", "delete"));
    // Of a collection nobody is told the names.
    refused(&n1.delete(slices).await, &refusal("Unknown", "delete"));
    let own = format!("{slices}?fieldSelector=spec.nodeName%3Dn1");
    n1.delete(&own).await.ok();
    assert_eq!(api.get(slices).await.ok()["items"].as_array().unwrap().len(), 1);
}

/// A signing request for a user in a group.
pub(crate) fn signing_request(name: &str, signer: &str, user: &str, group: &str) -> Value {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, group);
    subject.push(DnType::CommonName, user);
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(request), "signerName": signer,
            "usages": ["digital signature", "client auth"],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_node_asks_for_certificates_in_its_own_name() {
    let (_api, n1) = start().await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    for signer in ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"] {
        let other = signing_request("r", signer, "system:node:n2", "system:nodes");
        refused(
            &n1.post(requests, &other).await,
            "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: can only create a \
             node CSR with CN=system:node:n1",
        );
        let broken = with(other, &[("spec.request", STANDARD.encode("none").into())]);
        refused(
            &n1.post(requests, &broken).await,
            "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: unable to parse \
             csr: PEM block type must be CERTIFICATE REQUEST",
        );
        let own =
            signing_request(&signer.replace('/', "-"), signer, "system:node:n1", "system:nodes");
        n1.post(requests, &own).await.ok();
    }
    let elsewhere = signing_request("e", "example.com/s", "system:node:n2", "system:nodes");
    n1.post(requests, &elsewhere).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_name_writes_nothing() {
    let (api, _) = start().await;
    let nameless = unrestricted(&api, "").await;
    refused(
        &nameless
            .post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "c"}}))
            .await,
        "configmaps \"c\" is forbidden: could not determine node from user \"system:node:\"",
    );
}
