//! Which images may go, and how many of them must.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

/// When images are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImagePolicy {
    /// From this usage of the disk on images are removed.
    pub(crate) high_percent: i64,
    /// Down to this usage.
    pub(crate) low_percent: i64,
    /// What was pulled lately stays: a container may be about to use it.
    pub(crate) min_age: SignedDuration,
    /// What was not used for so long goes, however much room there is.
    pub(crate) max_age: Option<SignedDuration>,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self {
            high_percent: 85,
            low_percent: 80,
            min_age: SignedDuration::from_mins(2),
            max_age: None,
        }
    }
}

/// An image as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundImage {
    pub(crate) id: String,
    /// How many bytes it takes.
    pub(crate) size: i64,
    /// Whether the runtime wants to keep it, as that of sandboxes.
    pub(crate) pinned: bool,
}

/// The disk that images are on, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) capacity: i64,
    pub(crate) available: i64,
}

/// How much room must be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) bytes: i64,
    pub(crate) usage_percent: i64,
}

/// An image that may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unused {
    pub(crate) id: String,
    pub(crate) size: i64,
}

#[derive(Clone, Debug)]
struct Record {
    detected: Timestamp,
    last_used: Option<Timestamp>,
    used: bool,
    size: i64,
    pinned: bool,
}

/// What is known of the images of a node. As in a kubelet this is known to nobody else, and an agent
/// that was restarted takes them to be new.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageRecords {
    records: HashMap<String, Record>,
}

impl ImageRecords {
    /// Notes which images there are now, and which of them a container or a volume uses.
    pub(crate) fn note(&mut self, images: &[FoundImage], used: &HashSet<String>, now: Timestamp) {
        let there: HashSet<&str> = images.iter().map(|image| image.id.as_str()).collect();
        self.records.retain(|id, _| there.contains(id.as_str()));
        for FoundImage { id, size, pinned } in images {
            let fresh = Record {
                detected: now,
                last_used: None,
                used: false,
                size: *size,
                pinned: *pinned,
            };
            let record = self.records.entry(id.clone()).or_insert(fresh);
            (record.size, record.pinned) = (*size, *pinned);
            record.used = used.contains(id);
            if record.used {
                record.last_used = Some(now);
            }
        }
    }

    /// Forgets an image that was removed.
    pub(crate) fn removed(&mut self, id: &str) {
        self.records.remove(id);
    }

    /// Images that were not used for too long. None as long as the agent itself has not run for so
    /// long, since it does not know what was used before. What was never used counts from when it
    /// was first seen.
    pub(crate) fn too_old(
        &self,
        policy: &ImagePolicy,
        agent_started: Timestamp,
        now: Timestamp,
    ) -> Vec<Unused> {
        let Some(max_age) = policy.max_age else { return Vec::new() };
        if now.duration_since(agent_started) <= max_age {
            return Vec::new();
        }
        let old = |record: &Record| {
            now.duration_since(record.last_used.unwrap_or(record.detected)) > max_age
        };
        self.unused(old)
    }

    /// Images that may go to make room, those first that were used the longest time ago.
    pub(crate) fn expendable(&self, policy: &ImagePolicy, now: Timestamp) -> Vec<Unused> {
        self.unused(|record| now.duration_since(record.detected) >= policy.min_age)
    }

    fn unused(&self, which: impl Fn(&Record) -> bool) -> Vec<Unused> {
        let free = |record: &Record| !record.used && !record.pinned && which(record);
        let mut found: Vec<_> = self.records.iter().filter(|(_, record)| free(record)).collect();
        found.sort_by_key(|(id, record)| (record.last_used, record.detected, (*id).clone()));
        found.into_iter().map(|(id, record)| Unused { id: id.clone(), size: record.size }).collect()
    }
}

impl ImagePolicy {
    /// How much room must be made on a disk, if it is too full. A disk must have a size.
    pub(crate) fn need(&self, disk: Disk) -> Option<Need> {
        let Disk { capacity, available } = disk;
        let available = available.min(capacity);
        let usage_percent = 100 - share(available, 100, capacity);
        let wanted = share(capacity, 100 - self.low_percent, 100);
        (usage_percent >= self.high_percent)
            .then_some(Need { bytes: wanted - available, usage_percent })
    }
}

/// `amount * numerator / denominator`, for amounts of any size.
fn share(amount: i64, numerator: i64, denominator: i64) -> i64 {
    let exact = i128::from(amount) * i128::from(numerator) / i128::from(denominator);
    i64::try_from(exact).unwrap_or(i64::MAX)
}
