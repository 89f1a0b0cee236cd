//! Which cluster addresses a service takes.
//!
//! As in Kubernetes the first 256 addresses of the range are left to clients who name theirs;
//! the server picks at random among the others, and among the first only when those are gone.
//! Other ranges come with ServiceCIDRs that are ready; they are for who names an address of them, and
//! for all once the first range is full.

use std::net::IpAddr;

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::resource::Place;
use steersman_store::RangeRequest;
use steersman_values::IpFamily;

use super::ip_address::{self, PREFIX};
use super::reservation::Reservation;
use super::{holdings, invalid, place};
use crate::document::items;
use crate::state::Server;
use crate::state::service_ranges::Range;
use crate::status::{Result, Status};

/// Where `ServiceCIDR` objects are.
const RANGES: &str = "/registry/servicecidrs/";

/// How many addresses are tried before all that are taken are looked at.
const GUESSES: usize = 16;

/// Takes the addresses that a service needs: those it names, and one of the server's choice for each of
/// its other families.
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
    let before = holdings::addresses(&old["spec"]);
    let mut wanted = holdings::addresses(spec);
    for address in wanted.iter().filter(|address| !before.contains(address)) {
        take(reservation, new, address).await?;
    }
    let families = items(&new["spec"]["ipFamilies"]).iter().skip(wanted.len());
    for family in families.filter_map(Value::as_str) {
        let family = if family == IpFamily::V4.name() { IpFamily::V4 } else { IpFamily::V6 };
        wanted.push(take_any(reservation, new, family).await?);
    }
    if wanted.is_empty() {
        return Ok(());
    }
    new["spec"]["clusterIP"] = wanted[0].as_str().into();
    new["spec"]["clusterIPs"] = wanted.into();
    Ok(())
}

async fn take(reservation: &mut Reservation, service: &Value, address: &str) -> Result<()> {
    let refuse = |why: &str| {
        // A family that has no address yet is shown as well.
        let mut given = holdings::addresses(&service["spec"]);
        given.resize(items(&service["spec"]["ipFamilies"]).len().max(given.len()), String::new());
        let value = Value::from(given);
        let why = format!("failed to allocate IP {address}: {why}");
        Err(invalid(service, FieldError::invalid("spec.clusterIPs", &value, &why)))
    };
    let server = &reservation.server;
    match address.parse::<IpAddr>() {
        Ok(ip) if server.service_ranges.of(IpFamily::of(ip)).is_some_and(|it| it.contains(ip)) => {}
        Ok(ip) if others(server).await?.iter().any(|range| range.contains(ip)) => {}
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

async fn take_any(
    reservation: &mut Reservation,
    service: &Value,
    family: IpFamily,
) -> Result<String> {
    let owner = place(service);
    let main = reservation.server.service_ranges.of(family);
    for _ in 0..GUESSES {
        let Some(range) = main else { break };
        let address = range.guess(reservation.server.random.below(u64::MAX)).to_string();
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
        let is_taken = |address: IpAddr| taken.contains(address.to_string().as_str());
        let mut free = main.and_then(|range| range.search(random, is_taken));
        if free.is_none() {
            let others = others(&reservation.server).await?;
            let mut others = others.iter().filter(|range| range.family() == family);
            free = others.find_map(|range| range.search(random, is_taken));
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

/// The ranges that ServiceCIDRs offer besides the server's own.
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
        let known = server.service_ranges.texts();
        let new = cidrs.filter(|cidr| !known.iter().any(|known| known == cidr));
        new.filter_map(Range::parse).collect::<Vec<_>>()
    });
    Ok(cidrs.collect())
}

/// Takes an address if it is free.
async fn claim(reservation: &mut Reservation, owner: Place<'_>, address: &str) -> Result<bool> {
    if reservation.dry_run {
        let key = ip_address::key(address);
        return Ok(reservation.server.get(&key).await?.is_none());
    }
    let claimed = ip_address::create(&reservation.server, owner, address).await?;
    if claimed {
        reservation.taken.owner = (owner.namespace.to_owned(), owner.name.to_owned());
        reservation.taken.addresses.push(address.to_owned());
    }
    Ok(claimed)
}
