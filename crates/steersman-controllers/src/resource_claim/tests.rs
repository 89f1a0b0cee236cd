//! What becomes of Pods and claims.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use serde_json::{Value, json};

use super::census::sort;
use super::release::{Plan, plan, users};
use super::template::{Around, Step, generate_name, reserved, step, to_reserve};
use super::{FINALIZER, POD_CLAIM_NAME};
use crate::pod_resource_claims::{claim_keys, entries};

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The Pod `web`, with one claim that somebody made and one from a template.
fn pod(spec: &Value, status: &Value) -> Pod {
    let claims = json!([
        {"name": "shared", "resourceClaimName": "gpu"},
        {"name": "own", "resourceClaimTemplateName": "one"},
    ]);
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "p"},
        "spec": {"containers": [], "resourceClaims": claims},
        "status": status,
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    object(pod)
}

fn told(name: Option<&str>) -> Value {
    json!({"resourceClaimStatuses": [{"name": "own", "resourceClaimName": name}]})
}

/// A claim; `owner` is the uid of a Pod `web`.
fn claim(name: &str, owner: Option<&str>, status: &Value) -> Arc<ResourceClaim> {
    let owners = owner.map(|uid| {
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true}])
    });
    let annotations = owner.map(|_| json!({POD_CLAIM_NAME: "own"}));
    Arc::new(object(json!({
        "metadata": {"name": name, "namespace": "default", "finalizers": [FINALIZER],
                     "annotations": annotations, "ownerReferences": owners},
        "spec": {}, "status": status,
    })))
}

fn user(uid: &str) -> Value {
    json!({"resource": "pods", "name": uid, "uid": uid})
}

/// What is done about the entry `own`, with these claims and, if it is there, the template.
fn step_of(pod: &Pod, claims: &[Arc<ResourceClaim>], has_template: bool) -> Result<Step, String> {
    let template: Arc<ResourceClaimTemplate> = Arc::new(object(json!({
        "metadata": {"name": "one"},
        "spec": {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}},
                 "spec": {"devices": {"requests": [{"name": "gpu"}]}}},
    })));
    let owned: Vec<_> = claims.iter().filter(|it| users_of(it)).cloned().collect();
    let around = Around {
        claim: &|name: &str| {
            claims.iter().find(|it| it.metadata.name.as_deref() == Some(name)).cloned()
        },
        template: &|name: &str| (has_template && name == "one").then(|| Arc::clone(&template)),
        owned: &owned,
    };
    step(pod, &entries(pod)[1], &around).map_err(|error| error.to_string())
}

/// Whether a claim was made for the Pod with the uid `p`.
fn users_of(claim: &ResourceClaim) -> bool {
    claim.metadata.owner_references.iter().flatten().any(|owner| owner.uid == "p")
}

#[test]
fn the_claim_of_a_template_is_made_once_and_told_of() {
    let created = match step_of(&pod(&json!({}), &json!({})), &[], true) {
        Ok(Step::Create(claim)) => *claim,
        other => panic!("{other:?}"),
    };
    let expected: ResourceClaim = object(json!({
        "metadata": {
            "generateName": "web-own-", "namespace": "default", "labels": {"app": "web"},
            "annotations": {"a": "b", POD_CLAIM_NAME: "own"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p",
                                 "controller": true}],
        },
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
    }));
    assert_eq!(created, expected);
    let ours = claim("web-own-x", Some("p"), &json!({}));
    let anothers = claim("web-own-x", Some("other"), &json!({}));
    let tell = || Ok(Step::Tell("web-own-x".into()));
    for (status, claims, has_template, expected) in [
        (json!({}), vec![ours.clone()], true, tell()),
        (json!({}), vec![ours.clone()], false, tell()),
        (told(Some("web-own-x")), vec![ours.clone()], true, Ok(Step::Settled)),
        (told(Some("web-own-y")), vec![ours], true, tell()),
        (told(None), vec![], true, Ok(Step::Settled)),
        (
            told(Some("web-own-x")),
            vec![anothers],
            false,
            Err("resource claim template \"one\": resourceclaimtemplate.resource.k8s.io \"one\" not \
                 found"
                .to_owned()),
        ),
    ] {
        assert_eq!(step_of(&pod(&json!({}), &status), &claims, has_template), expected, "{status}");
    }
    let again = step_of(&pod(&json!({}), &told(Some("web-own-x"))), &[], true);
    assert!(matches!(again, Ok(Step::Create(_))), "somebody deleted it");
}

#[test]
fn long_names_both_lose_a_part() {
    assert_eq!(generate_name("web", "gpu"), "web-gpu-");
    let name = generate_name(&"p".repeat(253), "a-claim-with-a-name");
    assert_eq!(name, format!("{}-a-cl", "p".repeat(253 * 57 / 274))[..name.len()]);
    assert!(name.len() <= 57 && name.contains("p-a"), "{name}");
}

