use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use serde_json::{Value, json};

use super::claims;
use super::identity::{ordinal_of, revision_of};
use super::plan::{Action, Revision, Rollout};
use super::status::{self, Done, Revisions};

const NOW: &str = "2030-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A set of three Pods, changed by a merge of `spec`.
fn set(spec: &Value) -> StatefulSet {
    let mut set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "set", "generation": 4},
        "spec": {
            "replicas": 3,
            "serviceName": "service",
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "main", "image": "new"}]}},
        },
    });
    merge(&mut set["spec"], spec);
    serde_json::from_value(set).unwrap()
}

fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}

/// A Pod by a word: `ready`, `old` (ready, of the old template), `starting`, `failed`, `leaving`.
fn pod(ordinal: i32, is: &str) -> Arc<Pod> {
    let name = format!("web-{ordinal}");
    let (phase, ready) = match is {
        "starting" => ("Pending", "False"),
        "failed" => ("Failed", "False"),
        _ => ("Running", "True"),
    };
    let revision = if is == "old" { "web-a" } else { "web-b" };
    let pod = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{ordinal}"),
            "labels": {"statefulset.kubernetes.io/pod-name": name,
                       "controller-revision-hash": revision},
            "deletionTimestamp": (is == "leaving").then_some(NOW),
        },
        "spec": {"containers": []},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2030-01-01T11:59:50Z"}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn template(image: &str) -> PodTemplateSpec {
    let template = json!({"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "main", "image": image}]}});
    serde_json::from_value(template).unwrap()
}

fn revision(name: &str, image: &str) -> Revision {
    Revision { name: name.into(), template: template(image) }
}

/// What is planned, as words such as `create web-0`.
fn planned(set: &StatefulSet, pods: &[(i32, &str)]) -> Vec<String> {
    let pods: Vec<_> = pods.iter().map(|(ordinal, is)| pod(*ordinal, is)).collect();
    planned_with(set, &pods, &|_| None)
}

fn planned_with(set: &StatefulSet, pods: &[Arc<Pod>], claims: claims::Find<'_>) -> Vec<String> {
    let (current, update) = (revision("web-a", "old"), revision("web-b", "new"));
    let rollout = Rollout { set, current, update, pods, claims, now: now() };
    let plan = rollout.plan();
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    let mut words: Vec<String> = Vec::new();
    for action in plan.steps.into_iter().flatten() {
        words.push(match action {
            Action::Create(pod) => format!("create {} of {}", name(&pod), revision_of(&pod)),
            Action::Provide(pod) => format!("provide {}", name(&pod)),
            Action::Reassign(pod) => format!("reassign {}", name(&pod)),
            Action::Repair(pod) => format!("repair {}", name(&pod)),
            Action::Delete(pod) => format!("delete {}", name(&pod)),
        });
    }
    words.extend(plan.update.iter().map(|pod| format!("update {}", name(pod))));
    words.extend(plan.waits_for_claim.then(|| "wait for a claim".to_owned()));
    words
}

#[test]
fn in_order_one_pod_is_created_when_all_before_it_are_available() {
    let set = set(&json!({}));
    assert_eq!(planned(&set, &[]), ["create web-0 of web-b"]);
    assert_eq!(planned(&set, &[(0, "starting")]), [] as [&str; 0]);
    assert_eq!(planned(&set, &[(0, "ready")]), ["create web-1 of web-b"]);
    assert_eq!(planned(&set, &[(0, "ready"), (2, "ready")]), ["create web-1 of web-b"]);
    assert_eq!(planned(&set, &[(0, "leaving")]), [] as [&str; 0]);
    assert_eq!(planned(&set, &[(0, "failed"), (1, "ready")]), ["delete web-0"]);
    let ready = [(0, "ready"), (1, "ready"), (2, "ready")];
    assert_eq!(planned(&set, &ready), [] as [&str; 0]);
}

#[test]
fn a_pod_keeps_the_prefix_of_its_name_beside_its_name() {
    let set = set(&json!({}));
    let (current, update) = (revision("web-a", "old"), revision("web-b", "new"));
    let rollout = Rollout { set: &set, current, update, pods: &[], claims: &|_| None, now: now() };
    let first = rollout.plan().steps.into_iter().flatten().next();
    let Some(Action::Create(pod)) = first else { panic!("no Pod is created") };
    assert_eq!(pod.metadata.name.as_deref(), Some("web-0"));
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
}

#[test]
fn in_parallel_all_come_and_go_at_once() {
    let set = set(&json!({"podManagementPolicy": "Parallel"}));
    let all = ["create web-0 of web-b", "create web-1 of web-b", "create web-2 of web-b"];
    assert_eq!(planned(&set, &[]), all);
    let pods = [(0, "starting"), (1, "failed"), (5, "ready"), (4, "starting"), (6, "leaving")];
    let expected = ["delete web-1", "create web-2 of web-b", "delete web-5", "delete web-4"];
    assert_eq!(planned(&set, &pods), expected);
}

#[test]
fn in_order_the_highest_goes_first_and_only_when_all_are_available() {
    let one = set(&json!({"replicas": 1}));
    assert_eq!(planned(&one, &[(0, "ready"), (1, "ready"), (2, "ready")]), ["delete web-2"]);
    assert_eq!(planned(&one, &[(0, "ready"), (1, "ready"), (2, "leaving")]), [] as [&str; 0]);
    assert_eq!(planned(&one, &[(0, "starting"), (1, "ready")]), [] as [&str; 0]);
    assert_eq!(planned(&one, &[(0, "ready"), (1, "starting"), (2, "ready")]), ["delete web-2"]);
    assert_eq!(planned(&one, &[(0, "ready"), (1, "starting"), (2, "starting")]), [] as [&str; 0]);
    assert_eq!(planned(&one, &[(0, "ready"), (1, "starting")]), ["delete web-1"]);
    let from_five = set(&json!({"replicas": 2, "ordinals": {"start": 5}}));
    assert_eq!(planned(&from_five, &[(5, "ready"), (6, "ready"), (0, "ready")]), ["delete web-0"]);
}

#[test]
fn an_update_takes_the_highest_ordinal_first_and_stops_at_the_partition() {
    let old = [(0, "old"), (1, "old"), (2, "old")];
    assert_eq!(planned(&set(&json!({})), &old), ["update web-2"]);
    let begun = [(0, "old"), (1, "old"), (2, "ready")];
    assert_eq!(planned(&set(&json!({})), &begun), ["update web-1"]);
    let by = |partition: i32| {
        set(&json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}}))
    };
    assert_eq!(planned(&by(2), &begun), [] as [&str; 0]);
    assert_eq!(planned(&by(1), &begun), ["update web-1"]);
    assert_eq!(planned(&by(9), &old), [] as [&str; 0]);
    let on_delete = set(&json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}));
    assert_eq!(planned(&on_delete, &old), [] as [&str; 0]);
    assert_eq!(planned(&on_delete, &old[..2]), ["create web-2 of web-b"]);
    assert_eq!(planned(&by(3), &old[..2]), ["create web-2 of web-a"]);
}

