//! What quotas are charged, and what they refuse.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{amounts, now};
use crate::quota::scopes::Requirement;
use crate::quota::{Amounts, Demand, Evaluator, Limited, LimitedResource, Quota, Refusal, charges};

/// What is limited on most servers.
static NOTHING: LazyLock<Limited> = LazyLock::new(Limited::default);

fn quota(name: &str, hard: &Value, used: &Value) -> Quota {
    let status = json!({"hard": hard, "used": used});
    Quota::of(&json!({"metadata": {"name": name}, "status": status}))
}

fn scoped(quota: &Value, scope: &str) -> Quota {
    let mut quota = quota.clone();
    quota["spec"] = json!({"scopes": [scope]});
    Quota::of(&quota)
}

fn pod(cpu: &str) -> Value {
    let requests = json!({"requests": {"cpu": cpu}});
    json!({"spec": {"containers": [{"name": "c", "resources": requests}]}})
}

fn demand<'a>(evaluator: &'a Evaluator, new: &'a Value, old: Option<&'a Value>) -> Demand<'a> {
    Demand { evaluator, new, old, is_status: false, limited: &NOTHING, now: now() }
}

/// What several quotas are charged for a new Pod, or why they refuse it.
fn charged(quotas: &[Quota], pod: &Value) -> Result<Vec<Value>, String> {
    let charges = charges(quotas, demand(&Evaluator::Pods, pod, None)).map_err(forbidden)?;
    Ok(charges.iter().map(Amounts::to_value).collect())
}

fn forbidden(refusal: Refusal) -> String {
    match refusal {
        Refusal::Forbidden(why) => why,
        other @ Refusal::Uncovered(_) => panic!("{other:?}"),
    }
}

#[test]
fn a_quota_is_charged_what_it_limits() {
    let hard = json!({"pods": "3", "requests.cpu": "2", "secrets": "1"});
    let used = json!({"pods": "0", "requests.cpu": "0", "secrets": "0"});
    let all = quota("all", &hard, &used);
    let secrets = quota("secrets", &json!({"secrets": "0"}), &json!({"secrets": "0"}));
    let never_counted = quota("new", &json!({}), &json!({}));
    let charges = charged(&[all, secrets, never_counted], &pod("500m")).unwrap();
    assert_eq!(charges, [json!({"pods": "1", "requests.cpu": "500m"}), json!({}), json!({})]);
}

#[test]
fn what_does_not_fit_is_told_with_all_that_is_exceeded() {
    let hard = json!({"pods": "3", "requests.cpu": "1200m", "cpu": "10"});
    let used = json!({"pods": "3", "requests.cpu": "1", "cpu": "1"});
    let full = quota("q", &hard, &used);
    let roomy = quota("a", &json!({"pods": "9"}), &json!({"pods": "0"}));
    assert_eq!(
        charged(&[roomy, full.clone()], &pod("500m")).unwrap_err(),
        "exceeded quota: q, requested: pods=1,requests.cpu=500m, used: pods=3,requests.cpu=1, \
         limited: pods=3,requests.cpu=1200m"
    );
    assert_eq!(
        charged(&[full], &pod("1e999")).unwrap_err(),
        "exceeded quota: q, requested: cpu=1e999,pods=1,requests.cpu=1e999, \
         used: cpu=1,pods=3,requests.cpu=1, limited: cpu=10,pods=3,requests.cpu=1200m"
    );
}

#[test]
fn a_quota_that_is_not_counted_yet_refuses() {
    let quotas = [quota("q", &json!({"pods": "3", "cpu": "1"}), &json!({"pods": "0"}))];
    let error = charged(&quotas, &pod("1")).unwrap_err();
    assert_eq!(error, "status unknown for quota: q, resources: cpu,pods");
}

#[test]
fn what_must_be_said_is_asked_for_first() {
    let quotas = [quota("q", &json!({"limits.cpu": "1"}), &json!({}))];
    let error = charged(&quotas, &pod("1")).unwrap_err();
    assert_eq!(error, "failed quota: q: must specify limits.cpu for: c");
}

#[test]
fn a_change_is_charged_what_it_adds() {
    let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let names = json!({"requests.storage": "10Gi", "persistentvolumeclaims": "1"});
    let quotas = [quota("q", &names, &names)];
    let evaluator = Evaluator::VolumeClaims;
    for (old, new, expected) in [
        ("2Gi", "2Gi", Ok(json!({}))),
        ("2Gi", "1Gi", Ok(json!({}))),
        (
            "2Gi",
            "3Gi",
            Err("exceeded quota: q, requested: requests.storage=1Gi, \
                 used: requests.storage=10Gi, limited: requests.storage=10Gi"
                .to_owned()),
        ),
    ] {
        let old = claim(old);
        let new = claim(new);
        let charged = charges(&quotas, demand(&evaluator, &new, Some(&old)));
        let charged = charged.map(|charges| charges[0].to_value()).map_err(forbidden);
        assert_eq!(charged, expected, "{old} to {new}");
        let status = Demand { is_status: true, ..demand(&evaluator, &new, Some(&old)) };
        assert!(charges(&quotas, status).is_ok(), "what is so is never refused");
    }
}

