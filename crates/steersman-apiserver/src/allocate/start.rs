//! What is handed out, found again at start: the ports and addresses of the services that are
//! stored, and addresses that nobody holds because a server stopped halfway.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use steersman_store::{Entry, RangeRequest};

use super::addresses::{self, MANAGER, PREFIX};
use super::place;
use super::reservation::Holdings;
use crate::state::Server;
use crate::status::Result;

/// Counts what services hold, and puts the objects of their addresses right.
pub(crate) async fn rebuild(server: &Arc<Server>) -> Result<()> {
    let services = all(server, "/registry/services/specs/").await?;
    let mut held = HashSet::new();
    for service in services.iter().map(document) {
        let holdings = Holdings::of(&service);
        server.node_ports.hold(&holdings.ports);
        for address in holdings.addresses {
            addresses::create(server, place(&service), &address).await?;
            held.insert(address);
        }
    }
    for entry in all(server, PREFIX).await? {
        let ours = document(&entry)["metadata"]["labels"][MANAGER.0] == MANAGER.1;
        let address = &entry.key[PREFIX.len()..];
        if ours && !held.contains(address) {
            addresses::give_back(server, address).await;
        }
    }
    Ok(())
}

async fn all(server: &Server, prefix: &str) -> Result<Vec<Entry>> {
    let request = RangeRequest { prefix: prefix.to_owned(), ..RangeRequest::default() };
    Ok(server.store.range(request).await?.entries)
}

fn document(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.value).unwrap_or_default()
}
