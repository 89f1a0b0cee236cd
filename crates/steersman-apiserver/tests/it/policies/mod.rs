//! Admission policies: which requests they are about, what their expressions see, and what follows.

mod access;
mod actions;
mod chain;
mod conditions;
mod creation;
mod matching;
mod mutating;
mod params;
mod validating;

use serde_json::{Value, json};

use crate::api::{Answer, Api};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Rules about some resources, by group and name, and operations.
fn rules(groups: &[&str], resources: &[&str], operations: &[&str]) -> Value {
    json!([{
        "apiGroups": groups, "apiVersions": ["*"], "resources": resources,
        "operations": operations,
    }])
}

/// A policy of a sort, `Validating` or `Mutating`, about all that is done to ConfigMaps, with fields
/// of its own.
fn policy(sort: &str, name: &str, fields: &Value) -> Value {
    let operations: &[&str] =
        if sort == "Mutating" { &["CREATE", "UPDATE"] } else { &["CREATE", "UPDATE", "DELETE"] };
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{sort}AdmissionPolicy"),
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": rules(&[""], &["configmaps"], operations)}},
    });
    if sort == "Mutating" {
        policy["spec"]["reinvocationPolicy"] = "Never".into();
    }
    for (field, value) in fields.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

/// A binding of a policy, with fields of its own.
fn binding(sort: &str, name: &str, policy: &str, fields: &Value) -> Value {
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{sort}AdmissionPolicyBinding"),
        "metadata": {"name": name}, "spec": {"policyName": policy},
    });
    if sort == "Validating" {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    for (field, value) in fields.as_object().unwrap() {
        binding["spec"][field] = value.clone();
    }
    binding
}

fn path(object: &Value) -> String {
    let plural = match object["kind"].as_str().unwrap() {
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding" => "validatingadmissionpolicybindings",
        "MutatingAdmissionPolicy" => "mutatingadmissionpolicies",
        _ => "mutatingadmissionpolicybindings",
    };
    format!("{GROUP}/{plural}")
}

async fn create(api: &Api, object: &Value) -> Answer {
    api.post(&path(object), object).await
}

/// A server on which a policy that judges, `p`, is bound by `b`.
async fn judged(fields: &Value, bound: &Value) -> Api {
    let api = Api::start().await;
    judge(&api, "p", fields, bound).await;
    api
}

/// Binds a policy that judges, with a binding of the same name after `b`.
async fn judge(api: &Api, name: &str, fields: &Value, bound: &Value) {
    create(api, &policy("Validating", name, fields)).await.ok();
    let bound_as = if name == "p" { "b".to_owned() } else { format!("b-{name}") };
    create(api, &binding("Validating", &bound_as, name, bound)).await.ok();
}

/// Binds a policy that changes objects, with a binding of the same name after `b`.
async fn change(api: &Api, name: &str, fields: &Value, bound: &Value) {
    create(api, &policy("Mutating", name, fields)).await.ok();
    create(api, &binding("Mutating", &format!("b-{name}"), name, bound)).await.ok();
}

/// One validation.
fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

/// The message of a refusal, without who refuses.
#[track_caller]
fn why(answer: &Answer) -> String {
    assert!(answer.code >= 400, "{}", String::from_utf8_lossy(&answer.bytes));
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    message.split_once(" denied request: ").map_or(message.clone(), |(_, why)| why.to_owned())
}

/// The warnings that came with an answer.
fn warnings(answer: &Answer) -> Vec<&str> {
    answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
}
