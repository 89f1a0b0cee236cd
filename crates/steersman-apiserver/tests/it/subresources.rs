//! Scale, binding, eviction.

use serde_json::json;

use crate::api::{Api, deployment, pod};
use crate::authorization::{bind, role, rule};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn scale_shows_and_sets_replicas() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 2)).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let mut scale = api.get(&path).await.ok();
    assert_eq!(scale["kind"], "Scale");
    assert_eq!(scale["apiVersion"], "autoscaling/v1");
    assert_eq!(scale["spec"]["replicas"], 2);
    assert_eq!(scale["status"]["selector"], "app=web");

    scale["spec"]["replicas"] = 5.into();
    assert_eq!(api.put(&path, &scale).await.ok()["spec"]["replicas"], 5);
    api.put(&path, &scale).await.refused(409);
    let patched = api.merge(&path, &json!({"spec": {"replicas": 7}})).await.ok();
    assert_eq!(patched["spec"]["replicas"], 7);
    let object = api.get(&format!("{DEPLOYMENTS}/web")).await.ok();
    assert_eq!(object["spec"]["replicas"], 7);
    assert_eq!(object["metadata"]["generation"], 3);

    let status = api.merge(&path, &json!({"spec": {"replicas": -1}})).await.refused(422);
    assert_eq!(
        status["message"],
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
}

#[tokio::test(start_paused = true)]
async fn a_scale_has_columns_of_its_own() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 2)).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let table = api.get_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let names: Vec<_> = columns.map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"], json!(["web", 2, 0, "0s"]));
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "web");
}

#[tokio::test(start_paused = true)]
async fn a_scale_of_nothing_does_not_say_so() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 0)).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = api.get(&path).await.ok();
    assert_eq!(scale["spec"], json!({}));
    let table = api.get_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    assert_eq!(table["rows"][0]["cells"], json!(["web", 0, 0, "0s"]));
}

#[tokio::test(start_paused = true)]
async fn fields_that_a_scale_does_not_have_are_told() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 2)).await.ok();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let odd = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "odd": 1}});
    for answer in [api.merge(&path, &odd).await, api.put(&path, &odd).await] {
        assert_eq!(answer.ok()["spec"], json!({"replicas": 3}));
        assert_eq!(answer.headers["warning"], "299 - \"unknown field \\\"spec.odd\\\"\"");
    }
    let strict = format!("{path}?fieldValidation=Strict");
    let status = api.put(&strict, &odd).await.refused(400);
    assert!(status["message"].as_str().unwrap().ends_with("unknown field \"spec.odd\""));
}

#[tokio::test(start_paused = true)]
async fn who_resizes_a_pod_owns_what_they_send() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/resize?fieldManager=me");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let resized = api.merge(&path, &label).await.ok();
    assert!(resized["metadata"].get("labels").is_none(), "{resized}");
    let managers = resized["metadata"]["managedFields"].as_array().unwrap();
    let mine = managers.iter().find(|entry| entry["manager"] == "me").unwrap();
    assert_eq!(mine["subresource"], "resize");
    assert!(mine["fieldsV1"]["f:metadata"]["f:labels"]["f:a"].is_object(), "{mine}");
    let applied = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "status": {"phase": "Pending"},
    });
    let path = format!("{PODS}/p/resize?fieldManager=them");
    let resized = api.patch(&path, "application/apply-patch+yaml", &applied).await.ok();
    let managers = resized["metadata"]["managedFields"].as_array().unwrap();
    let theirs = managers.iter().find(|entry| entry["manager"] == "them").unwrap();
    assert!(theirs["fieldsV1"]["f:status"]["f:phase"].is_object(), "{theirs}");
}