#[test]
fn an_update_waits_for_the_pod_it_has_just_replaced() {
    let parallel = set(&json!({"podManagementPolicy": "Parallel"}));
    assert_eq!(planned(&parallel, &[(0, "old"), (1, "old"), (2, "starting")]), [] as [&str; 0]);
    assert_eq!(
        planned(&parallel, &[(0, "old"), (1, "old")]),
        ["create web-2 of web-b"],
        "what is missing is not available"
    );
}

#[test]
fn several_pods_are_updated_at_once_where_several_may_be_unavailable() {
    let with =
        |max: Value| set(&json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": max}}}));
    let old = [(0, "old"), (1, "old"), (2, "old")];
    assert_eq!(planned(&with(json!(2)), &old), ["update web-2", "update web-1"]);
    assert_eq!(planned(&with(json!("10%")), &old), ["update web-2"], "at least one");
    let mut parallel = with(json!(2));
    parallel.spec.as_mut().unwrap().pod_management_policy = Some("Parallel".into());
    let begun = [(0, "old"), (1, "old"), (2, "starting")];
    assert_eq!(planned(&parallel, &begun), ["update web-1"]);
}

#[test]
fn a_pod_counts_as_available_only_after_min_ready_seconds() {
    let slow = set(&json!({"minReadySeconds": 15}));
    assert_eq!(planned(&slow, &[(0, "ready")]), [] as [&str; 0]);
    let pods = [pod(0, "ready")];
    let next = status::next_available(&slow, &pods, now());
    assert_eq!(next, Some(std::time::Duration::from_secs(5)));
    assert_eq!(planned(&set(&json!({"minReadySeconds": 10})), &[(0, "ready")]).len(), 1);
}

#[test]
fn a_new_pod_has_its_identity_its_service_and_its_claims() {
    let mut set = set(&claim_spec(&json!({})));
    set.spec.as_mut().unwrap().template.spec.as_mut().unwrap().volumes = Some(
        serde_json::from_value(json!([{"name": "data", "emptyDir": {}}, {"name": "tmp"}])).unwrap(),
    );
    let (current, update) = (revision("web-a", "old"), revision("web-b", "new"));
    let mut update = update;
    update.template = set.spec.as_ref().unwrap().template.clone();
    let rollout = Rollout { set: &set, current, update, pods: &[], claims: &|_| None, now: now() };
    let steps = rollout.plan().steps;
    let Some(Action::Create(pod)) = steps.first().and_then(|step| step.first()) else {
        panic!("nothing is created");
    };
    let labels = pod.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    assert_eq!(labels["controller-revision-hash"], "web-b");
    assert_eq!(labels["app"], "web");
    let spec = pod.spec.as_ref().unwrap();
    assert_eq!(spec.hostname.as_deref(), Some("web-0"));
    assert_eq!(spec.subdomain.as_deref(), Some("service"));
    let volumes = serde_json::to_value(&spec.volumes).unwrap();
    let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}});
    assert_eq!(volumes, json!([claim, {"name": "tmp"}]));
    let (_, claim) = claims::claims_of(&set, 0).remove(0);
    assert_eq!(claim.metadata.labels.unwrap()["app"], "web");
}

