//! What the process takes, as Linux tells it; elsewhere nothing is told.

use std::fs;

use crate::metrics::Page;

/// What the kernel counts processor time in, per second.
const TICKS: f64 = 100.0;

/// The size of a page of memory. Those who use larger ones see their memory told too small.
const PAGE: u64 = 4096;

/// Appends the metrics of the process.
pub(super) fn write(out: &mut String) {
    let mut tell = |name: &str, kind: &str, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            Page::begin(out, name, kind, help).sample("", &[], value);
        }
    };
    let stat = stat();
    let used = field(&stat, 11).zip(field(&stat, 12));
    let used = used.map(|(user, system)| (user + system) / TICKS);
    let help = "Total user and system CPU time spent in seconds.";
    tell("process_cpu_seconds_total", "counter", help, used);
    let help = "Start time of the process since unix epoch in seconds.";
    tell("process_start_time_seconds", "gauge", help, start());
    let help = "Resident memory size in bytes.";
    tell("process_resident_memory_bytes", "gauge", help, pages(1));
    let help = "Virtual memory size in bytes.";
    tell("process_virtual_memory_bytes", "gauge", help, pages(0));
    let help = "Number of open file descriptors.";
    tell("process_open_fds", "gauge", help, open_files());
    let help = "Maximum number of open file descriptors.";
    tell("process_max_fds", "gauge", help, open_files_max());
}

/// When the process started, in whole seconds since 1970.
#[expect(clippy::cast_possible_truncation, reason = "there are not so many seconds yet")]
pub(crate) fn started() -> Option<i64> {
    start().map(|start| start as i64)
}

/// The same, with fractions.
pub(super) fn start() -> Option<f64> {
    boot().zip(field(&stat(), 19)).map(|(boot, ticks)| boot + ticks / TICKS)
}

/// What the kernel says of the process, after its name: that is in brackets and may hold anything.
fn stat() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    stat.rsplit(") ").next().unwrap_or_default().to_owned()
}

fn field(stat: &str, index: usize) -> Option<f64> {
    stat.split(' ').nth(index)?.parse().ok()
}

/// When the machine started.
fn boot() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn pages(index: usize) -> Option<f64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(index)?.parse().ok()?;
    Some((pages * PAGE) as f64)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn open_files() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

/// How many files the process may have open.
fn open_files_max() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
