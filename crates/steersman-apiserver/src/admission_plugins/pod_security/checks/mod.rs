//! The checks of the [Pod Security Standards][standards], one file each, and from which version on
//! they hold.
//!
//! What a check asks may have changed between versions of Kubernetes, so it has an implementation
//! for each version that changed it. A namespace that names a version gets what held then.
//!
//! [standards]: https://kubernetes.io/docs/concepts/security/pod-security-standards/

mod allow_privilege_escalation;
mod app_armor_profile;
mod capabilities_baseline;
mod capabilities_restricted;
mod host_namespaces;
mod host_path_volumes;
mod host_ports;
mod host_probes;
mod privileged;
mod proc_mount;
mod restricted_volumes;
mod run_as_non_root;
mod run_as_user;
mod se_linux_options;
mod seccomp_baseline;
mod seccomp_restricted;
mod sysctls;
mod windows_host_process;

use super::policy::Level;
use super::subject::{self, Pod};
use super::violation::Violation;
use super::wording;

/// One thing that is asked of a Pod.
pub(super) type CheckPod = fn(Pod<'_>) -> Option<Violation>;

/// A check in all its versions.
pub(super) struct Check {
    /// The least level that asks for it.
    level: Level,
    /// The version from which on another check asks for more at the level `restricted`, so that
    /// this one is not needed there.
    superseded: Option<i64>,
    /// What it is from which version on, oldest first.
    versions: &'static [(i64, CheckPod)],
}

impl Check {
    const fn baseline(versions: &'static [(i64, CheckPod)]) -> Self {
        Self { level: Level::Baseline, superseded: None, versions }
    }

    const fn restricted(versions: &'static [(i64, CheckPod)]) -> Self {
        Self { level: Level::Restricted, superseded: None, versions }
    }

    const fn superseded_in(self, minor: i64) -> Self {
        Self { superseded: Some(minor), ..self }
    }

    /// What is asked at a level in a version, if anything.
    pub(super) fn at(&self, level: Level, minor: i64) -> Option<CheckPod> {
        let superseded = self.superseded.is_some_and(|since| since <= minor);
        if level < self.level || (level == Level::Restricted && superseded) {
            return None;
        }
        let latest = self.versions.iter().rfind(|(since, _)| *since <= minor);
        latest.map(|(_, check)| *check)
    }
}

/// All checks, in the order in which they complain.
pub(super) const CHECKS: &[Check] = &[
    Check::baseline(&[(0, app_armor_profile::since_1_0)]),
    Check::baseline(&[(0, capabilities_baseline::since_1_0)]).superseded_in(22),
    Check::baseline(&[(0, host_namespaces::since_1_0)]),
    Check::baseline(&[(0, host_path_volumes::since_1_0)]).superseded_in(0),
    Check::baseline(&[(0, host_ports::since_1_0)]),
    Check::baseline(&[(34, host_probes::since_1_34)]),
    Check::baseline(&[(0, privileged::since_1_0)]),
    Check::baseline(&[(0, proc_mount::since_1_0), (35, proc_mount::baseline_since_1_35)])
        .superseded_in(35),
    Check::baseline(&[(0, se_linux_options::since_1_0), (31, se_linux_options::since_1_31)]),
    Check::baseline(&[(0, seccomp_baseline::since_1_0), (19, seccomp_baseline::since_1_19)])
        .superseded_in(19),
    Check::baseline(&[
        (0, sysctls::since_1_0),
        (27, sysctls::since_1_27),
        (29, sysctls::since_1_29),
        (32, sysctls::since_1_32),
    ]),
    Check::baseline(&[(0, windows_host_process::since_1_0)]),
    Check::restricted(&[
        (8, allow_privilege_escalation::since_1_8),
        (25, allow_privilege_escalation::since_1_25),
    ]),
    Check::restricted(&[
        (22, capabilities_restricted::since_1_22),
        (25, capabilities_restricted::since_1_25),
    ]),
    Check::restricted(&[(35, proc_mount::since_1_0)]),
    Check::restricted(&[(0, restricted_volumes::since_1_0)]),
    Check::restricted(&[(0, run_as_non_root::since_1_0), (35, run_as_non_root::since_1_35)]),
    Check::restricted(&[(23, run_as_user::since_1_23), (35, run_as_user::since_1_35)]),
    Check::restricted(&[
        (19, seccomp_restricted::since_1_19),
        (25, seccomp_restricted::since_1_25),
    ]),
];
