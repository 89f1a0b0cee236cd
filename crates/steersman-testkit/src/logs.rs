//! Logs of tests: `RUST_LOG=info cargo test` switches them on, and their lines tell the time of
//! the test.

use std::fmt;
use std::io::IsTerminal;
use std::sync::Once;

use steersman::clock;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Tells log lines the time of the cluster: virtual in tests on virtual time, else the system's.
///
/// A test writes logs when `RUST_LOG` says which. This is for programs and tests that set up a
/// subscriber of their own, which is then left alone:
///
/// ```
/// use steersman_testkit::VirtualTime;
///
/// tracing_subscriber::fmt().with_timer(VirtualTime).init();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.3}", clock::now())
    }
}

/// Writes what `RUST_LOG` asks for, if it is set and nobody else writes logs. The name of the
/// test's thread, which is the test's own, tells apart what runs at the same time.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os(EnvFilter::DEFAULT_ENV).is_none_or(|filter| filter.is_empty()) {
            return;
        }
        let logs = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::from_default_env())
            .with_timer(VirtualTime)
            .with_thread_names(true)
            .with_ansi(std::io::stdout().is_terminal())
            .with_test_writer();
        let _ = logs.try_init(); // somebody's own is as good
    });
}