#[tokio::test(start_paused = true)]
async fn a_status_without_a_phase_gets_the_first() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    let volume = json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
    }});
    api.post("/api/v1/persistentvolumes", &volume).await.ok();
    for (path, phase) in [("namespaces/shop", "Active"), ("persistentvolumes/v", "Pending")] {
        let nothing = json!({"status": null});
        let written = api.merge(&format!("/api/v1/{path}/status"), &nothing).await.ok();
        assert_eq!(written["status"]["phase"], phase);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    let answer = api.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.ok()["status"], "Success");
    let bound = api.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["metadata"]["generation"], 1);
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "PodScheduled" && c["status"] == "True"));
    let fields = bound["metadata"]["managedFields"].to_string();
    assert!(!fields.contains("f:nodeName") && !fields.contains("PodScheduled"), "{fields}");
    let status = api.post(&format!("{PODS}/p/binding"), &binding).await.refused(409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
    );
}

#[tokio::test(start_paused = true)]
async fn bindings_can_also_be_posted_as_a_collection() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}});
    api.post("/api/v1/namespaces/default/bindings", &binding).await.ok();
    assert_eq!(api.get(&format!("{PODS}/p")).await.ok()["spec"]["nodeName"], "n1");
    let nowhere = json!({"metadata": {"name": "p"}, "target": {}});
    let status = api.post("/api/v1/namespaces/default/bindings", &nowhere).await.refused(500);
    assert_eq!(status["message"], "target.name: Required value");
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_is_deleted() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let answer = api.post(&format!("{PODS}/p/eviction"), &eviction).await;
    assert_eq!((answer.code, answer.ok()["status"].as_str()), (201, Some("Success")));
    api.get(&format!("{PODS}/p")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn reviews_are_answered_and_not_stored() {
    let api = Api::start().await;
    let who = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.ok();
    let groups = &who["status"]["userInfo"]["groups"];
    assert!(groups.as_array().unwrap().contains(&json!("system:masters")));
    let question = json!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let may =
        api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &question).await.ok();
    assert_eq!(may["status"]["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gated_or_on_its_way_out_is_not_bound() {
    let api = Api::start().await;
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    api.post(PODS, &gated).await.ok();
    let binding = json!({"metadata": {"name": "gated"}, "target": {"name": "n1"}});
    let status = api.post(&format!("{PODS}/gated/binding"), &binding).await.refused(409);
    assert!(status["message"].as_str().unwrap().ends_with("has non-empty .spec.schedulingGates"));
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(PODS, &held).await.ok();
    api.delete(&format!("{PODS}/held")).await.ok();
    let binding = json!({"metadata": {"name": "held"}, "target": {"name": "n1"}});
    api.post(&format!("{PODS}/held/binding"), &binding).await.refused(409);
}

#[tokio::test(start_paused = true)]
async fn a_binding_brings_labels_and_takes_the_nomination_away() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let nominated = json!({"status": {"nominatedNodeName": "n2"}});
    api.merge(&format!("{PODS}/p/status"), &nominated).await.ok();
    let other = json!({"metadata": {"name": "q"}, "target": {"name": "n1"}});
    api.post(&format!("{PODS}/p/binding"), &other).await.refused(400);
    let labels = json!({"topology.kubernetes.io/zone": "a"});
    let binding = json!({"metadata": {"name": "p", "labels": labels}, "target": {"name": "n1"}});
    api.post(&format!("{PODS}/p/binding?dryRun=All"), &binding).await.ok();
    assert!(api.get(&format!("{PODS}/p")).await.ok()["spec"].get("nodeName").is_none());
    api.post(&format!("{PODS}/p/binding"), &binding).await.ok();
    let bound = api.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(bound["metadata"]["labels"], labels);
    assert!(bound["status"].get("nominatedNodeName").is_none());
}

#[tokio::test(start_paused = true)]
async fn of_a_binding_only_the_kind_of_its_target_is_checked_and_that_it_has_a_name() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{PODS}/p/binding");
    for (target, why) in [
        (json!({"name": ""}), "target.name: Required value"),
        (
            json!({"kind": "Pod"}),
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \
             \"<empty>\", target.name: Required value]",
        ),
    ] {
        let binding = json!({"metadata": {"name": "p"}, "target": target});
        let status = api.post(&path, &binding).await.refused(500);
        assert_eq!(status["message"], why);
    }
    let labels = json!({"a": "-"});
    let odd = json!({"metadata": {"name": "p", "labels": labels}, "target": {"name": "N 1"}});
    api.post(&path, &odd).await.ok();
    let bound = api.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["labels"]),
        (&json!("N 1"), &labels)
    );
}

