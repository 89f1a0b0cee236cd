//! Ports that nobody uses: each is given once by this process, and lies below those that the
//! system gives to outgoing connections, so that a member that is down keeps its own.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;

const PORTS: Range<u16> = 12_000..32_000;

/// A port that is free now. Another process may be quicker to take it.
pub(super) fn free() -> u16 {
    static NEXT: Mutex<Option<u16>> = Mutex::new(None);
    let mut next = NEXT.lock().expect("nothing panics under the lock");
    loop {
        // Processes that run side by side begin at different places.
        let port = next.unwrap_or_else(|| {
            let random = RandomState::new().hash_one(std::process::id());
            PORTS.start + u16::try_from(random % PORTS.len() as u64).expect("a small number")
        });
        *next = Some(if port + 1 < PORTS.end { port + 1 } else { PORTS.start });
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
