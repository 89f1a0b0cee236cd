//! `pods/{attach, exec, log, portforward, proxy}`, `nodes/proxy`, `services/proxy`: what leads
//! through the server to a node.
//!
//! Nodes are simulated, so there is nobody to connect to yet. What can be told without one is told
//! as Kubernetes tells it: whether the object is there, and that a Pod has no node.

use http::StatusCode;

use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};

/// Answers a request to be connected.
pub(crate) async fn answer(call: &Call) -> Result<Reply> {
    let object = call.stored().await?.decode(&call.api_version)?;
    let unassigned = object["spec"]["nodeName"].as_str().unwrap_or("").is_empty();
    if unassigned && call.resource.is("", "pods") {
        match call.subresource() {
            // Who has not begun has said nothing.
            "log" => return Ok(Reply::Nothing(StatusCode::NO_CONTENT)),
            "attach" | "exec" | "portforward" => {
                let name = call.place().name;
                let why = format!("pod {name} does not have a host assigned");
                return Err(Status::bad_request(why));
            }
            _ => {}
        }
    }
    Err(Status::not_implemented(&call.resource.qualified(), call.subresource()))
}