#[test]
fn an_object_that_comes_into_a_scope_is_charged_as_a_whole() {
    let status = json!({"hard": {"pods": "3"}, "used": {"pods": "1"}});
    let document = json!({"metadata": {"name": "q"}, "status": status});
    let quotas = [
        scoped(&document, "Terminating"),
        scoped(&document, "NotTerminating"),
        Quota::of(&document),
    ];
    let old = pod("1");
    let mut new = old.clone();
    new["spec"]["activeDeadlineSeconds"] = json!(60);
    assert!(Evaluator::Pods.is_concerned("", &new, Some(&old)));
    assert!(!Evaluator::Pods.is_concerned("", &old, Some(&old)));
    assert!(Evaluator::Pods.is_concerned("resize", &old, Some(&old)));
    let charged = charges(&quotas, demand(&Evaluator::Pods, &new, Some(&old))).unwrap();
    let expected = [json!({"pods": "1"}), json!({}), json!({})];
    assert_eq!(charged, expected.map(|list| amounts(&list)));
}

/// What is limited: the storage of a class, and Pods of high priority.
fn limited(group: &str, plural: &str) -> Limited {
    let scope = json!({"scopeName": "PriorityClass", "operator": "In", "values": ["high", "top"]});
    let storage = LimitedResource {
        plural: "persistentvolumeclaims".to_owned(),
        match_contains: vec![".storageclass.storage.k8s.io/".to_owned(), "count/".to_owned()],
        match_scopes: vec![Requirement::of(&scope)],
        ..LimitedResource::default()
    };
    Limited::of(&[storage], group, plural)
}

#[test]
fn what_is_limited_by_default_needs_a_quota_that_counts_it() {
    let claim = |class: &str, size: &str| {
        let resources = json!({"requests": {"storage": size}});
        json!({"spec": {"storageClassName": class, "resources": resources}})
    };
    let limited = limited("", "persistentvolumeclaims");
    let evaluator = Evaluator::VolumeClaims;
    let count = |quotas: &[Quota], new: &Value, old: Option<&Value>| {
        let demand = Demand { limited: &limited, ..demand(&evaluator, new, old) };
        charges(quotas, demand).map(drop).map_err(forbidden)
    };
    let gold = claim("gold", "1Gi");
    let all = "insufficient quota to consume: count/persistentvolumeclaims,\
               gold.storageclass.storage.k8s.io/persistentvolumeclaims,\
               gold.storageclass.storage.k8s.io/requests.storage";
    assert_eq!(count(&[], &gold, None).unwrap_err(), all);
    let names = json!({
        "count/persistentvolumeclaims": "9",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "9",
    });
    let half = quota("half", &names, &names);
    let rest = "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage";
    assert_eq!(count(std::slice::from_ref(&half), &gold, None).unwrap_err(), rest);
    let storage = json!({"gold.storageclass.storage.k8s.io/requests.storage": "9Gi"});
    let rest = quota(
        "rest",
        &storage,
        &json!({
        "gold.storageclass.storage.k8s.io/requests.storage": "0"}),
    );
    let roomy = quota(
        "half",
        &names,
        &json!({
            "count/persistentvolumeclaims": "0",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
        }),
    );
    assert_eq!(count(&[roomy, rest], &gold, None), Ok(()));
    assert_eq!(count(&[], &gold, Some(&gold)), Ok(()), "nothing more is used than before");
}

#[test]
fn a_limited_scope_needs_a_quota_that_names_it_and_has_the_object_in_it() {
    let limited = limited("", "pods");
    let mut pod = pod("1");
    let ask = |quotas: &[Quota], pod: &Value| {
        charges(quotas, Demand { limited: &limited, ..demand(&Evaluator::Pods, pod, None) })
            .map(drop)
    };
    assert_eq!(ask(&[], &pod), Ok(()));
    pod["spec"]["priorityClassName"] = json!("high");
    let text = "insufficient quota to match these scopes: [{PriorityClass In [high top]}]";
    let refusal = Err(Refusal::Uncovered(text.to_owned()));
    assert_eq!(ask(&[], &pod), refusal);
    let of = |class: &str| {
        let scope = json!({"scopeName": "PriorityClass", "operator": "In", "values": [class]});
        let spec = json!({"scopeSelector": {"matchExpressions": [scope]}});
        let counted = json!({"hard": {"pods": "9"}, "used": {"pods": "0"}});
        Quota::of(&json!({"metadata": {"name": "q"}, "spec": spec, "status": counted}))
    };
    assert_eq!(ask(&[of("low")], &pod), refusal);
    assert_eq!(ask(&[of("high")], &pod), Ok(()));
}
