//! What the API server tells of its own process.

use http::Request;
use steersman::Client;

/// Memory and processor time of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Process {
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
}

impl Process {
    /// Asks the server; a user who may not know gets nothing.
    pub(crate) async fn of(client: &Client) -> Self {
        let Ok(request) = Request::get("/metrics").body(Vec::new()) else {
            return Self::default();
        };
        let metrics = client.kube().request_text(request).await;
        metrics.map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(metrics: &str) -> Self {
        let value = |name: &str| {
            let rest = |line: &'_ str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
            metrics.lines().find_map(rest)
        };
        Self {
            memory_bytes: value("process_resident_memory_bytes"),
            cpu_seconds: value("process_cpu_seconds_total"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn a_process_is_read_from_what_prometheus_reads() {
        let text = "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.5\n\
                    process_resident_memory_bytes_max 7\nprocess_resident_memory_bytes 4.2e+07\n";
        let told = Process { memory_bytes: Some(4.2e7), cpu_seconds: Some(1.5) };
        assert_eq!(Process::read(text), told);
        assert_eq!(Process::read(""), Process::default());
    }
}
