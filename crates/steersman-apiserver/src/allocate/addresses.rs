//! Cluster addresses: one `IPAddress` object each, so that the store decides who has it.
//!
//! As in Kubernetes the first 256 addresses of the range are left to clients who name theirs;
//! the server picks at random among the others, and among the first only when those are gone.
//! Other ranges come with ServiceCIDRs that are ready; they are for who names an address of them, and
//! for all once the first range is full.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::resource::Place;
use steersman_store::{Entry, Expected, RangeRequest, StoreError, WriteRequest};

use super::reservation::Reservation;
use super::{invalid, place};
use crate::document::encode;
use crate::document::items;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::Writer;

/// The range of cluster addresses.
pub(crate) const CIDR: &str = "10.96.0.0/12";

/// The first of them, which the service `kubernetes` has.
pub(crate) const FIRST: &str = "10.96.0.1";

/// Where `ServiceCIDR` objects are.
const RANGES: &str = "/registry/servicecidrs/";

/// Where `IPAddress` objects are.
pub(super) const PREFIX: &str = "/registry/ipaddresses/";

/// Who manages them, as their label says.
pub(super) const MANAGER: (&str, &str) =
    ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");

/// How many addresses are tried before all that are taken are looked at.
const GUESSES: usize = 16;

/// A range of addresses: the network itself and the last address are nobody's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) base: u32,
    pub(super) size: u32,
}

/// The range that is used.
pub(super) const RANGE: Range = Range { base: u32::from_be_bytes([10, 96, 0, 0]), size: 1 << 20 };

impl Range {
    /// How many addresses at the start are left to those who name theirs.
    pub(super) fn named(self) -> u32 {
        // In a small range none are, but for the one that is the network's.
        if self.size > 16 { (self.size / 16).clamp(16, 256) } else { 1 }
    }

    /// The range of IPv4 addresses that a text such as `10.96.0.0/12` stands for, if it is large enough
    /// to hand any out.
    fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/')?;
        let base: Ipv4Addr = base.parse().ok()?;
        let bits = 32_u32.checked_sub(prefix.parse().ok()?)?;
        let size = 1_u32.checked_shl(bits).filter(|size| *size > 2)?;
        Some(Self { base: u32::from(base), size })
    }

    /// The address at a place of the range.
    fn at(self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.base + index)
    }

    /// Whether an address may be handed out.
    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let index = u32::from(address).wrapping_sub(self.base);
        index > 0 && index < self.size - 1
    }

    /// A guess among those that the server picks from; `random` is any number.
    pub(super) fn guess(self, random: u64) -> Ipv4Addr {
        let count = self.size - 1 - self.named();
        let index = u32::try_from(random % u64::from(count)).unwrap_or(0);
        self.at(self.named() + index)
    }

    /// The first free address behind a guess, then among those left to others.
    pub(super) fn search(
        self,
        random: u64,
        is_taken: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let start = u32::from(self.guess(random)) - self.base;
        let behind = start..self.size - 1;
        let before = self.named()..start;
        let named = 1..self.named();
        behind.chain(before).chain(named).map(|i| self.at(i)).find(|address| !is_taken(*address))
    }
}

/// The addresses that a service holds.
pub(super) fn held(spec: &Value) -> Vec<String> {
    if spec["type"] == "ExternalName" {
        return Vec::new();
    }
    let given = items(&spec["clusterIPs"]).iter().chain([&spec["clusterIP"]]);
    let mut held: Vec<String> = Vec::new();
    for address in given.filter_map(Value::as_str).filter(|ip| !matches!(*ip, "" | "None")) {
        if !held.iter().any(|known| known == address) {
            held.push(address.to_owned());
        }
    }
    held
}

/// Takes the addresses that a service needs: those it names, or one of the server's choice.
pub(super) async fn fill(
    reservation: &mut Reservation,
    old: &Value,
    new: &mut Value,
) -> Result<()> {
    let spec = &new["spec"];
    let headless = spec["clusterIP"] == "None" || spec["clusterIPs"][0] == "None";
    if spec["type"] == "ExternalName" || headless {
        return Ok(());
    }
    let before = held(&old["spec"]);
    let mut wanted = held(spec);
    for address in wanted.iter().filter(|address| !before.contains(address)) {
        take(reservation, new, address).await?;
    }
    if wanted.is_empty() {
        wanted.push(take_any(reservation, new).await?);
    }
    new["spec"]["clusterIP"] = wanted[0].as_str().into();
    new["spec"]["clusterIPs"] = wanted.into();
    Ok(())
}

async fn take(reservation: &mut Reservation, service: &Value, address: &str) -> Result<()> {
    let refuse = |why: &str| {
        let value = Value::from(held(&service["spec"]));
        let why = format!("failed to allocate IP {address}: {why}");
        Err(invalid(service, FieldError::invalid("spec.clusterIPs", &value, &why)))
    };
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) if RANGE.contains(ip) => {}
        Ok(IpAddr::V4(ip))
            if others(&reservation.server).await?.iter().any(|range| range.contains(ip)) => {}
        Ok(_) => return refuse("the provided network does not match the current range"),
        Err(_) => {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            let error = FieldError::invalid("spec.clusterIPs[0]", &address.into(), why);
            return Err(invalid(service, error));
        }
    }
    if claim(reservation, place(service), address).await? {
        return Ok(());
    }
    refuse("provided IP is already allocated")
}

