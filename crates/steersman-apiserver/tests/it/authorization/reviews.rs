//! Questions about permissions.

use serde_json::{Value, json};

use super::{bind, role, rule};
use crate::api::Api;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

#[tokio::test(start_paused = true)]
async fn a_review_says_whether_somebody_may_and_by_which_binding() {
    let api = Api::start().await;
    role(&api, "default", "reader", &[rule(&["list"], &[""], &["pods", "pods/log"])]).await;
    bind(&api, "default", "Role", "reader", "jane").await;
    let ask = async |kind: &str, spec: Value| {
        let path = match kind {
            "local" => format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews"),
            _ => format!("{REVIEWS}/subjectaccessreviews"),
        };
        api.post(&path, &json!({"spec": spec})).await.ok()["status"].clone()
    };
    let pods = json!({"verb": "list", "resource": "pods", "namespace": "default"});
    let allowed = json!({
        "allowed": true,
        "reason": "RBAC: allowed by RoleBinding \"reader-jane/default\" of Role \"reader\" to User \
                   \"jane\"",
    });
    for kind in ["cluster", "local"] {
        let spec = json!({"user": "jane", "resourceAttributes": pods});
        assert_eq!(ask(kind, spec).await, allowed);
        let spec = json!({"user": "eve", "resourceAttributes": pods});
        assert_eq!(ask(kind, spec).await, json!({"allowed": false}));
    }
    let masters = json!({"user": "eve", "groups": ["system:masters"], "resourceAttributes": pods});
    assert_eq!(ask("cluster", masters).await, json!({"allowed": true}));
    let path = json!({"user": "eve", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}});
    assert_eq!(ask("cluster", path).await, json!({"allowed": false}));
}

#[tokio::test(start_paused = true)]
async fn one_may_ask_about_oneself() {
    let api = Api::start().await;
    let rules = [
        rule(
            &["create"],
            &["authorization.k8s.io"],
            &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        ),
        json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
    ];
    role(&api, "", "asker", &rules).await;
    bind(&api, "", "ClusterRole", "asker", "jane").await;
    role(&api, "default", "reader", &[rule(&["list"], &[""], &["pods"])]).await;
    bind(&api, "default", "Role", "reader", "jane").await;
    bind(&api, "default", "Role", "lost", "jane").await;
    let jane = api.acting_as("jane", &[]);
    let spec =
        json!({"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}});
    let path = format!("{REVIEWS}/selfsubjectaccessreviews");
    assert_eq!(jane.post(&path, &json!({"spec": spec})).await.ok()["status"]["allowed"], true);

    let path = format!("{REVIEWS}/selfsubjectrulesreviews");
    let asked = jane.post(&path, &json!({"spec": {"namespace": "default"}})).await.ok();
    assert_eq!(asked["status"]["nonResourceRules"][0]["nonResourceURLs"], json!(["/metrics"]));
    let rules = asked["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.contains(&rule(&["list"], &[""], &["pods"])), "{asked}");
    assert_eq!(asked["status"]["incomplete"], false);
    let missing = "role.rbac.authorization.k8s.io \"lost\" not found";
    assert_eq!(asked["status"]["evaluationError"], missing);
}

#[tokio::test(start_paused = true)]
async fn selectors_of_a_review_must_say_something() {
    let api = Api::start().await;
    let attributes = |selectors: Value| {
        let mut attributes = json!({"verb": "list", "resource": "pods", "namespace": "default"});
        for (name, selector) in selectors.as_object().unwrap() {
            attributes[name] = selector.clone();
        }
        attributes
    };
    let both = json!({
        "rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
    });
    let wrong = attributes(json!({"fieldSelector": both, "labelSelector": {}}));
    let newer = json!({"requirements": [{"key": "a", "operator": "Near", "values": ["b"]}]});
    let newer = attributes(json!({"fieldSelector": newer, "labelSelector": newer}));
    for kind in [
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "namespaces/default/localsubjectaccessreviews",
    ] {
        let review = |attributes: &Value| {
            let mut spec = json!({"resourceAttributes": attributes});
            if !kind.starts_with("self") {
                spec["user"] = "jane".into();
            }
            json!({"spec": spec})
        };
        let path = format!("{REVIEWS}/{kind}");
        let status = api.post(&path, &review(&wrong)).await.refused(422);
        let at = "spec.resourceAttributes";
        let message = format!(
            " \"\" is invalid: [{at}.fieldSelector.rawSelector: Invalid value: \"a=b\": may not \
             specified at the same time as requirements, {at}.labelSelector.requirements: Required \
             value: when {at}.labelSelector is specified, requirements or rawSelector is required]"
        );
        assert!(status["message"].as_str().unwrap().ends_with(&message), "{kind}: {status}");
        api.post(&path, &review(&newer)).await.ok();
    }
}
