//! Objects that a part of the cluster makes if nobody has.

use http::{Request, header};
use serde_json::Value;

/// Creates an object at this path, unless there is one of its name.
pub(crate) async fn create_missing(
    client: &kube::Client,
    path: &str,
    object: &Value,
) -> kube::Result<()> {
    let request = Request::post(format!("{path}?fieldManager=steersman"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes());
    match client.request::<Value>(request.map_err(kube::Error::HttpError)?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        answer => answer.map(drop),
    }
}
