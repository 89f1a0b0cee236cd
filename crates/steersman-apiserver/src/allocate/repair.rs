//! What is handed out, compared with the services that exist: at start, and every few minutes
//! while anything changes.
//!
//! What a service holds and nobody has counted is counted. What is counted and no service holds
//! may be about to be written this very moment, by whatever server; only if it stays so for a
//! while was it left behind by a write that broke off, and is free again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use steersman_rules::metadata;
use steersman_store::{Entry, Expected, RangeRequest, Revision, WriteRequest};

use super::holdings::Holdings;
use super::ip_address::{self, MANAGER, PREFIX};
use super::place;
use crate::lookup;
use crate::state::Server;
use crate::state::node_ports::{self, Ports};
use crate::status::Result;

/// How often it is compared while anything changes; as often as Kubernetes does.
const PERIOD: Duration = Duration::from_secs(180);

/// How often a port must be found to be nobody's before it is free.
const ROUNDS: u8 = 3;

/// How old an address must be that is nobody's before it is free.
const AGE: SignedDuration = SignedDuration::from_secs(60);

const SERVICES: &str = "/registry/services/specs/";

/// How often each port was found to be nobody's, one round after the other.
type Leaks = HashMap<u16, u8>;

/// Counts what services hold, and puts the objects of their addresses right.
pub(crate) async fn repair(server: &Arc<Server>) -> Result<()> {
    round(server, &mut Leaks::default()).await
}

/// Repairs every few minutes, until the server ends.
pub(crate) fn start_repairs(server: &Arc<Server>) {
    let ended = server.ended();
    let repairs = run(Arc::downgrade(server));
    tokio::spawn(async move { ended.run_until_cancelled(repairs).await });
}

/// Repairs as often as it takes to find what is nobody's, then rests until there is something new.
async fn run(server: Weak<Server>) {
    let mut leaks = Leaks::default();
    let mut seen = Revision(0);
    loop {
        let mut failed = false;
        for round_number in 0..=ROUNDS {
            tokio::time::sleep(PERIOD).await;
            let Some(server) = server.upgrade() else { return };
            if round_number == 0 {
                seen = lookup::revision(&*server.store, true).await.unwrap_or(seen);
            }
            if let Err(error) = round(&server, &mut leaks).await {
                tracing::warn!(%error, "cannot repair cluster IPs and node ports");
                failed = true;
            }
        }
        let store = server.upgrade().map(|server| Arc::clone(&server.store));
        if let Some(store) = store.filter(|_| !failed) {
            lookup::moved_past(&*store, &[SERVICES, PREFIX, node_ports::KEY], seen).await;
        }
    }
}

async fn round(server: &Arc<Server>, leaks: &mut Leaks) -> Result<()> {
    // Read before the services: what is taken for one that is written meanwhile is not missed.
    let taken = node_ports::taken(&*server.store).await?;
    let objects = all(server, PREFIX).await?;
    let services: Vec<Value> = all(server, SERVICES).await?.iter().map(document).collect();
    let held: Vec<(Holdings, &Value)> =
        services.iter().map(|service| (Holdings::of(service), service)).collect();
    let ports = held.iter().flat_map(|(holdings, _)| holdings.ports.iter().copied()).collect();
    repair_ports(server, &taken, &ports, leaks).await?;
    repair_addresses(server, &objects, &held).await
}

async fn repair_ports(
    server: &Server,
    taken: &Ports,
    held: &BTreeSet<u16>,
    leaks: &mut Leaks,
) -> Result<()> {
    *leaks = taken
        .all()
        .filter(|port| !held.contains(port))
        .map(|port| (port, leaks.get(&port).copied().unwrap_or(0) + 1))
        .collect();
    let freed: Vec<u16> =
        leaks.iter().filter(|(_, rounds)| **rounds >= ROUNDS).map(|(port, _)| *port).collect();
    if freed.is_empty() && held.iter().all(|port| taken.contains(*port)) {
        return Ok(());
    }
    tracing::info!(?freed, "repairing node ports, allocation differs from the services");
    let put_right = |ports: &mut Ports| {
        freed.iter().for_each(|port| ports.give_back(*port));
        held.iter().for_each(|port| ports.hold(*port));
        Ok(())
    };
    server.node_ports.change(&*server.store, false, put_right).await?;
    leaks.retain(|port, _| !freed.contains(port));
    Ok(())
}

async fn repair_addresses(
    server: &Arc<Server>,
    objects: &[Entry],
    held: &[(Holdings, &Value)],
) -> Result<()> {
    let known: HashSet<&str> = objects.iter().map(address).collect();
    let mut wanted = HashSet::new();
    for (holdings, service) in held {
        for address in &holdings.addresses {
            let name = ip_address::object_name(address);
            if !known.contains(name.as_str()) {
                ip_address::create(server, place(service), address).await?;
            }
            wanted.insert(name);
        }
    }
    let now = (server.clock)();
    let unwanted = objects.iter().filter(|entry| !wanted.contains(address(entry)));
    for entry in unwanted.filter(|entry| is_left_behind(&document(entry), now)) {
        let expected = Expected::Modified(entry.modified);
        // Whoever was faster knows better.
        let _ = server.store.write(WriteRequest::delete(Arc::clone(&entry.key), expected)).await;
    }
    Ok(())
}

fn address(entry: &Entry) -> &str {
    &entry.key[PREFIX.len()..]
}

/// Whether the object of an address is the server's own, and older than any write takes.
fn is_left_behind(object: &Value, now: Timestamp) -> bool {
    let ours = object["metadata"]["labels"][MANAGER.0] == MANAGER.1;
    let made: Option<Timestamp> = metadata::text(object, "creationTimestamp").parse().ok();
    ours && made.is_none_or(|made| made.checked_add(AGE).is_ok_and(|old| old < now))
}

async fn all(server: &Server, prefix: &str) -> Result<Vec<Entry>> {
    let request = RangeRequest { prefix: prefix.to_owned(), ..RangeRequest::default() };
    Ok(server.store.range(request).await?.entries)
}

fn document(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.value).unwrap_or_default()
}
