//! `pods/{attach, exec, log, portforward, proxy}`, `nodes/proxy`, `services/proxy`: what leads
//! through the server to a node.
//!
//! Nodes are simulated, so there is nobody to connect to yet. What can be told without one is told
//! as Kubernetes tells it: whether the object is there, and that a Pod has no node.

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::resource::Verb;

use crate::admission::Request;
use crate::authz::{Attributes, Target};
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};

/// What lets one act inside a Pod.
const INTO_PODS: [&str; 3] = ["attach", "exec", "portforward"];

/// Answers a request to be connected.
pub(crate) async fn answer(call: &Call) -> Result<Reply> {
    if call.resource.is("", "pods") && INTO_PODS.contains(&call.subresource()) {
        may_create(call)?;
    }
    if call.subresource() != "log" {
        Box::pin(Request::connect(call, options(call))).await?;
    }
    let object = call.stored().await?.decode(&call.api_version)?;
    let unassigned = object["spec"]["nodeName"].as_str().unwrap_or("").is_empty();
    if unassigned && call.resource.is("", "pods") {
        match call.subresource() {
            // Who has not begun has said nothing.
            "log" => return Ok(Reply::Nothing(StatusCode::NO_CONTENT)),
            subresource if INTO_PODS.contains(&subresource) => {
                let name = call.place().name;
                let why = format!("pod {name} does not have a host assigned");
                return Err(Status::bad_request(why));
            }
            _ => {}
        }
    }
    Err(Status::not_implemented(&call.resource.qualified(), call.subresource()))
}

/// What the client wishes, as those see it who are asked whether it may have it.
fn options(call: &Call) -> Value {
    let subresource = call.resource.subresource(call.subresource());
    let kind = subresource.map(|subresource| subresource.kind.as_ref()).unwrap_or_default();
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    let query = &call.info.query;
    for field in ["stdin", "stdout", "stderr", "tty"] {
        if query.flag(field) == Some(true) {
            options[field] = true.into();
        }
    }
    for field in ["container", "path"] {
        if let Some(text) = query.text(field) {
            options[field] = text.into();
        }
    }
    let command: Vec<&str> = query.all("command").collect();
    if !command.is_empty() {
        options["command"] = command.into();
    }
    let ports: Vec<i64> = query.all("ports").filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options["ports"] = ports.into();
    }
    options
}

/// A WebSocket begins with a GET, and whoever may read a Pod must not get into it that way: that takes
/// the verb `create`, as it does by POST.
fn may_create(call: &Call) -> Result<()> {
    if call.info.verb == Verb::Create {
        return Ok(());
    }
    let place = call.place();
    let target = Target::Resource {
        group: &call.resource.group,
        resource: &call.resource.plural,
        subresource: call.subresource(),
        namespace: place.namespace,
        name: place.name,
    };
    let decision = call.server.authorizer.decide(&Attributes::new(&call.user, "create", target));
    match decision.allowed {
        true => Ok(()),
        false => {
            let named = call.resource.named(place.name);
            Err(Status::forbidden(named, &decision.reason, Vec::new()))
        }
    }
}