#[test]
fn what_is_allocated_is_reserved_for_a_pod_that_was_bound_without_the_scheduler() {
    let bound = json!({"nodeName": "n"});
    let status = told(Some("web-own-x"));
    let allocated = json!({"allocation": {}});
    let both = json!({"allocation": {}, "reservedFor": [user("p")]});
    let ours = |status: &Value| claim("web-own-x", Some("p"), status);
    let shared = |status: &Value| claim("gpu", None, status);
    for (spec, claims, expected) in [
        (json!({}), vec![shared(&allocated), ours(&allocated)], Ok(vec![])),
        (bound.clone(), vec![shared(&allocated), ours(&allocated)], Ok(vec!["gpu", "web-own-x"])),
        (bound.clone(), vec![shared(&both), ours(&allocated)], Ok(vec!["web-own-x"])),
        (bound.clone(), vec![shared(&json!({})), ours(&json!({}))], Ok(vec![])),
        (bound.clone(), vec![ours(&allocated)], Ok(vec![])),
        (
            bound,
            vec![shared(&both), claim("web-own-x", Some("other"), &allocated)],
            Err("ResourceClaim default/web-own-x was not created for Pod default/web (Pod is not \
                 owner)"
                .to_owned()),
        ),
    ] {
        let pod = pod(&spec, &status);
        let found = |name: &str| {
            claims.iter().find(|it| it.metadata.name.as_deref() == Some(name)).cloned()
        };
        let around = Around { claim: &found, template: &|_: &str| None, owned: &[] };
        let unreserved = to_reserve(&pod, &around);
        let names = unreserved.as_ref().map_err(Clone::clone).map(|claims| {
            claims.iter().filter_map(|claim| claim.metadata.name.as_deref()).collect::<Vec<_>>()
        });
        assert_eq!(names, expected, "{spec}");
        for claim in unreserved.into_iter().flatten() {
            assert_eq!(
                json!(users(&reserved(&claim, &pod))),
                json!([{"resource": "pods", "name": "web", "uid": "p"}])
            );
        }
    }
}

/// What is written of a status in short.
fn shown(plan: &Plan) -> (Option<Value>, bool, bool) {
    let status = plan.status.as_ref().map(|claim| json!(claim.status));
    (status, plan.let_go, plan.delete)
}

#[test]
fn a_claim_that_nobody_uses_any_more_is_deallocated_and_let_go() {
    let two = json!({"allocation": {}, "reservedFor": [user("a"), user("b")]});
    let none = json!({"allocation": {}});
    for (status, remain, deleted, expected) in [
        // One of two has ended.
        (
            &two,
            vec!["b"],
            false,
            (Some(json!({"allocation": {}, "reservedFor": [user("b")]})), false, false),
        ),
        // Both have.
        (&two, vec![], false, (Some(json!({})), true, false)),
        (&two, vec!["a", "b"], true, (None, false, false)),
        // It was never used, and stays allocated until it is deleted.
        (&none, vec![], false, (None, false, false)),
        (&none, vec![], true, (Some(json!({})), true, false)),
        (&json!({}), vec![], true, (None, true, false)),
    ] {
        let mut claim = ResourceClaim::clone(&claim("gpu", None, status));
        claim.metadata.deletion_timestamp = deleted.then(steersman::clock::now_time);
        let remain = users(&claim).iter().filter(|it| remain.contains(&it.uid.as_str()));
        let plan = plan(&claim, remain.cloned().collect(), None);
        assert_eq!(shown(&plan), expected, "{status} {deleted}");
    }
    let mut free = ResourceClaim::clone(&claim("gpu", None, &two));
    free.metadata.finalizers = None;
    let still_allocated = (Some(json!({"allocation": {}})), false, false);
    assert_eq!(
        shown(&plan(&free, Vec::new(), None)),
        still_allocated,
        "nobody of ours allocated it"
    );
}

#[test]
fn a_claim_goes_when_the_pod_it_was_made_for_has_ended_or_was_replaced() {
    let own = claim("web-own-x", Some("p"), &json!({}));
    let owner = |uid: &str, phase: &str| {
        let mut pod = pod(&json!({"nodeName": "n"}), &json!({"phase": phase}));
        pod.metadata.uid = Some(uid.into());
        Arc::new(pod)
    };
    for (owner, expected) in [
        (Some(owner("p", "Running")), false),
        (Some(owner("p", "Succeeded")), true),
        (Some(owner("p", "Failed")), true),
        (Some(owner("q", "Running")), true),
        (None, false), // the garbage collector knows better
    ] {
        assert_eq!(plan(&own, Vec::new(), owner.as_ref()).delete, expected, "{owner:?}");
    }
}

#[test]
fn a_pods_claims_and_their_sorts_are_known() {
    let status = json!({
        "resourceClaimStatuses": [{"name": "own", "resourceClaimName": "web-own-x"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "web-extended", "requestMappings": []},
    });
    let keys: Vec<String> =
        claim_keys(&pod(&json!({}), &status)).iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["default/gpu", "default/web-own-x", "default/web-extended"]);
    let made = sort(&claim("x", Some("p"), &json!({"allocation": {}})));
    assert_eq!((made.is_allocated, made.source), (true, "resource_claim_template"));
    let by_hand = sort(&claim("x", None, &json!({})));
    assert_eq!((by_hand.is_allocated, by_hand.source), (false, ""));
}
