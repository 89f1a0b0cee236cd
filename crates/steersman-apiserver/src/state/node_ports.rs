//! Node ports: 30000 to 32767, one service each, whatever the protocol.
//!
//! As in Kubernetes, all that are taken are one entry in the store, a `RangeAllocation`, which is
//! compared and swapped: so several servers never hand out the same. The last one seen is kept
//! here, so that a service costs one write more than its own, and one without node ports none.
//! The first 86 ports are left to clients who name theirs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_store::{Entry, Expected, Revision, Store, StoreError, WriteRequest};
use tokio::sync::Mutex;

use crate::random::Random;
use crate::status::Result;

/// Where the ports that are taken are.
pub(crate) const KEY: &str = "/registry/ranges/servicenodeports";

const FIRST: u16 = 30000;
const LAST: u16 = 32767;

/// The first port that the server picks by itself, unless all behind it are taken.
const FIRST_PICKED: u16 = FIRST + 86;

const BYTES: usize = (LAST - FIRST + 1) as usize / 8;

/// Why a port cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortError {
    /// Another service holds it.
    #[error("provided port is already allocated")]
    Allocated,
    /// It is not one of those that are handed out.
    #[error("provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}")]
    OutOfRange,
}

/// Ports that are taken: one bit each, the first port's is the lowest of the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports([u8; BYTES]);

impl Default for Ports {
    fn default() -> Self {
        Self([0; BYTES])
    }
}

impl Ports {
    fn bit(port: u16) -> Option<(usize, u8)> {
        let offset = usize::from(port.checked_sub(FIRST).filter(|_| port <= LAST)?);
        Some((BYTES - 1 - offset / 8, 1 << (offset % 8)))
    }

    /// Whether a port is taken.
    pub(crate) fn contains(&self, port: u16) -> bool {
        Self::bit(port).is_some_and(|(byte, bit)| self.0[byte] & bit != 0)
    }

    /// Counts a port as taken, whoever has it.
    pub(crate) fn hold(&mut self, port: u16) {
        if let Some((byte, bit)) = Self::bit(port) {
            self.0[byte] |= bit;
        }
    }

    /// Frees a port.
    pub(crate) fn give_back(&mut self, port: u16) {
        if let Some((byte, bit)) = Self::bit(port) {
            self.0[byte] &= !bit;
        }
    }

    /// Takes a port, or says why it cannot be had.
    pub(crate) fn take(&mut self, port: i64) -> Result<u16, PortError> {
        let port = u16::try_from(port).ok().filter(|port| (FIRST..=LAST).contains(port));
        let port = port.ok_or(PortError::OutOfRange)?;
        if self.contains(port) {
            return Err(PortError::Allocated);
        }
        self.hold(port);
        Ok(port)
    }

    /// Takes a free port.
    pub(crate) fn take_any(&mut self, random: &Random) -> Option<u16> {
        let count = u64::from(LAST - FIRST_PICKED + 1);
        let start = FIRST_PICKED + u16::try_from(random.below(count)).unwrap_or(0);
        let mut ports = (start..=LAST).chain(FIRST_PICKED..start).chain(FIRST..FIRST_PICKED);
        let port = ports.find(|port| !self.contains(*port))?;
        self.hold(port);
        Some(port)
    }

    /// All that are taken.
    pub(crate) fn all(&self) -> impl Iterator<Item = u16> {
        (FIRST..=LAST).filter(|port| self.contains(*port))
    }

    fn encode(&self) -> Vec<u8> {
        let allocation = json!({
            "kind": "RangeAllocation", "apiVersion": "v1", "metadata": {},
            "range": format!("{FIRST}-{LAST}"), "data": STANDARD.encode(self.0),
        });
        allocation.to_string().into_bytes()
    }

    /// Reads an entry; of one that makes no sense nothing counts, and the services that exist say
    /// again what is taken.
    fn decode(entry: &Entry) -> Option<Self> {
        let allocation: Value = serde_json::from_slice(&entry.value).ok()?;
        let data = STANDARD.decode(allocation["data"].as_str()?).ok()?;
        Some(Self(data.try_into().ok()?))
    }
}

/// The ports at a revision; `None` before any was taken.
#[derive(Clone, Copy, Debug)]
struct Seen {
    ports: Ports,
    revision: Option<Revision>,
}

/// The node ports that services hold.
#[derive(Debug, Default)]
pub(crate) struct NodePorts {
    /// What was last seen. Held over a write, so that writers of one server do not get into each
    /// other's way.
    last: Mutex<Option<Seen>>,
}

