//! Kernel parameters are only those that concern the Pod alone.

use super::subject::{items, text};
use super::{Pod, Violation};

/// The sound ones, and the version from which on they are.
const SOUND: [(&str, i64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    check(pod, 0)
}

pub(super) fn since_1_27(pod: Pod<'_>) -> Option<Violation> {
    check(pod, 27)
}

pub(super) fn since_1_29(pod: Pod<'_>) -> Option<Violation> {
    check(pod, 29)
}

pub(super) fn since_1_32(pod: Pod<'_>) -> Option<Violation> {
    check(pod, 32)
}

fn check(pod: Pod<'_>, minor: i64) -> Option<Violation> {
    let is_sound =
        |name: &str| SOUND.iter().any(|(sound, since)| *sound == name && *since <= minor);
    let names = items(&pod.security()["sysctls"]).iter().map(|sysctl| text(&sysctl["name"]));
    let bad: Vec<&str> = names.filter(|name| !is_sound(name)).collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}
