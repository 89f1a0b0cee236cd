//! One request on its way: who asks for what, of which resource, in which form.
//!
//! The [pipeline](crate::pipeline) makes it; the verbs take from it what they need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use serde_json::Value;
use steersman_rules::resource::{Place, Resource, Subresource, Verb};
use tokio::time::Instant;

use crate::audit::Trail;
use crate::caller::Caller;
use crate::conversion;
use crate::document::Stored;
use crate::metrics::Asked;
use crate::negotiate::{self, Output};
use crate::request::RequestInfo;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::user::User;
use crate::warnings::Warnings;

/// The media type of a configuration that is applied.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// A request for a resource that is served.
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    pub(crate) user: Arc<User>,
    pub(crate) caller: Caller,
    pub(crate) info: RequestInfo,
    pub(crate) resource: Arc<Resource>,
    /// The version the client speaks, as objects carry it.
    pub(crate) api_version: String,
    pub(crate) output: Output,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What the client is told although its request succeeds.
    pub(crate) warnings: Warnings,
    /// What is audited of it, if anything is.
    pub(crate) trail: Option<Arc<Trail>>,
    /// How long it has waited for webhooks, in nanoseconds.
    pub(crate) webhooks_took: AtomicU64,
}

impl Call {
    /// The place of the object in the path.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { namespace: self.namespace(), name: self.info.name.as_deref().unwrap_or("") }
    }

    /// The namespace of the path; empty where there is none.
    pub(crate) fn namespace(&self) -> &str {
        self.info.namespace.as_deref().unwrap_or("")
    }

    /// The name of the subresource; empty for the resource itself.
    pub(crate) fn subresource(&self) -> &str {
        self.info.subresource.as_deref().unwrap_or("")
    }

    /// The media type of the body.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }

    /// Whether a configuration is applied.
    pub(crate) fn is_apply(&self) -> bool {
        negotiate::media_type(self.content_type()) == APPLY
    }

    /// What it is counted as.
    pub(crate) fn asked(&self) -> Asked {
        let Self { info, resource, .. } = self;
        let sub = resource.subresource(self.subresource());
        Asked {
            verb: match info.verb {
                _ if sub.is_some_and(Subresource::is_connection) => "CONNECT",
                Verb::Get => "GET",
                Verb::List => "LIST",
                Verb::Watch => "WATCH",
                Verb::Create => "POST",
                Verb::Update => "PUT",
                Verb::Patch if self.is_apply() => "APPLY",
                Verb::Patch => "PATCH",
                Verb::Delete | Verb::DeleteCollection => "DELETE",
            },
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: sub.map(|sub| sub.name.clone()).unwrap_or_default(),
            scope: match (&info.name, &info.namespace) {
                _ if info.verb == Verb::Create => "resource",
                (Some(_), _) => "resource",
                (None, Some(_)) => "namespace",
                (None, None) => "cluster",
            },
            dry_run: match info.query.get("dryRun") {
                None => "",
                Some("All") => "All",
                Some(_) => "invalid",
            },
            component: "apiserver",
        }
    }

    /// The body as a document.
    pub(crate) fn document(&self) -> Result<Value> {
        negotiate::decode(self.content_type(), &self.body)
    }

    /// Who writes, for `managedFields`: the query's field manager or the program's name.
    pub(crate) fn manager(&self) -> String {
        if let Some(manager) = self.info.query.text("fieldManager") {
            return manager.to_owned();
        }
        let agent = self.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let program = agent.unwrap_or("").split('/').next().unwrap_or("");
        let program: String = program.chars().filter(|c| !c.is_control()).take(128).collect();
        if program.is_empty() { "unknown".to_owned() } else { program }
    }

    /// The stored object of the path, or 404.
    pub(crate) async fn stored(&self) -> Result<Stored> {
        let place = self.place();
        let began = Instant::now();
        let entry = self.server.get(&self.resource.key(place)).await;
        let storage = &self.server.metrics.storage;
        storage.asked("get", &self.resource, entry.is_err(), began.elapsed());
        let entry = entry?.ok_or_else(|| Status::not_found(self.resource.named(place.name)))?;
        conversion::read(&self.server, &self.resource, Stored::from(&entry)).await
    }

    /// It has waited for webhooks.
    pub(crate) fn waited(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.webhooks_took.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How long it has waited for webhooks.
    pub(crate) fn webhooks_took(&self) -> Duration {
        Duration::from_nanos(self.webhooks_took.load(Ordering::Relaxed))
    }

    /// Tells the client something that did not stop its request, once.
    pub(crate) fn warn(&self, warning: String) {
        self.warnings.warn(warning);
    }
}
