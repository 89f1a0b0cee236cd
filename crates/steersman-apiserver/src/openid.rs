//! What others need to check tokens by themselves: `/.well-known/openid-configuration` and
//! `/openid/v1/jwks`.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use crate::negotiate::Output;
use crate::reply::{self, ResponseBody};
use crate::state::Server;
use crate::status::{Result, Status};
use crate::token::ISSUER;

const KEYS: &str = "/openid/v1/jwks";

/// Anybody may keep what is told here for a while: the keys stay the same.
const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// Answers one of the two paths.
pub(crate) async fn answer(server: &Server, path: &[&str]) -> Result<Response<ResponseBody>> {
    let mut response = match path {
        [".well-known", "openid-configuration"] => {
            let uri = server.endpoint.get().map(|endpoint| format!("https://{endpoint}{KEYS}"));
            let configuration = json!({
                "issuer": ISSUER,
                "jwks_uri": uri.unwrap_or_else(|| format!("{ISSUER}{KEYS}")),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            });
            reply::document(StatusCode::OK, Output::default(), &configuration)
        }
        ["openid", "v1", "jwks"] => {
            let keys = server.signer.jwks(&*server.store).await?;
            let mut response = reply::document(StatusCode::OK, Output::default(), &keys);
            let media_type = HeaderValue::from_static("application/jwk-set+json");
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            response
        }
        _ => return Err(Status::no_such_resource()),
    };
    response.headers_mut().insert(header::CACHE_CONTROL, CACHING);
    Ok(response)
}
