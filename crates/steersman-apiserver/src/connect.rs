//! `pods/{attach, exec, log, portforward, proxy}`, `nodes/proxy`, `services/proxy`: what leads
//! through the server to a node.
//!
//! Nodes are simulated or serve nothing themselves, so there is nobody to connect to yet. What can be
//! told without one is told as Kubernetes tells it: whether the object is there, whether a Pod has the
//! container, and that it has no node; and before all that, which wishes of a log make no sense.

mod log_options;

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

/// What leads to one container of a Pod.
const INTO_CONTAINERS: [&str; 3] = ["attach", "exec", "log"];

/// Answers a request to be connected.
pub(crate) async fn answer(call: &Call) -> Result<Reply> {
    if call.resource.is("", "pods") && INTO_PODS.contains(&call.subresource()) {
        may_create(call)?;
    }
    match call.subresource() {
        "log" => log_options::check(call.place().name, &call.info.query)?,
        _ => Box::pin(Request::connect(call, options(call))).await?,
    }
    let object = call.stored().await?.decode(&call.api_version)?;
    if call.resource.is("", "pods") && INTO_CONTAINERS.contains(&call.subresource()) {
        check_container(&object, call.info.query.text("container")).map_err(Status::bad_request)?;
    }
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

/// Whether it is clear which container of a Pod is meant. The only one need not be named.
fn check_container(pod: &Value, named: Option<&str>) -> Result<(), String> {
    let all = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    let all = all.filter_map(|list| pod["spec"][list].as_array()).flatten();
    let mut all = all.filter_map(|container| container["name"].as_str());
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or("");
    match (named, pod["spec"]["containers"].as_array().map_or(0, Vec::len)) {
        (Some(named), _) if all.any(|name| name == named) => Ok(()),
        (Some(named), _) => Err(format!("container {named} is not valid for pod {pod_name}")),
        (None, 0) => Err(format!("a container name must be specified for pod {pod_name}")),
        (None, 1) => Ok(()),
        (None, _) => {
            let all = all.collect::<Vec<_>>().join(" ");
            Err(format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{all}]"
            ))
        }
    }
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
    if let Some(text) = query.text("container") {
        options["container"] = text.into();
    }
    // Whatever the query says of it.
    if !call.info.proxied.is_empty() {
        options["path"] = call.info.proxied.as_str().into();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::check_container;

    #[test]
    fn a_container_is_named_where_there_are_several() {
        let mut pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "initContainers": [{"name": "i"}],
                "containers": [{"name": "a"}, {"name": "c"}],
                "ephemeralContainers": [{"name": "e"}],
            },
        });
        for named in ["i", "a", "c", "e"] {
            assert_eq!(check_container(&pod, Some(named)), Ok(()));
        }
        let wrong = "container zz is not valid for pod p";
        assert_eq!(check_container(&pod, Some("zz")).unwrap_err(), wrong);
        assert_eq!(
            check_container(&pod, None).unwrap_err(),
            "a container name must be specified for pod p, choose one of: [i a c e]"
        );
        pod["spec"]["containers"] = json!([{"name": "a"}]);
        assert_eq!(check_container(&pod, None), Ok(()));
    }
}
