//! Which parameters of the kernel a Pod may set: those that concern nobody but itself.

use k8s_openapi::api::core::v1::PodSpec;

use crate::registration::Kernel;
use crate::rejection::Rejection;

/// The parameters that are safe, and since which kernel they belong to a namespace.
const SAFE: [(&str, Kernel); 14] = [
    ("kernel.shm_rmid_forced", (0, 0)),
    ("net.ipv4.ip_local_port_range", (0, 0)),
    ("net.ipv4.tcp_syncookies", (0, 0)),
    ("net.ipv4.ping_group_range", (0, 0)),
    ("net.ipv4.ip_unprivileged_port_start", (0, 0)),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
    ("net.ipv4.tcp_slow_start_after_idle", (4, 15)),
    ("net.ipv4.tcp_notsent_lowat", (4, 6)),
];

/// Whether a Pod sets only what it may on a machine with this kernel; without a version, any.
pub(super) fn check(spec: &PodSpec, kernel: Option<Kernel>) -> Result<(), Rejection> {
    let context = spec.security_context.as_ref();
    for sysctl in context.and_then(|context| context.sysctls.as_ref()).into_iter().flatten() {
        let name = normal(&sysctl.name);
        let known = |(safe, since): &&(&str, Kernel)| {
            *safe == name && kernel.is_none_or(|kernel| kernel >= *since)
        };
        if !SAFE.iter().any(|safe| known(&safe)) {
            return Err(Rejection::Sysctl(format!("{name:?} not allowlisted")));
        }
        let (of_host, namespace) = match name.starts_with("net.") {
            true => (spec.host_network, "Net"),
            false => (spec.host_ipc, "IPC"),
        };
        if of_host == Some(true) {
            let why = format!("{name:?} not allowed with host {namespace} enabled");
            return Err(Rejection::Sysctl(why));
        }
    }
    Ok(())
}

/// A name with dots between its parts, which may be written with slashes.
fn normal(name: &str) -> String {
    if name.find(['.', '/']).is_none_or(|first| name[first..].starts_with('.')) {
        return name.to_owned();
    }
    let swapped = name.chars().map(|char| match char {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    swapped.collect()
}
