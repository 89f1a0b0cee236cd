//! One write that wants something of the quotas of its namespace.

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::quota::{Amounts, Demand, Quota, charges};
use steersman_rules::resource::Named;
use steersman_store::{Entry, RangeRequest, Revision};

use super::charge::{Charge, ChargeError};
use super::turns::{Charges, Turns};
use crate::state::effects::Taken;
use crate::state::plugins::Attributes;
use crate::status::{MODIFIED, Result, Status};

/// Where the quotas of all namespaces are.
const FOLDER: &str = "/registry/resourcequotas/";

/// How often quotas are charged anew because someone else changed them. Writers of this server
/// take turns, so that someone is another server, or whoever counts.
const ATTEMPTS: usize = 64;

/// A write, and what it wants of quotas.
#[derive(Clone, Copy)]
pub(super) struct Bill<'a> {
    pub(super) write: Attributes<'a>,
    pub(super) demand: Demand<'a>,
}

/// Whether what this server has heard of quotas is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    AsHeard,
    Latest,
}

impl Bill<'_> {
    /// Whether these quotas are charged nothing, as most are by what they do not limit. Then
    /// nobody has to wait.
    pub(super) fn is_free(&self, entries: &[Entry]) -> bool {
        let seen: Vec<Quota> = entries.iter().map(quota).collect();
        charges(&seen, self.demand).is_ok_and(|wanted| wanted.iter().all(Amounts::is_empty))
    }

    /// Charges every quota that the write concerns, or none.
    pub(super) async fn pay(self, turns: &Turns) -> Result<Option<Box<dyn Taken>>> {
        let mut charged = Charges::new(self.write.server);
        let turn = turns.of(self.write.place.namespace).await;
        let paid = self.pay_all(&mut charged).await;
        drop(turn);
        match paid {
            Ok(()) if charged.is_empty() => Ok(None),
            Ok(()) => Ok(Some(Box::new(charged))),
            Err(status) => {
                charged.give_back().await;
                Err(status)
            }
        }
    }

    async fn pay_all(&self, charged: &mut Charges) -> Result<()> {
        let mut entries = quotas(self.write, Fresh::AsHeard).await?;
        let mut fresh = Fresh::AsHeard;
        for _ in 0..ATTEMPTS {
            let seen: Vec<Quota> = entries.iter().map(quota).collect();
            let wanted = match charges(&seen, self.demand) {
                Ok(wanted) => wanted,
                Err(why) if fresh == Fresh::Latest => return Err(self.refusal(&why)),
                // Only the latest decides what does not fit.
                Err(why) => {
                    let latest = self.latest_of(&entries).await?;
                    if versions(&latest) == versions(&entries) {
                        return Err(self.refusal(&why));
                    }
                    (entries, fresh) = (latest, Fresh::Latest);
                    continue;
                }
            };
            if self.write.dry_run {
                return Ok(());
            }
            let left = self.charge(charged, &entries, &wanted).await?;
            if left.is_empty() {
                return Ok(());
            }
            // What is charged stays charged; only what someone else has changed is looked at again.
            (entries, fresh) = (self.latest_of(&left).await?, Fresh::Latest);
        }
        let name = entries.first().map(|entry| quota(entry).name).unwrap_or_default();
        let named = Named { group: "", resource: "resourcequotas", name: &name };
        Err(Status::conflict(named, MODIFIED))
    }

    /// Charges quotas; gives those that someone else has changed meanwhile.
    async fn charge(
        &self,
        charged: &mut Charges,
        entries: &[Entry],
        wanted: &[Amounts],
    ) -> Result<Vec<Entry>> {
        let mut left = Vec::new();
        for (entry, amounts) in entries.iter().zip(wanted).filter(|(_, it)| !it.is_empty()) {
            match Charge::make(self.write.server, entry, amounts).await {
                Ok(charge) => charged.push(charge),
                Err(ChargeError::Conflict) => left.push(entry.clone()),
                Err(ChargeError::Failed(status)) => return Err(status),
            }
        }
        Ok(left)
    }

    /// The same quotas as they are now, as far as they still are.
    async fn latest_of(&self, entries: &[Entry]) -> Result<Vec<Entry>> {
        let mut latest = quotas(self.write, Fresh::Latest).await?;
        latest.retain(|entry| entries.iter().any(|known| known.key == entry.key));
        Ok(latest)
    }

    /// The write is not allowed. Where the client has left the name to the server, it has one by
    /// now.
    fn refusal(&self, why: &str) -> Status {
        let name = metadata::text(self.demand.new, "name");
        Status::forbidden(self.write.resource.named(name), why, Vec::new())
    }
}

/// The quotas of the namespace that is written to.
pub(super) async fn quotas(write: Attributes<'_>, fresh: Fresh) -> Result<Vec<Entry>> {
    let prefix = format!("{FOLDER}{}/", write.place.namespace);
    let stale = fresh == Fresh::AsHeard;
    let request = RangeRequest { prefix, stale, ..RangeRequest::default() };
    Ok(write.server.store.range(request).await?.entries)
}

fn versions(entries: &[Entry]) -> Vec<(&str, Revision)> {
    entries.iter().map(|entry| (&*entry.key, entry.modified)).collect()
}

fn quota(entry: &Entry) -> Quota {
    let document: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    Quota::of(&document)
}
