//! Times as people know them from Go.

use std::time::Duration;

/// A time of whole seconds as Go prints it: `5s`, `1m30s`, `1h0m0s`.
pub(crate) fn go(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
