//! What happens to the files of a log.

use jiff::Timestamp;

/// What a compressed log ends with.
pub(super) const COMPRESSED: &str = ".gz";
/// What a log ends with that is being compressed.
pub(super) const UNFINISHED: &str = ".tmp";

/// How much is kept of a container's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPolicy {
    /// From this size on a log is rotated, in bytes.
    pub(crate) size_max: u64,
    /// How many files a container has at most, with the one it writes.
    pub(crate) files_max: usize,
}

impl Default for LogPolicy {
    fn default() -> Self {
        Self { size_max: 10 << 20, files_max: 5 }
    }
}

/// What is done, in this order; files are named as in their directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rotation {
    /// What an interrupted rotation left, and then what is too old, the oldest first.
    pub(crate) remove: Vec<String>,
    /// What is compressed, and called the same with `.gz` behind it.
    pub(crate) compress: Vec<String>,
    /// What the log is called from now on.
    pub(crate) rotated: String,
}

/// Says how a log is rotated, beside which there are these files that were rotated before.
pub(crate) fn plan(log: &str, before: &[String], policy: LogPolicy, now: Timestamp) -> Rotation {
    let is_leftover = |name: &&String| {
        let twin = format!("{name}{COMPRESSED}");
        name.ends_with(UNFINISHED) || before.contains(&twin)
    };
    let (mut remove, mut kept): (Vec<&String>, Vec<&String>) = before.iter().partition(is_leftover);
    remove.sort();
    // Named by time, so the oldest come first.
    kept.sort();
    // Beside the one that is rotated now and the one that is written from now on.
    let excess = kept.len().saturating_sub(policy.files_max.saturating_sub(2));
    remove.extend(kept.drain(..excess));
    let plain = kept.into_iter().filter(|name| !name.ends_with(COMPRESSED));
    Rotation {
        remove: remove.into_iter().cloned().collect(),
        compress: plain.cloned().collect(),
        rotated: format!("{log}.{}", now.strftime("%Y%m%d-%H%M%S")),
    }
}
