//! What quotas are charged, and what they refuse.

use serde_json::{Value, json};

use super::{amounts, now};
use crate::quota::{Demand, Evaluator, Quota, charges};

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
    Demand { evaluator, new, old, is_status: false, now: now() }
}

/// What several quotas are charged for a new Pod, or why they refuse it.
fn charged(quotas: &[Quota], pod: &Value) -> Result<Vec<Value>, String> {
    let charges = charges(quotas, demand(&Evaluator::Pods, pod, None))?;
    Ok(charges.iter().map(super::super::Amounts::to_value).collect())
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
        assert_eq!(charged.map(|charges| charges[0].to_value()), expected, "{old} to {new}");
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
