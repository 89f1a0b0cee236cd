//! Who writes what, as the API server's own auditing tells.

use std::sync::Arc;

use serde_json::Value;
use steersman_cluster::ApiServer;
use steersman_cluster::audit::{Auditing, Event, Json, Policy, Stage};

use super::story::Story;

/// What the demo is about. Leases and Events would only hide it.
const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  namespaces: [default]
  resources:
  - {group: "", resources: [pods, pods/*]}
  - {group: apps, resources: [deployments, deployments/*, replicasets, replicasets/*]}
  - {group: demo.steersman.dev, resources: [appservices, appservices/*]}
"#;

/// Lets the story tell of every write from now on that succeeds.
pub(super) fn tell(api: &ApiServer, story: &Arc<Story>) -> Result<(), String> {
    let policy = Policy::parse(POLICY).map_err(|error| error.to_string())?;
    let story = Arc::clone(story);
    api.audit(Auditing::new(policy).observer(move |event| match event.stage {
        Stage::RequestReceived => story.begin(&event.audit_id),
        Stage::ResponseComplete | Stage::Panic => story.end(&event.audit_id, line(event)),
        Stage::ResponseStarted => {}
    }));
    Ok(())
}

/// A write as a line; nothing of one that was refused.
fn line(event: &Event) -> Option<String> {
    let code = event.response_status.as_ref()?.code;
    let object = event.object_ref.as_ref()?;
    let below = if object.subresource.is_empty() { "" } else { "/" };
    let what = format!("{}{below}{}", object.resource, object.subresource);
    let answer = document(event.response_object.as_ref());
    // What the server has named is only in its answer.
    let name = match object.name.as_str() {
        "" => answer["metadata"]["name"].as_str().unwrap_or("*"),
        name => name,
    };
    let made = if event.verb == "patch" && code == 201 { "  created" } else { "" };
    let sent = document(event.request_object.as_ref());
    let about = about(&object.subresource, &sent, &answer);
    (200..300).contains(&code).then(|| {
        let who = who(&event.user.username, &event.user_agent);
        let line =
            format!("write     {who:<21} {:<6} {what} {}/{name}", event.verb, object.namespace);
        format!("{line}{made}{about}")
    })
}

fn document(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.text()).ok()).unwrap_or_default()
}

/// Who writes: a controller by its service account, a node by its own name.
fn who(user: &str, agent: &str) -> String {
    if let Some(node) = user.strip_prefix("system:node:") {
        return format!("kubelet {node}");
    }
    if agent.starts_with("kubectl") {
        return "kubectl".to_owned();
    }
    user.rsplit(':').next().unwrap_or(user).to_owned()
}

/// What there is to know of it.
fn about(subresource: &str, sent: &Value, answer: &Value) -> String {
    let status = &answer["status"];
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    match subresource {
        "binding" => format!("  to {}", sent["target"]["name"].as_str().unwrap_or("?")),
        "status" => match status["phase"].as_str() {
            Some(phase) => format!("  {phase}"),
            None => format!("  available {}", number(&status["availableReplicas"])),
        },
        _ => match &answer["spec"]["replicas"] {
            Value::Number(replicas) => format!("  replicas {replicas}"),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_policy_can_be_read() {
        assert!(Policy::parse(POLICY).is_ok());
    }

    #[test]
    fn everybody_is_called_by_the_name_people_know() {
        for (user, agent, name) in [
            ("admin", "", "admin"),
            ("admin", "kubectl/v1.36.4 (linux/amd64)", "kubectl"),
            ("system:kube-scheduler", "", "kube-scheduler"),
            ("system:node:node-1", "", "kubelet node-1"),
            (
                "system:serviceaccount:kube-system:deployment-controller",
                "",
                "deployment-controller",
            ),
        ] {
            assert_eq!(who(user, agent), name);
        }
    }

    #[test]
    fn a_line_says_what_matters_of_its_write() {
        let status = |status: Value| json!({"status": status, "spec": {"replicas": 3}});
        for (subresource, sent, answer, text) in [
            ("binding", json!({"target": {"name": "node-2"}}), Value::Null, "  to node-2"),
            ("status", Value::Null, status(json!({"phase": "Running"})), "  Running"),
            ("status", Value::Null, status(json!({"availableReplicas": 2})), "  available 2"),
            ("", Value::Null, status(Value::Null), "  replicas 3"),
            ("", Value::Null, Value::Null, ""),
        ] {
            assert_eq!(about(subresource, &sent, &answer), text);
        }
    }
}
