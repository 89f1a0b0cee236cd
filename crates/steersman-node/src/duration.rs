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

/// A time to the millisecond as Go prints it: `45ms`, `1.2s`, `1m0.005s`.
pub(crate) fn go_millis(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    if seconds == 0 && millis > 0 {
        return format!("{millis}ms");
    }
    let whole = go(Duration::from_secs(seconds));
    if millis == 0 {
        return whole;
    }
    let fraction = format!("{millis:03}");
    format!("{}.{}s", whole.trim_end_matches('s'), fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_the_millisecond_end_with_the_last_digit_that_says_something() {
        for (micros, expected) in [
            (0, "0s"),
            (999, "0s"),
            (45_999, "45ms"),
            (900_000, "900ms"),
            (1_000_000, "1s"),
            (1_200_000, "1.2s"),
            (10_050_000, "10.05s"),
            (60_005_000, "1m0.005s"),
            (3_661_500_000, "1h1m1.5s"),
        ] {
            assert_eq!(go_millis(Duration::from_micros(micros)), expected, "{micros}");
        }
    }
}
