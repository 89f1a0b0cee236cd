//! What the system knows of a process: its memory and the time it has computed.

use std::fs;

/// The resident memory of this process, in bytes.
pub(crate) fn resident() -> Result<f64, String> {
    status("VmRSS:")
}

/// The most memory this process ever had resident, in bytes.
pub(crate) fn peak() -> Result<f64, String> {
    status("VmHWM:")
}

/// The time this process has computed, on all cores, in seconds.
pub(crate) fn computed() -> Result<f64, String> {
    /// Linux tells times in hundredths of a second, whatever its own clock.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").map_err(|error| error.to_string())?;
    // The second field is the name in parentheses, which may hold spaces.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: Result<Vec<f64>, _> = ticks.collect();
    ticks.map(|ticks| ticks.iter().sum::<f64>() / TICKS).map_err(|error| error.to_string())
}

fn status(field: &str) -> Result<f64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find(|line| line.starts_with(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024.0).ok_or_else(|| format!("no {field}"))
}
