//! What the process takes, under the names that dashboards look for, as Linux tells it; elsewhere
//! nothing is told.

use std::{fmt, fs};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Families;

/// What the kernel counts processor time in, per second.
const TICKS: f64 = 100.;

/// The process, looked at when somebody asks. Whoever serves metrics tells of it; what is part of a
/// larger program does not.
#[derive(Clone, Debug)]
pub(crate) struct Process;

impl Families for Process {
    fn register(registry: &mut Registry) -> Self {
        registry.register_collector(Box::new(Self));
        Self
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = read("/proc/self/stat");
        if let Some(used) = processor_seconds(&stat) {
            let used = ConstCounter::new(used);
            let help = "Total user and system CPU time spent in seconds";
            let kind = used.metric_type();
            used.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, kind)?)?;
        }
        let resident = resident_bytes(&read("/proc/self/status"));
        let help = "Resident memory size in bytes";
        gauge(&mut encoder, "process_resident_memory_bytes", help, resident)?;
        let started = booted(&read("/proc/stat")).zip(started_after_boot(&stat));
        let started = started.map(|(booted, after)| booted + after);
        let help = "Start time of the process since unix epoch in seconds";
        gauge(&mut encoder, "process_start_time_seconds", help, started)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: Option<f64>,
) -> fmt::Result {
    let Some(value) = value else { return Ok(()) };
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

/// A file of the kernel's; empty if it cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A field of what the kernel says of the process after its name, which is in brackets and may hold
/// anything.
fn field(stat: &str, index: usize) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(index)?.parse().ok()
}

fn processor_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 11)? + field(stat, 12)?) / TICKS)
}

fn started_after_boot(stat: &str) -> Option<f64> {
    Some(field(stat, 19)? / TICKS)
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.)
}

/// When the machine started, in seconds since 1970.
fn booted(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn what_the_kernel_says_is_read_whatever_the_process_is_called() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 9 0 0 0 150 50 0 0 20 0 1 0 500 9 9 9";
        assert_eq!(processor_seconds(stat), Some(2.));
        assert_eq!(started_after_boot(stat), Some(5.));
        assert_eq!(resident_bytes("VmHWM:\t  9 kB\nVmRSS:\t    8 kB\n"), Some(8192.));
        assert_eq!(booted("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.));
        assert_eq!(processor_seconds(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_is_told_of_once_somebody_asks_for_it() {
        let metrics = Metrics::default();
        assert_eq!(metrics.render_text(), "");
        for _ in 0..2 {
            let Process = metrics.families();
        }
        let text = metrics.render_text();
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
        ] {
            assert_eq!(text.matches(&format!("\n{name} ")).count(), 1, "{name}: {text}");
        }
    }
}