impl NodePorts {
    /// Lets someone take and free ports, and writes what comes of it. They are asked again if
    /// another server was faster. A dry run writes nothing.
    pub(crate) async fn change<T>(
        &self,
        store: &dyn Store,
        dry_run: bool,
        mut choose: impl FnMut(&mut Ports) -> Result<T>,
    ) -> Result<T> {
        let mut last = self.last.lock().await;
        let mut seen = match last.take() {
            Some(seen) if !dry_run => seen,
            _ => read(store).await?,
        };
        loop {
            let mut ports = seen.ports;
            let chosen = choose(&mut ports);
            if chosen.is_err() || ports == seen.ports || dry_run {
                // Only the latest decides what cannot be had, and what is so already.
                let now = if dry_run { seen } else { read(store).await? };
                if now.revision == seen.revision {
                    *last = Some(seen);
                    return chosen;
                }
                seen = now;
                continue;
            }
            match write(store, &ports, seen.revision).await {
                Ok(written) => {
                    *last = Some(written);
                    return chosen;
                }
                Err(StoreError::Conflict { .. }) => seen = read(store).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Frees ports. Those that cannot be freed now are found to be nobody's later.
    pub(crate) async fn give_back(&self, store: &dyn Store, ports: &[u16]) {
        if ports.is_empty() {
            return;
        }
        let free = |taken: &mut Ports| {
            ports.iter().for_each(|port| taken.give_back(*port));
            Ok(())
        };
        if let Err(error) = self.change(store, false, free).await {
            tracing::warn!(%error, "cannot release node ports, left to the next repair");
        }
    }
}

/// The ports that are taken according to the store.
pub(crate) async fn taken(store: &dyn Store) -> Result<Ports, StoreError> {
    Ok(read(store).await?.ports)
}

async fn read(store: &dyn Store) -> Result<Seen, StoreError> {
    let entry = store.get(KEY).await?;
    let ports = entry.as_ref().and_then(Ports::decode).unwrap_or_default();
    Ok(Seen { ports, revision: entry.map(|entry| entry.modified) })
}

async fn write(
    store: &dyn Store,
    ports: &Ports,
    expected: Option<Revision>,
) -> Result<Seen, StoreError> {
    let expected = expected.map_or(Expected::Absent, Expected::Modified);
    let written = store.write(WriteRequest::put(KEY, ports.encode(), expected)).await?;
    Ok(Seen { ports: *ports, revision: Some(written.revision) })
}

#[cfg(test)]
mod tests {
    use steersman_store::Store;
    use steersman_store::memory::MemoryStore;

    use super::{KEY, NodePorts, Ports, taken};
    use crate::random::Random;
    use crate::status::Status;

    async fn take(server: &NodePorts, store: &MemoryStore, port: i64) -> Result<u16, Status> {
        let take = |ports: &mut Ports| {
            ports.take(port).map_err(|why| Status::bad_request(why.to_string()))
        };
        server.change(store, false, take).await
    }

    #[tokio::test]
    async fn two_servers_never_hand_out_the_same_port() {
        let store = MemoryStore::new();
        let one = NodePorts::default();
        let other = NodePorts::default();
        take(&one, &store, 30100).await.unwrap();
        take(&other, &store, 30200).await.unwrap();
        take(&one, &store, 30200).await.unwrap_err();
        take(&other, &store, 30100).await.unwrap_err();
        one.give_back(&store, &[30100]).await;
        take(&other, &store, 30100).await.unwrap();
        let all: Vec<u16> = taken(&store).await.unwrap().all().collect();
        assert_eq!(all, [30100, 30200]);
    }

    #[tokio::test]
    async fn a_port_that_another_server_took_can_be_given_back() {
        let store = MemoryStore::new();
        let one = NodePorts::default();
        let other = NodePorts::default();
        take(&one, &store, 30100).await.unwrap();
        take(&other, &store, 30200).await.unwrap();
        one.give_back(&store, &[30200]).await;
        assert_eq!(taken(&store).await.unwrap().all().collect::<Vec<_>>(), [30100]);
    }

    #[tokio::test]
    async fn a_dry_run_writes_nothing_and_what_changes_nothing_neither() {
        let store = MemoryStore::new();
        let server = NodePorts::default();
        let random = Random::new(1);
        let any = |ports: &mut Ports| Ok(ports.take_any(&random));
        assert!(server.change(&store, true, any).await.unwrap().is_some());
        server.change(&store, false, |_| Ok(())).await.unwrap();
        assert!(store.get(KEY).await.unwrap().is_none());
    }

    #[test]
    fn ports_read_back_as_they_were_written() {
        let mut ports = Ports::default();
        for port in [30000, 30007, 30008, 31000, 32767] {
            ports.hold(port);
        }
        ports.hold(1);
        ports.hold(40000);
        let entry = steersman_store::Entry {
            key: KEY.into(),
            value: ports.encode().into(),
            created: steersman_store::Revision(1),
            modified: steersman_store::Revision(1),
        };
        assert_eq!(Ports::decode(&entry), Some(ports));
        assert_eq!(ports.all().collect::<Vec<_>>(), [30000, 30007, 30008, 31000, 32767]);
        let odd = steersman_store::Entry { value: "{}".into(), ..entry };
        assert_eq!(Ports::decode(&odd), None);
    }
}
