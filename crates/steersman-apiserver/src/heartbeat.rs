//! The Lease by which a server that listens says who it is and that it lives, as kube-apiserver does:
//! `apiserver-…` in `kube-system`. Whoever renews its own removes those that nobody renews any more.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use steersman_store::RangeRequest;

use crate::state::Server;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::own::{amend, ensure};
use crate::write::{DeleteOptions, Writer};

const LEASES: [&str; 3] = ["coordination.k8s.io", "v1", "leases"];
const NAMESPACE: &str = "kube-system";
const PREFIX: &str = "apiserver-";

/// The label by which Leases of API servers are known, and what it says.
const IDENTITY: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";

/// How long a server may be silent, in seconds.
const DURATION: i64 = 3600;

/// Says that this server lives, and removes the Leases of those that do not.
pub(crate) async fn beat(server: &Arc<Server>, endpoint: SocketAddr) -> Result<()> {
    let name = name(&HOST, endpoint);
    let now = (server.clock)();
    let renewed = micros(now);
    let holder = format!("{name}_{}", server.life);
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": DURATION, "renewTime": renewed,
    });
    let lease = || {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": name, "labels": {IDENTITY: COMPONENT, "kubernetes.io/hostname": *HOST},
            },
            "spec": spec,
        })
    };
    ensure(server, LEASES, NAMESPACE, &name, lease).await?;
    let place = Place { namespace: NAMESPACE, name: &name };
    let renew = |lease: &mut Value| lease["spec"] = spec.clone();
    match amend(server, LEASES, place, renew).await {
        // Deleted this very moment: next time it is made anew.
        Err(status) if status.code != 404 => return Err(status),
        _ => {}
    }
    remove_silent(server, &name, now).await
}

/// Removes the Leases of servers that are silent, of which this one is none, whatever is seen of it.
async fn remove_silent(server: &Arc<Server>, own: &str, now: Timestamp) -> Result<()> {
    let table = server.registry.table();
    let [group, version, plural] = LEASES;
    let resource = table.get(group, version, plural).ok_or_else(Status::no_such_resource)?;
    let prefix = resource.prefix(NAMESPACE) + PREFIX;
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    for entry in server.store.range(request).await?.entries {
        let lease: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
        let name = metadata::text(&lease, "name");
        if name != own && is_silent(&lease, now) {
            remove(server, resource, name).await?;
        }
    }
    Ok(())
}

async fn remove(server: &Arc<Server>, resource: &Resource, name: &str) -> Result<()> {
    let writer = Writer { trusted: true, ..Writer::internal(server, resource) };
    let place = Place { namespace: NAMESPACE, name };
    match delete_object(&writer, place, &DeleteOptions::default()).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}

/// Whether a Lease is an API server's that has not renewed it in time.
fn is_silent(lease: &Value, now: Timestamp) -> bool {
    let spec = &lease["spec"];
    let renewed = spec["renewTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(0));
    let is_over =
        || renewed.and_then(|time| time.checked_add(lasts).ok()).is_none_or(|end| end < now);
    lease["metadata"]["labels"][IDENTITY] == COMPONENT && is_over()
}

/// What a server on a host is called. Several may share the host, so the address counts as well.
fn name(host: &str, endpoint: SocketAddr) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let hash = digest(&SHA256, format!("{host}/{endpoint}").as_bytes());
    let bits = hash.as_ref().iter().flat_map(|byte| (0..8).rev().map(move |n| byte >> n & 1));
    // As many letters as sixteen bytes have in base 32.
    let bits: Vec<u8> = bits.take(130).collect();
    let letters = bits.chunks(5).map(|five| five.iter().fold(0, |all, bit| all << 1 | bit));
    PREFIX.chars().chain(letters.map(|n: u8| char::from(LETTERS[usize::from(n)]))).collect()
}

/// A time in microseconds, as Leases have it.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The name of this machine, if it tells one.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_silent, name};

    #[test]
    fn a_server_has_a_name_of_its_own_that_it_keeps() {
        let of = |address: &str| name("host", address.parse().unwrap());
        assert_eq!(of("10.0.0.1:6443"), of("10.0.0.1:6443"));
        assert_ne!(of("10.0.0.1:6443"), of("10.0.0.1:6444"));
        assert_eq!(of("10.0.0.1:6443").len(), "apiserver-".len() + 26);
    }

    #[test]
    fn only_api_servers_are_found_silent_and_only_when_their_time_is_over() {
        let lease = |identity: &str, renewed: &str| {
            json!({
                "metadata": {"labels": {"apiserver.kubernetes.io/identity": identity}},
                "spec": {"renewTime": renewed, "leaseDurationSeconds": 3600},
            })
        };
        let now = "2025-01-01T01:00:00Z".parse().unwrap();
        for (identity, renewed, expected) in [
            ("kube-apiserver", "2025-01-01T00:00:00.000000Z", false),
            ("kube-apiserver", "2024-12-31T23:59:59.999999Z", true),
            ("kube-apiserver", "", true),
            ("sample-apiserver", "2024-12-31T00:00:00.000000Z", false),
        ] {
            assert_eq!(is_silent(&lease(identity, renewed), now), expected, "{renewed}");
        }
    }
}