fn claim_spec(policy: &Value) -> Value {
    json!({
        "persistentVolumeClaimRetentionPolicy": policy,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
    })
}

/// Kind, name and uid.
type Owner = (&'static str, &'static str, &'static str);

fn claim(owners: &[Owner]) -> PersistentVolumeClaim {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(kind, name, uid)| {
            let version = if *kind == "StatefulSet" { "apps/v1" } else { "v1" };
            json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid,
                   "controller": true, "blockOwnerDeletion": true})
        })
        .collect();
    let claim = json!({"metadata": {"name": "data-web-0", "ownerReferences": owners}});
    serde_json::from_value(claim).unwrap()
}

#[test]
fn who_owns_a_claim_follows_from_the_retention_policy() {
    const SET: Owner = ("StatefulSet", "web", "set");
    const POD: Owner = ("Pod", "web-0", "uid-0");
    let cases: [(&str, &str, i32, &[Owner]); 7] = [
        ("Retain", "Retain", 3, &[]),
        ("Delete", "Retain", 3, &[SET]),
        ("Delete", "Retain", 0, &[SET]),
        ("Retain", "Delete", 3, &[]),
        ("Retain", "Delete", 0, &[POD]),
        ("Delete", "Delete", 3, &[SET]),
        ("Delete", "Delete", 0, &[POD]),
    ];
    for (deleted, scaled, replicas, expected) in cases {
        let policy = json!({"whenDeleted": deleted, "whenScaled": scaled});
        let mut set = set(&claim_spec(&policy));
        set.spec.as_mut().unwrap().replicas = Some(replicas);
        for before in [&[][..], &[SET], &[POD]] {
            let found = claims::ownership(&claim(before), &set, &pod(0, "ready"));
            let owners: Option<Vec<String>> =
                found.owners.map(|owners| owners.into_iter().map(|owner| owner.uid).collect());
            let wanted: Vec<String> = expected.iter().map(|owner| owner.2.to_owned()).collect();
            let wanted = (before != expected).then_some(wanted);
            assert_eq!(owners, wanted, "{deleted} {scaled} {replicas} {before:?}");
        }
    }
}

