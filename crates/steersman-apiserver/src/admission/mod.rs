//! Admission webhooks: others who may change or refuse what is written.
//!
//! [`Webhooks`] holds the configurations as compiled when they last changed; a server without any
//! pays one atomic read a write. A write asks through a [`Request`]: mutating webhooks one after
//! the other, before the object is validated, validating ones all at once, right before it is
//! stored. [`mutate`](crate::mutate) is where it asks; a write that finds the object changed asks
//! again, but not for ever. Nothing is locked meanwhile, so webhooks may call back.
//!
//! Match conditions are expressions in CEL, which this server cannot evaluate: a webhook that has
//! any is treated as Kubernetes treats one whose conditions fail to evaluate. With the failure
//! policy `Fail` the request is refused, with `Ignore` the webhook is passed over.

mod configuration;
mod dispatch;
mod matching;
mod request;
mod review;
mod rules;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use steersman_store::{RangeRequest, Revision};

pub(crate) use request::{Operation, Request};

use crate::document::Stored;
use crate::state::Server;
use crate::status::{Result, Status};
use configuration::Webhook;
use steersman_rules::resource::Resource;

const GROUP: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

/// The groups of what is asked and never stored: a webhook must not stand between a client and
/// the question who it is.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// All webhooks of one moment, in the order in which they are called.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    revision: Revision,
    mutating: Vec<Webhook>,
    validating: Vec<Webhook>,
}

/// The webhooks that are configured now.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    /// Whether there is any.
    any: AtomicBool,
    /// The lock is held for moments, never over a wait.
    hooks: RwLock<Arc<Hooks>>,
}

impl Webhooks {
    /// The webhooks that may have a say in writes of a resource; `None` if there are none.
    pub(crate) fn of(&self, resource: &Resource) -> Option<Arc<Hooks>> {
        if !self.any.load(Ordering::Acquire) || is_exempt(resource) {
            return None;
        }
        Some(Arc::clone(&self.hooks.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The revision of what is configured.
    pub(crate) fn revision(&self) -> Revision {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Lets whatever is read next count, for there is another history since.
    pub(crate) fn forget(&self) {
        let mut current = self.hooks.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::default();
        self.any.store(false, Ordering::Release);
    }

    /// Takes what was read at a revision, unless something newer was.
    fn install(&self, hooks: Hooks) {
        let mut current = self.hooks.write().unwrap_or_else(PoisonError::into_inner);
        if current.revision <= hooks.revision {
            let any = !(hooks.mutating.is_empty() && hooks.validating.is_empty());
            *current = Arc::new(hooks);
            self.any.store(any, Ordering::Release);
        }
    }
}

/// Whether no webhook is asked about a resource: neither about those that configure webhooks,
/// which could never be repaired otherwise, nor about reviews.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP || REVIEWS.contains(&resource.group.as_ref())
}

/// Whether a write to a resource may change which webhooks there are.
pub(crate) fn concerns(resource: &Resource) -> bool {
    resource.group == GROUP && (resource.plural == MUTATING || resource.plural == VALIDATING)
}

/// The folders of configurations.
pub(crate) fn folders() -> [String; 2] {
    [MUTATING, VALIDATING].map(|plural| format!("/registry/{plural}/"))
}

/// Reads the configurations that the store holds: when the server starts, after each write of
/// one, before the client hears of it, and when another server has written one.
pub(crate) async fn load(server: &Server) -> Result<Revision> {
    let (mutating, at) = read(server, MUTATING, None).await?;
    let (validating, revision) = read(server, VALIDATING, Some(at)).await?;
    server.webhooks.install(Hooks { revision, mutating, validating });
    Ok(revision)
}

/// The webhooks of one kind, by the names of their configurations.
async fn read(
    server: &Server,
    plural: &str,
    at: Option<Revision>,
) -> Result<(Vec<Webhook>, Revision)> {
    let table = server.registry.table();
    let resource = table.get(GROUP, "v1", plural).ok_or_else(Status::no_such_resource)?;
    let prefix = resource.prefix("");
    let state = server.store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
    let mut webhooks = Vec::new();
    for entry in &state.entries {
        let configuration = Stored::from(entry).decode(&format!("{GROUP}/v1"))?;
        webhooks.extend(configuration::webhooks(&configuration));
    }
    Ok((webhooks, state.revision))
}
