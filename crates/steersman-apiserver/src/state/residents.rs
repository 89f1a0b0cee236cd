//! Servers behind this one that belong to it: they live in its process and are there whenever it is.
//!
//! So nobody looks after them, and what they have is known beforehand. They may start when somebody
//! first asks: until then they cost one APIService.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use serde_json::{Value, json};

use crate::webhook_client::{ExtensionHandler, Service, pieces};

/// Where their Services would be, if they needed any.
const NAMESPACE: &str = "kube-system";

/// How the names of their Services begin: so an APIService is known of one that is there no more.
const PREFIX: &str = "steersman-";

/// A server behind this one that belongs to it.
#[derive(Clone)]
pub struct Resident {
    service: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// Where its group and its version stand among others.
    pub(crate) priorities: (i64, i64),
    /// What it has, as aggregated discovery tells it. One that has nothing told beforehand is asked.
    pub(crate) resources: Value,
    /// Whether its APIService is made at each start.
    pub(crate) is_standing: bool,
    pub(crate) handler: ExtensionHandler,
}

impl std::fmt::Debug for Resident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resident").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Resident {
    /// A server of that name. It has what these CustomResourceDefinitions say, which are of one
    /// group and its first version, and all [computed](crate::Computed); requests carry their
    /// [`User`](crate::user::User) as an extension, who is allowed what is asked for.
    pub fn new<F, B>(name: &str, definitions: &[Value], serve: F) -> Self
    where
        F: Fn(Request<Bytes>) -> BoxFuture<'static, Response<B>> + Send + Sync + 'static,
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Send + 'static,
    {
        let spec = definitions.first().map_or(&Value::Null, |first| &first["spec"]);
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        Self {
            service: format!("{PREFIX}{name}"),
            group: text(&spec["group"]),
            version: text(&spec["versions"][0]["name"]),
            priorities: (100, 100),
            resources: definitions.iter().map(resource).collect(),
            is_standing: true,
            handler: handler(serve),
        }
    }

    /// A server that nobody sees until an APIService leads to the Service of this name in
    /// `kube-system`, of whatever group and version. What it has, it tells itself when it is asked.
    pub fn on_demand<F, B>(service: &str, serve: F) -> Self
    where
        F: Fn(Request<Bytes>) -> BoxFuture<'static, Response<B>> + Send + Sync + 'static,
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Send + 'static,
    {
        Self {
            service: service.to_owned(),
            group: String::new(),
            version: String::new(),
            priorities: (100, 100),
            resources: json!([]),
            is_standing: false,
            handler: handler(serve),
        }
    }

    /// Where requests to it go.
    pub(crate) fn origin(&self) -> String {
        format!("https://{}.{NAMESPACE}.svc", self.service)
    }

    /// The Service that its APIService names.
    pub(crate) fn service(&self) -> Value {
        json!({"name": self.service, "namespace": NAMESPACE, "port": 443})
    }

    /// Whether it is this one that answers for a Service.
    pub(crate) fn is(&self, service: &Service) -> bool {
        service.namespace == NAMESPACE && service.name == self.service
    }
}

fn handler<F, B>(serve: F) -> ExtensionHandler
where
    F: Fn(Request<Bytes>) -> BoxFuture<'static, Response<B>> + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Send + 'static,
{
    Arc::new(move |request| {
        let answer = serve(request);
        Box::pin(async move { answer.await.map(pieces) })
    })
}

/// Whether an APIService leads to such a server, whether there is one or not.
pub(crate) fn is_of_resident(object: &Value) -> bool {
    let service = &object["spec"]["service"];
    service["namespace"] == NAMESPACE
        && service["name"].as_str().is_some_and(|name| name.starts_with(PREFIX))
}

/// What discovery tells of the resource of a definition.
fn resource(definition: &Value) -> Value {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let kind = json!({
        "group": spec["group"], "version": spec["versions"][0]["name"], "kind": names["kind"],
    });
    json!({
        "resource": names["plural"], "responseKind": kind, "scope": spec["scope"],
        "singularResource": names["singular"], "verbs": ["get", "list"],
    })
}

#[cfg(test)]
mod tests {
    use http::Response;
    use http_body_util::Full;
    use serde_json::json;

    use super::{Resident, is_of_resident};

    #[test]
    fn what_a_definition_says_is_told_beforehand() {
        let definition = json!({"spec": {
            "group": "sea.test", "scope": "Namespaced", "versions": [{"name": "v1"}],
            "names": {"plural": "tides", "singular": "tide", "kind": "Tide"},
        }});
        let resident = Resident::new("sea", &[definition], |_| {
            Box::pin(async { Response::new(Full::from("nobody asks")) })
        });
        assert_eq!((&*resident.group, &*resident.version), ("sea.test", "v1"));
        assert_eq!(resident.origin(), "https://steersman-sea.kube-system.svc");
        let kind = json!({"group": "sea.test", "version": "v1", "kind": "Tide"});
        assert_eq!(
            resident.resources,
            json!([{
                "resource": "tides", "responseKind": kind, "scope": "Namespaced",
                "singularResource": "tide", "verbs": ["get", "list"],
            }])
        );
        assert!(is_of_resident(&json!({"spec": {"service": resident.service()}})));
        let other = json!({"name": "metrics-server", "namespace": "kube-system"});
        assert!(!is_of_resident(&json!({"spec": {"service": other}})));
    }
}
