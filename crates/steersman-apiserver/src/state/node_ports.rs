//! Node ports: 30000 to 32767, one service each, whatever the protocol.
//!
//! As in Kubernetes the first 86 are left to clients who name theirs.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::random::Random;

const FIRST: u16 = 30000;
const LAST: u16 = 32767;

/// The first port that the server picks by itself, unless all behind it are taken.
const FIRST_PICKED: u16 = FIRST + 86;

const ALLOCATED: &str = "provided port is already allocated";
const OUT_OF_RANGE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";

/// The node ports that services hold. The lock is held for moments, never over a wait.
#[derive(Debug, Default)]
pub(crate) struct NodePorts(Mutex<BTreeSet<u16>>);

impl NodePorts {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts ports as taken, whoever has them.
    pub(crate) fn hold(&self, ports: &[u16]) {
        self.lock().extend(ports);
    }

    /// Frees ports.
    pub(crate) fn give_back(&self, ports: &[u16]) {
        let mut taken = self.lock();
        for port in ports {
            taken.remove(port);
        }
    }

    /// Takes a port, or says why it cannot be had. A dry run only looks.
    pub(crate) fn take(&self, port: i64, dry_run: bool) -> Result<u16, &'static str> {
        let port = u16::try_from(port).ok().filter(|port| (FIRST..=LAST).contains(port));
        let port = port.ok_or(OUT_OF_RANGE)?;
        let mut taken = self.lock();
        let free = if dry_run { !taken.contains(&port) } else { taken.insert(port) };
        if free { Ok(port) } else { Err(ALLOCATED) }
    }

    /// Takes a free port that is not among `others`. A dry run only looks.
    pub(crate) fn take_any(&self, random: &Random, others: &[u16], dry_run: bool) -> Option<u16> {
        let mut taken = self.lock();
        let count = u64::from(LAST - FIRST_PICKED + 1);
        let start = FIRST_PICKED + u16::try_from(random.below(count)).unwrap_or(0);
        let mut ports = (start..=LAST).chain(FIRST_PICKED..start).chain(FIRST..FIRST_PICKED);
        let port = ports.find(|port| !taken.contains(port) && !others.contains(port))?;
        if !dry_run {
            taken.insert(port);
        }
        Some(port)
    }
}
