//! The target of an autoscaler: objects of any kind with a scale.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use steersman::{Client, Error, Result};
use tokio::time::Instant;

use super::request::{Call, encoded};
use crate::discovery::{ServedResource, served_kind};

/// For how long it is believed how a kind is served.
const BELIEVED: Duration = Duration::from_secs(30);
/// How often a size is written that others prevented by writing first, and how long to wait.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// How kinds are served, as far as was asked for lately.
#[derive(Default)]
pub(super) struct Kinds {
    known: Mutex<HashMap<(String, String), (Instant, ServedResource)>>,
}

impl Kinds {
    /// How the kind of a group is served.
    pub(super) async fn find(
        &self,
        client: &Client,
        group: &str,
        kind: &str,
    ) -> Result<ServedResource> {
        let key = (group.to_owned(), kind.to_owned());
        if let Some(known) = self.believed(&key) {
            return Ok(known);
        }
        let found = served_kind(client, group, kind).await?.ok_or_else(|| {
            Error::message(format!("no matches for kind {kind:?} in group {group:?}"))
        })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, (Instant::now(), found.clone()));
        Ok(found)
    }

    fn believed(&self, key: &(String, String)) -> Option<ServedResource> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (since, _)| since.elapsed() < BELIEVED);
        known.get(key).map(|(_, resource)| resource.clone())
    }
}

/// The group of what is referred to.
fn group_of(reference: &CrossVersionObjectReference) -> Result<&str> {
    let version = reference.api_version.as_deref().unwrap_or_default();
    match version.split('/').count() {
        3.. => Err(Error::message(format!("unexpected GroupVersion string: {version}"))),
        _ => Ok(version.split_once('/').map_or("", |(group, _)| group)),
    }
}

/// Whether it is clear what is referred to, be it there or not.
pub(super) fn is_clear(reference: &CrossVersionObjectReference) -> bool {
    group_of(reference).is_ok()
}

/// A target that was found.
pub(super) struct Target<'a> {
    client: &'a Client,
    resource: String,
    path: String,
    name: &'a str,
    /// How large it is and shall be.
    pub(super) scale: Scale,
}

impl<'a> Target<'a> {
    /// Reads the scale of what is referred to.
    pub(super) async fn find(
        client: &'a Client,
        kinds: &Kinds,
        namespace: &str,
        reference: &'a CrossVersionObjectReference,
    ) -> Result<Self> {
        let served = kinds.find(client, group_of(reference)?, &reference.kind).await?;
        let name = reference.name.as_str();
        let path = format!("{}/{}/scale", served.path(Some(namespace)), encoded(name));
        let resource = served.api.plural;
        let mut target = Self { client, resource, path, name, scale: Scale::default() };
        target.scale = target.call(Method::GET, &[]).send(client, Vec::new()).await?;
        Ok(target)
    }

    fn call<'b>(&'b self, method: Method, query: &'b [(&'b str, &'b str)]) -> Call<'b> {
        let path = self.path.clone();
        Call { method, path, query, resource: &self.resource, name: self.name }
    }

    /// How many replicas are asked for.
    pub(super) fn spec_replicas(&self) -> i32 {
        self.scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)
    }

    /// How many replicas there are.
    pub(super) fn status_replicas(&self) -> i32 {
        self.scale.status.as_ref().map_or(0, |status| status.replicas)
    }

    /// The labels of its Pods; empty if it does not say.
    pub(super) fn selector(&self) -> &str {
        let status = self.scale.status.as_ref();
        status.and_then(|status| status.selector.as_deref()).unwrap_or_default()
    }

    /// Asks for another number of replicas. If somebody changed the target meanwhile, it is read
    /// and written again.
    pub(super) async fn resize(&mut self, replicas: i32) -> Result<()> {
        let manager = self.client.field_manager();
        for attempt in 1.. {
            self.scale.spec.get_or_insert_default().replicas = Some(replicas);
            let query = [("fieldManager", manager)];
            let body = serde_json::to_vec(&self.scale)?;
            let written: Result<Scale> =
                self.call(Method::PUT, &query).send(self.client, body).await;
            let Err(error) = written else { break };
            if !error.is_conflict() || attempt == ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
            self.scale = self.call(Method::GET, &[]).send(self.client, Vec::new()).await?;
        }
        Ok(())
    }
}
