//! Talking to the user.

/// Prints a line. Somebody who has stopped reading, as `head` does, is no reason to stop.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