#[tokio::test(start_paused = true)]
async fn what_leads_to_a_node_is_discovered_and_answered_as_far_as_it_goes() {
    let api = Api::start().await;
    let core = api.get("/api/v1").await.ok();
    let resources = core["resources"].as_array().unwrap();
    let any = json!(["create", "delete", "get", "patch", "update"]);
    for (name, kind, verbs) in [
        ("nodes/proxy", "NodeProxyOptions", &any),
        ("services/proxy", "ServiceProxyOptions", &any),
        ("pods/proxy", "PodProxyOptions", &any),
        ("pods/attach", "PodAttachOptions", &json!(["create", "get"])),
        ("pods/exec", "PodExecOptions", &json!(["create", "get"])),
        ("pods/portforward", "PodPortForwardOptions", &json!(["create", "get"])),
        ("pods/log", "Pod", &json!(["get"])),
    ] {
        let found = resources.iter().find(|resource| resource["name"] == name).unwrap();
        assert_eq!((&found["kind"], &found["verbs"]), (&json!(kind), verbs), "{name}");
    }
    for part in ["log", "exec", "attach", "portforward", "proxy", "proxy/a/b"] {
        let status = api.get(&format!("{PODS}/absent/{part}")).await.refused(404);
        assert_eq!(status["message"], "pods \"absent\" not found");
    }
    let status = api.get(&format!("{PODS}/absent/log?tailLines=-1")).await.refused(422);
    let why = "PodLogOptions \"absent\" is invalid: tailLines: Invalid value: -1: must be greater \
               than or equal to 0";
    assert_eq!(status["message"], why);
    assert_eq!(status["details"]["kind"], "PodLogOptions");
    api.post(PODS, &pod("p")).await.ok();
    assert_eq!(api.get(&format!("{PODS}/p/log?tailLines=1")).await.code, 204);
    for part in ["exec", "attach", "portforward"] {
        let status = api.post(&format!("{PODS}/p/{part}"), &json!({})).await.refused(400);
        assert_eq!(status["message"], "pod p does not have a host assigned");
    }
    for part in ["exec", "attach", "log"] {
        let status = api.get(&format!("{PODS}/p/{part}?container=zz")).await.refused(400);
        assert_eq!(status["message"], "container zz is not valid for pod p");
    }
    let mut assigned = pod("q");
    assigned["spec"]["nodeName"] = "n".into();
    api.post(PODS, &assigned).await.ok();
    for part in ["log", "exec", "attach", "portforward", "proxy", "proxy/a/b"] {
        api.get(&format!("{PODS}/q/{part}")).await.refused(501);
    }
    api.delete(&format!("{PODS}/q/log")).await.refused(405);
}

#[tokio::test(start_paused = true)]
async fn who_may_only_get_does_not_get_into_a_pod() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    let parts = ["pods/exec", "pods/attach", "pods/portforward", "pods/log"];
    role(&api, "default", "reader", &[rule(&["get"], &[""], &parts)]).await;
    role(&api, "default", "writer", &[rule(&["create"], &[""], &parts)]).await;
    bind(&api, "default", "Role", "reader", "jane").await;
    bind(&api, "default", "Role", "reader", "joe").await;
    bind(&api, "default", "Role", "writer", "joe").await;
    let (jane, joe) = (api.acting_as("jane", &[]), api.acting_as("joe", &[]));
    for part in ["exec", "attach", "portforward"] {
        let path = format!("{PODS}/p/{part}");
        let status = jane.get(&path).await.refused(403);
        assert_eq!(status["message"], "pods \"p\" is forbidden: ", "{part}");
        joe.get(&path).await.refused(400);
    }
    assert_eq!(jane.get(&format!("{PODS}/p/log")).await.code, 204);
}