async fn take_any(reservation: &mut Reservation, service: &Value) -> Result<String> {
    let owner = place(service);
    for _ in 0..GUESSES {
        let address = RANGE.guess(reservation.server.random.below(u64::MAX)).to_string();
        if claim(reservation, owner, &address).await? {
            return Ok(address);
        }
    }
    loop {
        let request = RangeRequest { prefix: PREFIX.to_owned(), ..RangeRequest::default() };
        let entries = reservation.server.store.range(request).await?.entries;
        let taken: std::collections::HashSet<&str> =
            entries.iter().map(|entry| &entry.key[PREFIX.len()..]).collect();
        let random = reservation.server.random.below(u64::MAX);
        let is_taken = |address: Ipv4Addr| taken.contains(address.to_string().as_str());
        let mut free = RANGE.search(random, is_taken);
        if free.is_none() {
            let others = others(&reservation.server).await?;
            free = others.iter().find_map(|range| range.search(random, is_taken));
        }
        let Some(address) = free else {
            let name = owner.name;
            let why = format!("failed to allocate a serviceIP for Service {name:?}: range is full");
            return Err(Status::internal(&why));
        };
        let address = address.to_string();
        if claim(reservation, owner, &address).await? {
            return Ok(address);
        }
    }
}

/// The ranges that ServiceCIDRs offer besides the first one.
async fn others(server: &Server) -> Result<Vec<Range>> {
    let request = RangeRequest { prefix: RANGES.to_owned(), ..RangeRequest::default() };
    let entries = server.store.range(request).await?.entries;
    let objects = entries.iter().filter_map(|entry| serde_json::from_slice(&entry.value).ok());
    let ready = objects.filter(|object: &Value| {
        let leaves = !object["metadata"]["deletionTimestamp"].is_null();
        let conditions = items(&object["status"]["conditions"]);
        !leaves && conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
    });
    let cidrs = ready.flat_map(|object| {
        let cidrs = items(&object["spec"]["cidrs"]).iter().filter_map(Value::as_str);
        cidrs.filter(|cidr| *cidr != CIDR).filter_map(Range::parse).collect::<Vec<_>>()
    });
    Ok(cidrs.collect())
}

/// Takes an address if it is free.
async fn claim(reservation: &mut Reservation, owner: Place<'_>, address: &str) -> Result<bool> {
    if reservation.dry_run {
        let key = format!("{PREFIX}{address}");
        return Ok(reservation.server.get(&key).await?.is_none());
    }
    let claimed = create(&reservation.server, owner, address).await?;
    if claimed {
        reservation.taken.owner = (owner.namespace.to_owned(), owner.name.to_owned());
        reservation.taken.addresses.push(address.to_owned());
    }
    Ok(claimed)
}

/// Creates the object of an address; says whether there was none.
pub(super) async fn create(
    server: &std::sync::Arc<Server>,
    owner: Place<'_>,
    address: &str,
) -> Result<bool> {
    let table = server.registry.table();
    let resource = table.get("networking.k8s.io", "v1", "ipaddresses");
    let writer = Writer::internal(server, resource.ok_or_else(Status::no_such_resource)?);
    let mut object = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {
            "name": address, "uid": server.random.uid(), "creationTimestamp": writer.now,
            "labels": {"ipaddress.kubernetes.io/ip-family": "IPv4", MANAGER.0: MANAGER.1},
        },
        "spec": {"parentRef": {
            "resource": "services", "namespace": owner.namespace, "name": owner.name,
        }},
    });
    writer.track(None, &mut object);
    let key = writer.resource.key(Place { namespace: "", name: address });
    let request = WriteRequest::put(key, encode(&object)?, Expected::Absent);
    match server.store.write(request).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives an address back that a service held, unless another service has it by now: a repair may
/// have been faster. What cannot be given back now, a repair gives back later.
pub(super) async fn give_back(server: &Server, owner: Place<'_>, address: &str) {
    let key = format!("{PREFIX}{address}");
    let ours = |entry: &Entry| is_of(entry, owner);
    let mut entry = server.known(&key).await.ok().flatten().filter(ours);
    for _ in 0..GUESSES {
        if entry.is_none() {
            entry = server.get(&key).await.ok().flatten().filter(ours);
        }
        let Some(found) = entry.take() else { return };
        let expected = Expected::Modified(found.modified);
        let written = server.store.write(WriteRequest::delete(found.key, expected)).await;
        if !matches!(written, Err(StoreError::Conflict { .. })) {
            return;
        }
    }
}

/// Whether the object of an address says that a service has it.
fn is_of(entry: &Entry, owner: Place<'_>) -> bool {
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    let parent = &object["spec"]["parentRef"];
    parent["namespace"] == owner.namespace && parent["name"] == owner.name
}
