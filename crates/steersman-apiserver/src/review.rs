//! Questions that are answered and never stored: who am I, may I, whose token is this.

use http::StatusCode;
use serde_json::{Value, json};

use crate::authn::User;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::Result;

/// Answers a review; `None` if the resource is not one.
pub(crate) fn answer(call: &Call) -> Result<Option<Reply>> {
    if !matches!(call.resource.group.as_ref(), "authentication.k8s.io" | "authorization.k8s.io") {
        return Ok(None);
    }
    let mut review = call.document()?;
    review["apiVersion"] = call.api_version.as_str().into();
    review["kind"] = call.resource.kind.as_ref().into();
    let status = match call.resource.kind.as_ref() {
        "SelfSubjectReview" => json!({"userInfo": user_info(&call.user)}),
        "TokenReview" => token_status(call, &review),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        // Whoever is known may do everything.
        _ => json!({"allowed": true}),
    };
    review["status"] = status;
    Ok(Some(Reply::Document { code: StatusCode::CREATED, value: review }))
}

fn token_status(call: &Call, review: &Value) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or("");
    match call.server.tokens.user(token) {
        Some(user) => json!({"authenticated": true, "user": user_info(&user)}),
        None => json!({"authenticated": false, "error": "unknown token"}),
    }
}

fn user_info(user: &User) -> Value {
    json!({"username": user.name, "groups": user.groups})
}
