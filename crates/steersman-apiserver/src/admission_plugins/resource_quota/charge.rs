//! What quotas were charged for a write, and how that is given back if the write fails.
//!
//! Whoever counts a quota anew replaces what was charged by what is there. A charge for a write
//! that failed must not be taken off after that: the count does without it, and the quota would
//! show less than is used. So a charge is given back only if everything that was written to the
//! quota since were charges, too, which the history of the store shows. Otherwise it stays until
//! the next count. So does one that cannot be given back in time, for the client waits for it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::quota::Amounts;
use steersman_rules::resource::Resource;
use steersman_store::{Entry, Expected, Revision, StoreError, WatchRequest};

use crate::document::{self, Stored};
use crate::state::Server;
use crate::state::effects::{Outcome, Taken};
use crate::status::{Result, Status};
use crate::write::{Held, Writer};

/// How often it is tried to give a charge back while others charge.
const ATTEMPTS: usize = 64;

/// How long it is tried.
const TIME_MAX: Duration = Duration::from_secs(5);

/// What one quota was charged.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) key: String,
    pub(super) amounts: Amounts,
    /// When.
    pub(super) revision: Revision,
}

/// Why a quota was not charged.
pub(super) enum ChargeError {
    /// Someone else has written it.
    Conflict,
    /// Something went wrong.
    Failed(Status),
}

impl From<StoreError> for ChargeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Conflict,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<Status> for ChargeError {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

impl Charge {
    /// Gives it back, if it is certain to be still in there.
    async fn give_back(&self, server: &Arc<Server>) {
        for _ in 0..ATTEMPTS {
            let Ok(Some(entry)) = server.get(&self.key).await else { return };
            if !self.is_in(server, &entry).await {
                return;
            }
            match write(server, &entry, |used| used.subtract(&self.amounts)).await {
                Err(ChargeError::Conflict) => tokio::task::yield_now().await,
                Ok(_) | Err(ChargeError::Failed(_)) => return,
            }
        }
    }

    /// Whether nothing but charges was written since, up to this entry.
    async fn is_in(&self, server: &Server, entry: &Entry) -> bool {
        let mut at = self.revision;
        if at == entry.modified {
            return true;
        }
        let request = WatchRequest { prefix: self.key.clone(), after: at };
        let Ok(mut history) = server.store.watch(request).await else { return false };
        while at < entry.modified {
            let Ok(events) = history.next().await else { return false };
            for event in events.iter().filter(|event| *event.key == *self.key) {
                let states = event.previous.as_ref().zip(event.current.as_ref());
                if at < entry.modified && !states.is_some_and(|(old, new)| is_charge(old, new)) {
                    return false;
                }
                at = event.revision;
            }
        }
        true
    }
}

/// What quotas were charged for one write. Dropped unsettled, for example because the client went
/// away, it is given back.
pub(super) struct Charges {
    server: Arc<Server>,
    all: Vec<Charge>,
}

impl Charges {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        Self { server: Arc::clone(server), all: Vec::new() }
    }

    pub(super) fn push(&mut self, charge: Charge) {
        self.all.push(charge);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the quota of a key was charged.
    pub(super) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|charge| charge.key == key)
    }

    /// Gives everything back. Whoever calls this must not be dropped meanwhile.
    pub(super) async fn give_back(mut self) {
        give_back(&self.server, std::mem::take(&mut self.all)).await;
    }
}

async fn give_back(server: &Arc<Server>, charges: Vec<Charge>) {
    let all = async {
        for charge in &charges {
            charge.give_back(server).await;
        }
    };
    if tokio::time::timeout(TIME_MAX, all).await.is_err() {
        tracing::warn!("a charge to a quota could not be given back in time");
    }
}

impl Taken for Charges {
    fn settle(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match outcome {
                Outcome::Failed => (*self).give_back().await,
                // What nobody knows of is counted when somebody counts.
                Outcome::Written | Outcome::Unknown => self.all.clear(),
            }
        })
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.all);
        if all.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let server = Arc::clone(&self.server);
            runtime.spawn(async move { give_back(&server, all).await });
        }
    }
}

/// Whether a quota was charged, or given something back, and nothing else: then the server owns
/// what has changed of what is used.
fn is_charge(old: &Entry, new: &Entry) -> bool {
    let [old, new] = [old, new].map(document);
    if old["metadata"]["uid"] != new["metadata"]["uid"]
        || old["status"]["hard"] != new["status"]["hard"]
    {
        return false;
    }
    let before = Amounts::of(&old["status"]["used"]);
    let used = Amounts::of(&new["status"]["used"]);
    let managers = new["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ours = |name: &str| {
        managers.iter().any(|entry| {
            entry["manager"] == "kube-apiserver"
                && entry["fieldsV1"]["f:status"]["f:used"].get(format!("f:{name}")).is_some()
        })
    };
    before.names().all(|name| used.get(name).is_some())
        && used.iter().all(|(name, amount)| before.get(name) == Some(amount) || is_ours(name))
}

fn document(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.value).unwrap_or_default()
}

/// Writes what a quota says is used, as the server's own change of its status.
pub(super) async fn write(
    server: &Arc<Server>,
    entry: &Entry,
    change: impl FnOnce(&mut Amounts),
) -> Result<Revision, ChargeError> {
    let table = server.registry.table();
    let resource: &Resource =
        table.get("", "v1", "resourcequotas").ok_or_else(Status::no_such_resource)?;
    let writer = Writer { subresource: "status", ..Writer::internal(server, resource) };
    let old = Stored::from(entry).decode(&writer.api_version)?;
    let mut used = Amounts::of(&old["status"]["used"]);
    change(&mut used);
    let mut new = old.clone();
    new["status"]["used"] = used.to_value();
    writer.track(Some(&old), &mut new);
    let bytes = document::encode(&new)?;
    let place = resource.place(&entry.key);
    let expected = Expected::Modified(entry.modified);
    Ok(writer.commit(place, Some(bytes), &Arc::new(new), expected, Held::default()).await?)
}
