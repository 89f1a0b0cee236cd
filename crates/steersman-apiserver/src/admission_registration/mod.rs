//! Which admission webhooks are registered, as their configurations said when they last changed.
//!
//! [`Webhooks`] holds them compiled; a server without any pays one atomic read a write.
//! [`crate::admission`] asks them.

mod rules;
mod webhook;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use steersman_store::{RangeRequest, Revision, Store};

pub(crate) use rules::{Operation, Rule, Subject};
use steersman_rules::resource::Resource;
pub(crate) use webhook::Webhook;

use crate::document::Stored;
use crate::registry::Table;
use crate::status::{Result, Status};

const GROUP: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

/// All webhooks of one moment, in the order in which they are called.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    revision: Revision,
    pub(crate) mutating: Vec<Webhook>,
    pub(crate) validating: Vec<Webhook>,
}

/// Which webhooks, or policies, are asked at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) mutating: bool,
    pub(crate) validating: bool,
}

/// The webhooks that are configured now.
#[derive(Debug)]
pub(crate) struct Webhooks {
    asked: Asked,
    /// Whether there is any.
    any: AtomicBool,
    /// The lock is held for moments, never over a wait.
    hooks: RwLock<Arc<Hooks>>,
}

impl Webhooks {
    /// Without any, until they are [loaded](Self::load).
    pub(crate) fn new(asked: Asked) -> Self {
        Self { asked, any: AtomicBool::default(), hooks: RwLock::default() }
    }

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

    /// Reads the configurations that the store holds: when the server starts, after each write of
    /// one, before the client hears of it, and when another server has written one.
    pub(crate) async fn load(&self, store: &dyn Store, table: &Table) -> Result<Revision> {
        let (mut mutating, at) = read(store, table, MUTATING, None).await?;
        let (mut validating, revision) = read(store, table, VALIDATING, Some(at)).await?;
        if !self.asked.mutating {
            mutating.clear();
        }
        if !self.asked.validating {
            validating.clear();
        }
        self.install(Hooks { revision, mutating, validating });
        Ok(revision)
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

/// Whether no webhook is asked about a resource: about those that configure webhooks, which could
/// never be repaired otherwise.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP
}

/// The folders of configurations.
pub(crate) fn folders() -> [String; 2] {
    [MUTATING, VALIDATING].map(|plural| format!("/registry/{plural}/"))
}

/// The webhooks of one kind, by the names of their configurations.
async fn read(
    store: &dyn Store,
    table: &Table,
    plural: &str,
    at: Option<Revision>,
) -> Result<(Vec<Webhook>, Revision)> {
    let resource = table.get(GROUP, "v1", plural).ok_or_else(Status::no_such_resource)?;
    let prefix = resource.prefix("");
    let state = store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
    let mut webhooks = Vec::new();
    for entry in &state.entries {
        let configuration = Stored::from(entry).decode(&format!("{GROUP}/v1"))?;
        webhooks.extend(webhook::all(&configuration));
    }
    Ok((webhooks, state.revision))
}
