//! Questions that are answered and never stored: who am I, may I, whose token is this.

use http::StatusCode;
use serde_json::{Value, json};

use crate::authenticate::{self, Authenticated, Refused};
use crate::authn::User;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::token;

/// Answers a review; `None` if the resource is not one.
pub(crate) async fn answer(call: &Call) -> Result<Option<Reply>> {
    if !matches!(call.resource.group.as_ref(), "authentication.k8s.io" | "authorization.k8s.io") {
        return Ok(None);
    }
    let mut review = call.document()?;
    review["apiVersion"] = call.api_version.as_str().into();
    review["kind"] = call.resource.kind.as_ref().into();
    let status = match call.resource.kind.as_ref() {
        "SelfSubjectReview" => {
            if !review["metadata"].is_object() {
                review["metadata"] = json!({});
            }
            review["metadata"]["creationTimestamp"] = call.server.now().into();
            json!({"userInfo": user_info(&call.user)})
        }
        "TokenReview" => token_status(call, &review).await?,
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

/// Whose a token is. Tokens that are just known are for this server, and for no other audience.
async fn token_status(call: &Call, review: &Value) -> Result<Value> {
    let token = review["spec"]["token"].as_str().unwrap_or("");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let given = review["spec"]["audiences"].as_array().into_iter().flatten();
    let mut audiences: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(token::ISSUER.to_owned());
    }
    let known = call.server.tokens.user(token);
    let authenticated = match known {
        Some(user) => {
            audiences.retain(|audience| audience == token::ISSUER);
            let why = "token audiences is invalid for the target audiences";
            if audiences.is_empty() {
                Err(Refused::Token(why))
            } else {
                Ok(Authenticated { user, audiences })
            }
        }
        None => authenticate::bearer(&call.server, token, &audiences).await,
    };
    Ok(match authenticated {
        Ok(Authenticated { user, audiences }) => {
            json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
        }
        Err(Refused::Token(why)) => json!({"user": {}, "error": why}),
        Err(Refused::Unknown(status)) => return Err(status),
    })
}

pub(crate) fn user_info(user: &User) -> Value {
    let fields = user.to_fields().into_iter();
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}
