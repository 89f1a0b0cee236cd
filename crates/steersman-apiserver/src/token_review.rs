//! Whose token is this? What a TokenReview is answered.

use serde_json::{Value, json};

use crate::authn::{self, Authenticated, Bearer, Refused};
use crate::call::Call;
use crate::status::Result;
use crate::token;

/// The status of a review: whom the token stands for, and for which of the audiences.
pub(crate) async fn status(call: &Call, review: &Value) -> Result<Value> {
    let token = review["spec"]["token"].as_str().unwrap_or("");
    let given = review["spec"]["audiences"].as_array().into_iter().flatten();
    let mut audiences: Vec<String> = given.filter_map(Value::as_str).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(token::ISSUER.to_owned());
    }
    // It is read as it would be in a request, up to the first space.
    let header = format!("Bearer {token}");
    let Bearer::Token(token) = Bearer::of(&header) else { return Ok(json!({"user": {}})) };
    Ok(match authn::token(&call.server, token, &audiences).await {
        Ok(Authenticated { user, audiences, warnings, remarks }) => {
            warnings.into_iter().for_each(|warning| call.warn(warning));
            if let Some(trail) = &call.trail {
                remarks.tell(trail);
            }
            json!({"authenticated": true, "user": user.to_info(), "audiences": audiences})
        }
        Err(Refused::Token(why)) => json!({"user": {}, "error": why}),
        Err(Refused::Unknown(status)) => return Err(status),
    })
}
