//! How a container's health is asked for, and what runs when it starts and stops.

use super::context::Pod;
use crate::rules::at::{At, Errors};

/// The probes of a container.
pub(super) const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

const PROBE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const LIFECYCLE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// The mistakes in the three probes of a container.
pub(super) fn of_container(container: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    for name in PROBES {
        let probe = container.at(name);
        if probe.is_absent() {
            continue;
        }
        handler(&probe, PROBE_HANDLERS, pod, errors);
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            probe.at(field).not_negative(errors);
        }
        let grace = probe.at("terminationGracePeriodSeconds");
        if grace.number().is_some_and(|seconds| seconds <= 0) {
            errors.push(grace.invalid("must be greater than 0"));
        }
        let threshold = probe.at("successThreshold");
        if name == "readinessProbe" {
            if grace.is_set() {
                errors.push(grace.invalid("must not be set for readinessProbes"));
            }
        } else if threshold.number() != Some(1) {
            errors.push(threshold.invalid("must be 1"));
        }
    }
}

/// The mistakes in what runs after a container's start and before its end.
pub(super) fn lifecycle(lifecycle: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let at = lifecycle.at(name);
        if at.is_set() {
            handler(&at, LIFECYCLE_HANDLERS, pod, errors);
        }
    }
    let signal = lifecycle.at("stopSignal");
    match pod.os {
        _ if signal.is_absent() => {}
        "" => {
            errors
                .push(signal.forbidden("may not be set for containers with empty `spec.os.name`"));
        }
        "windows" => signal.one_of(&["SIGKILL", "SIGTERM"], errors),
        _ => {
            let signals = linux_signals();
            signal.one_of(&signals.iter().map(String::as_str).collect::<Vec<_>>(), errors);
        }
    }
}

fn linux_signals() -> Vec<String> {
    const NAMED: &[&str] = &[
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT",
        "KILL", "PIPE", "POLL", "PROF", "PWR", "QUIT", "RTMAX", "RTMIN", "SEGV", "STKFLT", "STOP",
        "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH",
        "XCPU", "XFSZ",
    ];
    let mut all: Vec<String> = NAMED.iter().map(|name| format!("SIG{name}")).collect();
    all.extend((1..=14).map(|n| format!("SIGRTMAX-{n}")));
    all.extend((1..=15).map(|n| format!("SIGRTMIN+{n}")));
    all.sort();
    all
}

fn handler(at: &At<'_, '_>, kinds: &[&str], pod: &Pod<'_>, errors: &mut Errors) {
    let mut given = kinds.iter().filter(|kind| at.at(kind).is_set());
    let Some(kind) = given.next() else {
        errors.push(at.required("must specify a handler type"));
        return;
    };
    let action = at.at(kind);
    match *kind {
        "exec" => action.require_all(&["command"], errors),
        "httpGet" => http_get(&action, errors),
        "tcpSocket" => action.at("port").port_or_name(errors),
        "grpc" => action.at("port").port(errors),
        _ => sleep(&action, pod, errors),
    }
    for kind in given {
        errors.push(at.at(kind).forbidden("may not specify more than 1 handler type"));
    }
}

fn http_get(action: &At<'_, '_>, errors: &mut Errors) {
    action.require_all(&["path"], errors);
    action.at("port").port_or_name(errors);
    let scheme = action.at("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme.text()) {
        errors.push(scheme.not_supported(&["HTTP", "HTTPS"]));
    }
    let headers = action.at("httpHeaders");
    for header in headers.items() {
        let name = header.at("name").text();
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(valid) {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
                       'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            errors.push(headers.invalid_value(name, why));
        }
    }
}

fn sleep(action: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    let seconds = action.at("seconds").number_or_zero();
    if let Some(grace) = pod.grace
        && !(0..=grace).contains(&seconds)
    {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(action.invalid_value(seconds, &why));
    }
}
