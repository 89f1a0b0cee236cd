//! PUT.

use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, deployment, version};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    *object.pointer_mut(pointer).unwrap() = value;
    object
}

#[tokio::test(start_paused = true)]
async fn an_update_replaces_the_object_and_moves_its_version() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let updated = api.put(&path, &with(created.clone(), "/data", json!({"k": "2"}))).await.ok();
    assert_eq!(updated["data"]["k"], "2");
    assert!(version(&updated) > version(&created));
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_leaves_the_object_unchanged() {
    let api = Api::start().await;
    let first = api.config_map("a", &json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let second = api.put(&path, &with(first.clone(), "/data", json!({"k": "2"}))).await.ok();
    let status = api.put(&path, &with(first, "/data", json!({"k": "3"}))).await.refused(409);
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(api.get(&path).await.ok(), second);
}

#[tokio::test(start_paused = true)]
async fn without_a_version_the_last_writer_wins_where_the_kind_allows_it() {
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "1"})).await;
    let updated =
        api.put(&format!("{CONFIG_MAPS}/a"), &config_map("a", &json!({"k": "2"}))).await.ok();
    assert_eq!(updated["data"]["k"], "2");

    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    api.post(leases, &lease).await.ok();
    let status = api.put(&format!("{leases}/l"), &lease).await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.resourceVersion");
    assert!(status["message"].as_str().unwrap().ends_with("must be specified for an update"));
}

