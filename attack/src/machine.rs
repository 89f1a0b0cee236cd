//! What the system tells of a process.

use std::fs;
use std::path::Path;

/// The memory of a process, in megabytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// What is resident now.
    pub(crate) resident: f64,
    /// The most that was, since the start or since it was last forgotten.
    pub(crate) peak: f64,
}

/// The memory of a process; none once it has ended.
pub(crate) fn memory(process: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let megabytes = |field: &str| {
        let line = status.lines().find(|line| line.starts_with(field))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
    };
    Some(Memory { resident: megabytes("VmRSS:")?, peak: megabytes("VmHWM:")? })
}

/// Lets the peak of a process begin anew. Where the system does not allow it, the peak since the
/// start stands, which is not lower.
pub(crate) fn forget_peak(process: u32) {
    let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
}

/// How many files this process may have open.
pub(crate) fn files_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    soft.unwrap_or(1024)
}

/// How many bytes the files of a directory have.
pub(crate) fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}
