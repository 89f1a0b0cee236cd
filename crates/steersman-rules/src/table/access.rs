//! Who may do what, and what extends the API.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{condition, items, len, or_none, selector, text};
use super::{Column, age, created_at, duration};

pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    Some(match (group, kind) {
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => vec![
            Column::text("Role", role),
            age(),
            Column::text("Users", |binding, _| subjects(binding, "User")).wide(),
            Column::text("Groups", |binding, _| subjects(binding, "Group")).wide(),
            Column::text("ServiceAccounts", |binding, _| subjects(binding, "ServiceAccount"))
                .wide(),
        ],
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => vec![created_at()],
        ("certificates.k8s.io", "CertificateSigningRequest") => vec![
            age(),
            Column::field("SignerName", "spec.signerName", "<none>"),
            Column::field("Requestor", "spec.username", ""),
            Column::text("RequestedDuration", |csr, _| {
                let seconds = csr["spec"]["expirationSeconds"].as_i64();
                seconds.map_or(or_none(""), |seconds| duration::human(seconds).into())
            }),
            Column::text("Condition", csr_condition),
        ],
        ("apiregistration.k8s.io", "APIService") => {
            vec![Column::text("Service", service), Column::text("Available", available), age()]
        }
        ("admissionregistration.k8s.io", kind) => admission(kind)?,
        ("flowcontrol.apiserver.k8s.io", kind) => flow_control(kind)?,
        _ => return None,
    })
}

fn admission(kind: &str) -> Option<Vec<Column>> {
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![Column::count("Webhooks", |o, _| len(&o["webhooks"]).into()), age()]
        }
        "ValidatingAdmissionPolicy" => vec![
            Column::count("Validations", |o, _| len(&o["spec"]["validations"]).into()),
            Column::text("ParamKind", param_kind),
            age(),
        ],
        "MutatingAdmissionPolicy" => vec![
            Column::count("Mutations", |o, _| len(&o["spec"]["mutations"]).into()),
            Column::text("ParamKind", param_kind),
            age(),
        ],
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => vec![
            Column::field("PolicyName", "spec.policyName", ""),
            Column::text("ParamRef", param_ref),
            age(),
        ],
        _ => return None,
    })
}

fn flow_control(kind: &str) -> Option<Vec<Column>> {
    Some(match kind {
        "FlowSchema" => vec![
            Column::field("PriorityLevel", "spec.priorityLevelConfiguration.name", ""),
            Column::number("MatchingPrecedence", "spec.matchingPrecedence").called_text().ranking(),
            Column::field("DistinguisherMethod", "spec.distinguisherMethod.type", "<none>"),
            age(),
            Column::text("MissingPL", |schema, _| {
                condition(schema, "Dangling").map_or("?", |c| text(&c["status"])).into()
            }),
        ],
        "PriorityLevelConfiguration" => vec![
            Column::field("Type", "spec.type", ""),
            Column::text("NominalConcurrencyShares", |level, _| {
                number_or_none(&level["spec"]["limited"]["nominalConcurrencyShares"])
            }),
            Column::text("Queues", |level, _| number_or_none(&queuing(level)["queues"])),
            Column::text("HandSize", |level, _| number_or_none(&queuing(level)["handSize"])),
            Column::text("QueueLengthLimit", |level, _| {
                number_or_none(&queuing(level)["queueLengthLimit"])
            }),
            age(),
        ],
        _ => return None,
    })
}

fn queuing(level: &Value) -> &Value {
    &level["spec"]["limited"]["limitResponse"]["queuing"]
}

/// A number, although the column is announced as text.
fn number_or_none(value: &Value) -> Value {
    if value.is_null() { or_none("") } else { value.clone() }
}

fn role(binding: &Value, _: Timestamp) -> Value {
    let role = &binding["roleRef"];
    format!("{}/{}", text(&role["kind"]), text(&role["name"])).into()
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = items(&binding["subjects"]).iter().filter(|s| s["kind"] == kind);
    let name = |subject: &Value| match text(&subject["namespace"]) {
        "" => text(&subject["name"]).to_owned(),
        namespace => format!("{namespace}/{}", text(&subject["name"])),
    };
    subjects.map(name).collect::<Vec<_>>().join(", ").into()
}

fn csr_condition(csr: &Value, _: Timestamp) -> Value {
    let has = |r#type: &str| condition(csr, r#type).is_some();
    let mut shown = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        shown.push_str(",Failed");
    }
    if !text(&csr["status"]["certificate"]).is_empty() {
        shown.push_str(",Issued");
    }
    shown.into()
}

fn service(api: &Value, _: Timestamp) -> Value {
    match &api["spec"]["service"] {
        Value::Null => "Local".into(),
        service => format!("{}/{}", text(&service["namespace"]), text(&service["name"])).into(),
    }
}

fn available(api: &Value, _: Timestamp) -> Value {
    match condition(api, "Available") {
        Some(condition) if condition["status"] == "True" => "True".into(),
        Some(condition) => {
            format!("{} ({})", text(&condition["status"]), text(&condition["reason"])).into()
        }
        None => "Unknown".into(),
    }
}

fn param_kind(policy: &Value, _: Timestamp) -> Value {
    match &policy["spec"]["paramKind"] {
        Value::Null => "<unset>".into(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])).into(),
    }
}

fn param_ref(binding: &Value, _: Timestamp) -> Value {
    let reference = &binding["spec"]["paramRef"];
    match (text(&reference["namespace"]), text(&reference["name"])) {
        ("", "") if reference["selector"].is_null() => "<unset>".into(),
        (_, "") => selector(&reference["selector"]).into(),
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}