#[test]
fn claims_of_others_and_of_earlier_objects_are_left_alone() {
    let set = set(&claim_spec(&json!({"whenDeleted": "Delete", "whenScaled": "Delete"})));
    let foreign = claims::ownership(&claim(&[("Database", "x", "y")]), &set, &pod(0, "ready"));
    assert!(foreign.owners.is_none() && foreign.conflict);
    let earlier =
        claims::ownership(&claim(&[("StatefulSet", "web", "old")]), &set, &pod(0, "ready"));
    assert!(earlier.owners.is_none());
    let of_earlier_pod = Arc::new(claim(&[("Pod", "web-0", "old")]));
    let find = |name: &str| (name == "data-web-0").then(|| Arc::clone(&of_earlier_pod));
    assert_eq!(planned_with(&set, &[], &find), ["wait for a claim"]);
}

#[test]
fn a_pending_pod_gets_its_claims_and_a_pod_without_labels_gets_them_back() {
    let with_claims = set(&claim_spec(&json!({})));
    assert_eq!(planned(&with_claims, &[(0, "starting")]), ["provide web-0"]);
    let mut bare = Pod::clone(&pod(0, "ready"));
    bare.metadata.labels = None;
    let set = set(&json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(planned_with(&set, &[Arc::new(bare)], &|_| None), ["repair web-0"]);
}

#[test]
fn a_set_that_is_being_deleted_does_nothing() {
    let mut set = set(&json!({}));
    set.metadata.deletion_timestamp = Some(serde_json::from_value(json!(NOW)).unwrap());
    assert_eq!(planned(&set, &[(0, "ready"), (7, "ready")]), [] as [&str; 0]);
}

#[test]
fn only_pods_with_a_name_of_the_set_are_its_members() {
    let set = set(&json!({}));
    for (name, ordinal) in [
        ("web-0", Some(0)),
        ("web-12", Some(12)),
        ("web", None),
        ("web-x", None),
        ("web-+1", None),
        ("web-a-1", None),
        ("other-1", None),
        ("web-99999999999", None),
    ] {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.into());
        assert_eq!(ordinal_of(&set, &pod), ordinal, "{name}");
    }
}

#[test]
fn status_counts_by_revision_and_completes_an_update() {
    let set = set(&json!({"minReadySeconds": 15}));
    let names = Revisions { current: "web-a".into(), update: "web-b".into(), collisions: 2 };
    let pods = [pod(0, "old"), pod(1, "ready"), pod(2, "leaving"), pod(3, "starting")];
    let found = status::status(&set, &pods, &names, &Done::default(), now());
    assert_eq!((found.replicas, found.ready_replicas), (4, Some(3)));
    assert_eq!(found.available_replicas, Some(0));
    assert_eq!((found.current_replicas, found.updated_replicas), (Some(1), Some(2)));
    assert_eq!((found.observed_generation, found.collision_count), (Some(4), Some(2)));
    let one_leaves = Done { leaving: 1, ..Done::default() };
    let leaving = status::status(&set, &pods, &names, &one_leaves, now());
    assert_eq!(leaving.current_replicas, None, "the one that is deleted now is not counted");
    let one_came = Done { created: vec!["web-b".into()], ..Done::default() };
    let came = status::status(&set, &pods, &names, &one_came, now());
    assert_eq!((came.replicas, came.ready_replicas), (5, Some(3)), "it is there, but not ready");
    assert_eq!((came.current_replicas, came.updated_replicas), (Some(1), Some(3)));
    let pods = [pod(0, "ready"), pod(1, "ready"), pod(2, "ready")];
    let found = status::status(&set, &pods, &names, &Done::default(), now());
    assert_eq!(found.current_revision.as_deref(), Some("web-b"));
    assert_eq!((found.current_replicas, found.updated_replicas), (Some(3), Some(3)));
}