#[tokio::test(start_paused = true)]
async fn some_kinds_are_created_by_put_and_others_are_not() {
    let api = Api::start().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let answer = api.put(path, &json!({"metadata": {"name": "l"}, "spec": {}})).await;
    assert_eq!(answer.code, 201);
    let status =
        api.put(&format!("{CONFIG_MAPS}/a"), &config_map("a", &json!({}))).await.refused(404);
    assert_eq!(status["message"], "configmaps \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_changes_nothing_writes_nothing() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let mut events =
        api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&created))).await;
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(api.put(&path, &created).await.ok(), created);
    assert_eq!(api.put(&path, &config_map("a", &json!({"k": "1"}))).await.ok(), created);
    assert_eq!(api.merge(&path, &json!({"data": {"k": "1"}})).await.ok(), created);
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn identity_cannot_change() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let status =
        api.put(&path, &with(created.clone(), "/metadata/uid", json!("other"))).await.refused(409);
    let told = status["message"].as_str().unwrap();
    assert!(told.contains("Code: 4, Key: /configmaps/default/a, ResourceVersion: 0"), "{told}");
    assert!(told.contains("Precondition failed: UID in precondition: other"), "{told}");
    let moved = with(created.clone(), "/metadata/namespace", json!("other"));
    let status = api.put(&path, &moved).await.refused(400);
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let renamed = with(created.clone(), "/metadata/name", json!("b"));
    let status = api.put(&path, &renamed).await.refused(400);
    assert_eq!(
        status["message"],
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let older = with(created, "/metadata/creationTimestamp", json!("2001-01-01T00:00:00Z"));
    let unchanged = api.put(&path, &older).await.ok();
    assert_ne!(unchanged["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
    for (field, value) in [
        ("deletionTimestamp", json!("2030-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(5)),
    ] {
        let mut ending = unchanged.clone();
        ending["metadata"][field] = value;
        let status = api.put(&path, &ending).await.refused(422);
        assert_eq!(status["details"]["causes"][0]["field"], format!("metadata.{field}"));
    }
}

#[tokio::test(start_paused = true)]
async fn generation_counts_changes_of_the_desired_state_only() {
    let api = Api::start().await;
    let created = api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let scaled = api.put(&path, &with(labelled, "/spec/replicas", json!(3))).await.ok();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let status = json!({"status": {"replicas": 3}});
    let reported = api.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(reported["metadata"]["generation"], 2);
    assert_eq!(reported["status"]["replicas"], 3);
    assert_eq!(created["metadata"]["uid"], reported["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn another_way_to_write_an_amount_is_no_change_of_it() {
    let api = Api::start().await;
    let container = json!({
        "name": "c", "image": "i", "resources": {"requests": {"memory": "1Gi"}},
    });
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let claim = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    let deployment = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
    });
    let mut set = deployment.clone();
    set["serviceName"] = "web".into();
    set["volumeClaimTemplates"] = json!([{"metadata": {"name": "d"}, "spec": claim}]);
    let in_template = "/spec/template/spec/containers/0/resources/requests/memory";
    let in_claim = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
    for (path, spec, pointer, may_change) in [
        ("apis/apps/v1/namespaces/default/deployments", deployment, in_template, true),
        ("apis/apps/v1/namespaces/default/statefulsets", set, in_claim, false),
        (
            "apis/batch/v1/namespaces/default/jobs",
            json!({"template": {"spec": pod}}),
            in_template,
            false,
        ),
        (
            "api/v1/namespaces/default/pods",
            pod.clone(),
            "/spec/containers/0/resources/requests/memory",
            false,
        ),
        (
            "api/v1/namespaces/default/persistentvolumeclaims",
            claim.clone(),
            "/spec/resources/requests/storage",
            false,
        ),
    ] {
        let object = json!({"metadata": {"name": "web"}, "spec": spec});
        let created = api.post(&format!("/{path}"), &object).await.ok();
        let path = format!("/{path}/web");
        let same = with(created.clone(), pointer, json!("1073741824"));
        let updated = api.put(&path, &same).await.ok();
        assert_eq!(*updated.pointer(pointer).unwrap(), "1073741824", "{path}");
        assert_eq!(updated["metadata"]["generation"], created["metadata"]["generation"], "{path}");
        assert!(version(&updated) > version(&created), "{path}");
        let answer = api.put(&path, &with(updated, pointer, json!("2Gi"))).await;
        if may_change {
            assert_eq!(answer.ok()["metadata"]["generation"], 2, "{path}");
        } else {
            answer.refused(422);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn status_is_written_through_its_own_path_only() {
    let api = Api::start().await;
    let path = format!("{DEPLOYMENTS}/web");
    let mut object = deployment("web", 1);
    object["status"] = json!({"replicas": 9});
    let created = api.post(DEPLOYMENTS, &object).await.ok();
    assert_ne!(created["status"]["replicas"], 9);

    let mut both = created.clone();
    both["spec"]["replicas"] = 5.into();
    both["status"] = json!({"replicas": 4});
    let updated = api.put(&path, &both).await.ok();
    assert_eq!(updated["spec"]["replicas"], 5);
    assert_ne!(updated["status"]["replicas"], 4);

    let mut both = updated.clone();
    both["spec"]["replicas"] = 7.into();
    both["metadata"]["labels"] = json!({"a": "b"});
    both["status"] = json!({"replicas": 4});
    let reported = api.put(&format!("{path}/status"), &both).await.ok();
    assert_eq!(reported["spec"]["replicas"], 5);
    assert_eq!(reported["status"]["replicas"], 4);
    assert!(reported["metadata"].get("labels").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_an_update_changes_nothing() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let changed = with(created.clone(), "/data", json!({"k": "2"}));
    let answer = api.put(&format!("{CONFIG_MAPS}/a?dryRun=All"), &changed).await.ok();
    assert_eq!(answer["data"]["k"], "2");
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.ok(), created);
}

#[tokio::test(start_paused = true)]
async fn causes_are_told_as_often_as_kubernetes_finds_them() {
    const NODES: &str = "/api/v1/nodes";
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let api = Api::start().await;
    let label = json!({"metadata": {"labels": {"a b": "c"}}});
    let finalizer = json!({"metadata": {"finalizers": ["bare"]}});
    let nameless = json!({"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"});
    let owner = json!({"metadata": {"ownerReferences": [nameless]}});
    let grace = json!({"metadata": {"deletionGracePeriodSeconds": 3}});
    api.config_map("a", &json!({})).await;
    api.post(DEPLOYMENTS, &deployment("a", 1)).await.ok();
    api.post(PODS, &crate::api::pod("a")).await.ok();
    api.post(NODES, &json!({"metadata": {"name": "a"}})).await.ok();
    let taint = json!({"spec": {"taints": [{"key": "a", "effect": "Never"}]}});
    let status = api.merge(&format!("{NODES}/a"), &taint).await.refused(422);
    let causes = status["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 2, "nodes are looked at twice: {causes:?}");
    assert_eq!(causes[0], causes[1]);
    for (path, change, times) in [
        (format!("{CONFIG_MAPS}/a"), &label, 4),
        (format!("{CONFIG_MAPS}/a"), &owner, 4),
        (format!("{CONFIG_MAPS}/a"), &finalizer, 2),
        (format!("{CONFIG_MAPS}/a"), &grace, 2),
        (format!("{DEPLOYMENTS}/a"), &label, 3),
        (format!("{DEPLOYMENTS}/a"), &finalizer, 1),
        (format!("{PODS}/a/status"), &label, 3),
        (format!("{NODES}/a"), &label, 4),
    ] {
        let status = api.merge(&path, change).await.refused(422);
        let causes = status["details"]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), times, "{path}: {causes:?}");
        assert!(causes.iter().all(|cause| *cause == causes[0]), "{path}: {causes:?}");
        let message = status["message"].as_str().unwrap();
        assert_eq!(message.matches("metadata.").count(), 1, "and once in the message: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_to_itself_is_shown_by_a_dry_run_and_never_stored() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let link = json!({"metadata": {"selfLink": "/x"}});
    let shown = api.merge(&format!("{path}?dryRun=All"), &link).await.ok();
    assert_eq!(shown["metadata"]["selfLink"], "/x");
    let stored = api.merge(&path, &link).await.ok();
    assert!(stored["metadata"].get("selfLink").is_none());
}

#[tokio::test(start_paused = true)]
async fn labels_of_an_endpoint_slice_are_a_new_generation() {
    const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let api = Api::start().await;
    let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": []});
    api.post(SLICES, &slice).await.ok();
    let path = format!("{SLICES}/a");
    for (metadata, generation) in
        [(json!({"annotations": {"a": "b"}}), 1), (json!({"labels": {"a": "b"}}), 2)]
    {
        let changed = api.merge(&path, &json!({"metadata": metadata})).await.ok();
        assert_eq!(changed["metadata"]["generation"], generation);
    }
}
