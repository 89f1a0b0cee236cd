//! `componentstatuses`: the parts of a control plane, as the server sees them. They are made when
//! asked for and stored nowhere.
//!
//! Scheduler and controllers run beside the server or not at all, and it must not know them; what
//! it can tell is the health of its store.

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::resource::Named;
use steersman_rules::resource::{Place, Verb};

use crate::call::Call;
use crate::document::Stored;
use crate::health;
use crate::read::options::ListOptions;
use crate::reply::{Page, Reply};
use crate::status::{Result, Status};

/// The parts, in the order in which they are listed.
const COMPONENTS: [&str; 3] = ["scheduler", "controller-manager", "etcd-0"];

/// Answers a get or a list; `None` if it is about something else. A watch is refused, but not
/// before its options are looked at.
pub(crate) async fn answer(call: &Call) -> Result<Option<Reply>> {
    if !call.resource.is("", "componentstatuses") {
        return Ok(None);
    }
    Ok(Some(match call.info.verb {
        Verb::Get => Box::pin(get(call)).await?,
        Verb::Watch => {
            ListOptions::check_watch(call)?;
            let named = Named { group: "", resource: "componentstatuses", name: "" };
            return Err(Status::verb_not_supported(named, call.info.verb.name()));
        }
        _ => Box::pin(list(call)).await?,
    }))
}

async fn get(call: &Call) -> Result<Reply> {
    let name = call.place().name;
    let Some(name) = COMPONENTS.iter().find(|component| **component == name) else {
        // Kubernetes names the kind here where it names the resource elsewhere.
        return Err(Status::not_found(Named { group: "", resource: "componentstatus", name }));
    };
    Ok(Reply::Object {
        code: StatusCode::OK,
        object: Stored::unwritten(&component(call, name).await)?,
    })
}

async fn list(call: &Call) -> Result<Reply> {
    let options = ListOptions::of_unversioned(call)?;
    let mut page = Page::default();
    for name in COMPONENTS {
        let object = Stored::unwritten(&component(call, name).await)?;
        let key = call.resource.key(Place { namespace: "", name });
        if options.selector.matches(&call.resource, &key, &object.bytes) {
            page.objects.push(object);
        }
    }
    Ok(Reply::List(page))
}

async fn component(call: &Call, name: &str) -> Value {
    let health = match name {
        "etcd-0" => health::store(&call.server).await,
        _ => Ok(()),
    };
    let (status, message) = match health {
        Ok(()) => ("True", "ok".to_owned()),
        Err(why) => ("False", why),
    };
    json!({
        "apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    })
}
