//! Charging the quotas of a namespace for all writes that wait for them.
//!
//! In order, each write is put beside what the quotas have left after those before it; then each
//! quota is written once, with the sum. Where someone else was faster, another server or whoever
//! counts, those that wanted something of that quota are looked at again, and so are those that
//! were to be refused: nobody is refused because of what never came to be. A quota that a write is
//! charged for stays charged meanwhile.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::quota::{Amounts, Quota};
use steersman_rules::resource::Named;
use steersman_store::{Entry, RangeRequest, Revision};

use super::charge::{self, Charge, ChargeError, Charges};
use super::wish::Waiter;
use crate::state::Server;
use crate::status::{MODIFIED, Result, Status};

/// Where the quotas of all namespaces are.
const FOLDER: &str = "/registry/resourcequotas/";

/// How often quotas are charged anew because someone else changed them. Writers of this server
/// are charged together, so that someone is another server, or whoever counts.
const ATTEMPTS: usize = 64;

/// Whether what this server has heard of quotas is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    AsHeard,
    Latest,
}

/// A write that waits, and what was charged for it so far.
struct Pending {
    waiter: Waiter,
    charged: Charges,
}

/// What is to become of a write: what it is charged by each quota, in their order, or why it ends.
type Share = Result<Vec<Amounts>>;

/// Charges the quotas of a namespace for writes, and tells each what came of it.
pub(super) async fn charge(server: &Arc<Server>, namespace: &str, waiting: Vec<Waiter>) {
    let start = |waiter| Pending { waiter, charged: Charges::new(server) };
    let mut pending: Vec<Pending> = waiting.into_iter().map(start).collect();
    let mut fresh = Fresh::AsHeard;
    for _ in 0..ATTEMPTS {
        pending.retain(|one| !one.waiter.answer.is_closed());
        if pending.is_empty() {
            return;
        }
        match attempt(server, namespace, &mut fresh, &mut pending).await {
            Ok(left) => pending = left,
            Err(status) => {
                pending.into_iter().for_each(|one| one.end(Err(status.clone())));
                return;
            }
        }
    }
    let named = Named { group: "", resource: "resourcequotas", name: "" };
    let given_up = Status::conflict(named, MODIFIED);
    pending.into_iter().for_each(|one| one.end(Err(given_up.clone())));
}

/// Charges once; gives the writes that have to be looked at again.
async fn attempt(
    server: &Arc<Server>,
    namespace: &str,
    fresh: &mut Fresh,
    pending: &mut Vec<Pending>,
) -> Result<Vec<Pending>> {
    let mut entries = quotas(server, namespace, *fresh).await?;
    let mut shares = plan(&entries, pending);
    // Only the latest decides what does not fit.
    if *fresh == Fresh::AsHeard && shares.iter().any(Result::is_err) {
        *fresh = Fresh::Latest;
        let latest = quotas(server, namespace, Fresh::Latest).await?;
        if versions(&latest) != versions(&entries) {
            entries = latest;
            shares = plan(&entries, pending);
        }
    }
    let refused: Vec<bool> = shares.iter().map(Result::is_err).collect();
    let mut again = vec![false; pending.len()];
    for (index, entry) in entries.iter().enumerate() {
        if !write(server, index, entry, pending, &mut shares, &mut again).await {
            *fresh = Fresh::Latest;
        }
    }
    let is_undecided = again.contains(&true);
    let mut left = Vec::new();
    for (n, (one, share)) in pending.drain(..).zip(shares).enumerate() {
        match share {
            Ok(_) if again[n] => left.push(one),
            Err(_) if refused[n] && is_undecided => left.push(one),
            share => one.end(share.map(drop)),
        }
    }
    Ok(left)
}

/// What is to become of each write, one after the other.
fn plan(entries: &[Entry], pending: &[Pending]) -> Vec<Share> {
    let mut quotas: Vec<Quota> = entries.iter().map(quota).collect();
    let mut shares = Vec::with_capacity(pending.len());
    for one in pending {
        let share = one.share(entries, &quotas);
        if let Ok(amounts) = &share {
            for (quota, amounts) in quotas.iter_mut().zip(amounts) {
                quota.used.add(amounts);
            }
        }
        shares.push(share);
    }
    shares
}

/// Charges one quota for all; says whether nobody else was faster.
async fn write(
    server: &Arc<Server>,
    index: usize,
    entry: &Entry,
    pending: &mut [Pending],
    shares: &mut [Share],
    again: &mut [bool],
) -> bool {
    let mut sum = Amounts::default();
    let mut wanting = Vec::new();
    for (n, share) in shares.iter().enumerate() {
        if let Ok(amounts) = share.as_ref().map(|share| &share[index])
            && !amounts.is_empty()
        {
            sum.add(amounts);
            wanting.push((n, amounts.clone()));
        }
    }
    if wanting.is_empty() {
        return true;
    }
    match charge::write(server, entry, |used| used.add(&sum)).await {
        Ok(revision) => {
            for (n, amounts) in wanting {
                pending[n].charged.push(Charge { key: entry.key.to_string(), amounts, revision });
            }
            true
        }
        Err(ChargeError::Conflict) => {
            wanting.iter().for_each(|(n, _)| again[*n] = true);
            false
        }
        Err(ChargeError::Failed(status)) => {
            wanting.iter().for_each(|(n, _)| shares[*n] = Err(status.clone()));
            true
        }
    }
}

impl Pending {
    /// What it is charged by each quota. One that was charged for it wants nothing more.
    fn share(&self, entries: &[Entry], quotas: &[Quota]) -> Share {
        let wish = &self.waiter.wish;
        if self.charged.is_empty() {
            let share = wish.charges(quotas, true)?;
            return Ok(if wish.dry_run { vec![Amounts::default(); quotas.len()] } else { share });
        }
        let is_open = |entry: &Entry| !self.charged.has(&entry.key);
        let open = entries.iter().zip(quotas).filter(|(entry, _)| is_open(entry));
        let open: Vec<Quota> = open.map(|(_, quota)| quota.clone()).collect();
        let mut share = wish.charges(&open, false)?.into_iter();
        let of = |entry| {
            if is_open(entry) { share.next().unwrap_or_default() } else { Amounts::default() }
        };
        Ok(entries.iter().map(of).collect())
    }

    /// Tells it what came of it. What was charged for a write that ends is given back first; what
    /// nobody waits for any more gives itself back.
    fn end(self, outcome: Result<()>) {
        let Self { waiter: Waiter { answer, .. }, charged } = self;
        match outcome {
            Ok(()) => drop(answer.send(Ok(charged))),
            Err(status) if charged.is_empty() => drop(answer.send(Err(status))),
            Err(status) => {
                tokio::spawn(async move {
                    charged.give_back().await;
                    drop(answer.send(Err(status)));
                });
            }
        }
    }
}

/// The quotas of a namespace.
pub(super) async fn quotas(server: &Server, namespace: &str, fresh: Fresh) -> Result<Vec<Entry>> {
    let prefix = format!("{FOLDER}{namespace}/");
    let stale = fresh == Fresh::AsHeard;
    let request = RangeRequest { prefix, stale, ..RangeRequest::default() };
    Ok(server.store.range(request).await?.entries)
}

/// What an entry says.
pub(super) fn quota(entry: &Entry) -> Quota {
    let document: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    Quota::of(&document)
}

fn versions(entries: &[Entry]) -> Vec<(&str, Revision)> {
    entries.iter().map(|entry| (&*entry.key, entry.modified)).collect()
}
