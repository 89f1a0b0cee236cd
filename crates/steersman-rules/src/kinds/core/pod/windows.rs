//! What differs between pods of Linux and of Windows.

use super::context::each_container;
use crate::names;
use crate::rules::at::{At, Errors};

const SPEC_KIB_MAX: usize = 64;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;

/// What a pod of Windows may not have, by where it would stand.
const NOT_IN_POD: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];

const NOT_IN_CONTAINER: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The mistakes that the pod's operating system makes of its fields.
pub(super) fn operating_system(spec: &At<'_, '_>, errors: &mut Errors) {
    let os = spec.at("os");
    if os.is_absent() {
        return;
    }
    match os.at("name").text() {
        "" => errors.push(os.at("name").required("")),
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        _ => {
            let name = os.with(&os.value["name"]);
            errors.push(name.not_supported(&["linux", "windows"]));
        }
    }
}

fn linux(spec: &At<'_, '_>, errors: &mut Errors) {
    const WHY: &str = "windows options cannot be set for a linux pod";
    let options = spec.at("securityContext.windowsOptions");
    if options.is_set() {
        errors.push(options.forbidden(WHY));
    }
    each_container(spec, |container| {
        let options = container.at("securityContext.windowsOptions");
        if options.is_set() {
            errors.push(options.forbidden(WHY));
        }
    });
}

fn windows(spec: &At<'_, '_>, errors: &mut Errors) {
    const WHY: &str = "cannot be set for a windows pod";
    for field in NOT_IN_POD {
        let at = spec.at(field);
        // A namespace of the host is not asked for by `false`.
        let asked = match *field {
            "hostPID" | "hostIPC" => at.is_true(),
            _ => at.is_set() && at.value.as_array().is_none_or(|list| !list.is_empty()),
        };
        if asked {
            errors.push(at.forbidden(WHY));
        }
    }
    each_container(spec, |container| {
        let context = container.at("securityContext");
        let given = NOT_IN_CONTAINER.iter().filter(|field| context.at(field).is_set());
        errors.extend(given.map(|field| context.at(field).forbidden(WHY)));
    });
}

/// The mistakes in the options of Windows.
pub(super) fn options(at: &At<'_, '_>, errors: &mut Errors) {
    if at.is_absent() {
        return;
    }
    let name = at.at("gmsaCredentialSpecName");
    let spec = at.at("gmsaCredentialSpec");
    if name.is_set() {
        name.follows(names::dns1123_subdomain, errors);
    }
    if spec.is_set() && spec.text().is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > SPEC_KIB_MAX * 1024 {
        let why = format!("gmsaCredentialSpec size must be under {SPEC_KIB_MAX} KiB");
        errors.push(spec.invalid(&why));
    }
    let user = at.at("runAsUserName");
    if user.is_set() {
        let complaints = user_name(user.text());
        errors.extend(complaints.iter().map(|why| user.invalid(why)));
    }
}

/// What `domain\user` requires.
fn user_name(name: &str) -> Vec<String> {
    let one = |why: &str| vec![format!("runAsUserName{why}")];
    if name.is_empty() {
        return one(" cannot be an empty string");
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return one(" cannot contain control characters");
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return one(" cannot contain more than one backslash"),
    };
    let mut found = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_MAX {
            found.extend(one(&format!("'s Domain length must be under {DOMAIN_MAX} characters")));
        }
        if !is_net_bios(domain) && !is_dns(domain) {
            found.extend(one("'s Domain doesn't match the NetBios nor the DNS format"));
        }
    }
    if user.is_empty() {
        found.extend(one("'s User cannot be empty"));
    } else if user.len() > USER_MAX {
        found.extend(one(&format!("'s User length must not be longer than {USER_MAX} characters")));
    }
    if !user.is_empty() && user.chars().all(|c| ". ".contains(c)) {
        found.extend(one("'s User cannot contain only periods or spaces"));
    }
    if user.contains(|c: char| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        let why = "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        found.extend(one(why));
    }
    found
}

fn is_net_bios(domain: &str) -> bool {
    let count = domain.chars().count();
    (1..=15).contains(&count)
        && !domain.starts_with('.')
        && !domain.contains(|c: char| "\\/:*?\"<>|".contains(c))
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| names::dns1123_label(&label.to_ascii_lowercase()).is_empty())
}

/// If any container runs as a process of the host, all must, on the host's network.
pub(super) fn host_process(spec: &At<'_, '_>, errors: &mut Errors) {
    let of_pod = spec.at("securityContext.windowsOptions.hostProcess").value.as_bool();
    let mut all = 0;
    let mut as_process = 0;
    each_container(spec, |container| {
        let own = container.at("securityContext.windowsOptions.hostProcess");
        all += 1;
        if let (Some(pod), Some(container)) = (of_pod, own.value.as_bool())
            && pod != container
        {
            let why =
                format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.push(own.invalid(&why));
        }
        if own.value.as_bool().or(of_pod) == Some(true) {
            as_process += 1;
        }
    });
    if as_process == 0 {
        return;
    }
    if as_process != all {
        let why = "If pod contains any hostProcess containers then all containers must be \
                   HostProcess containers";
        errors.push(spec.invalid_value("", why));
    }
    let network = spec.at("hostNetwork");
    if !network.is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_value(false, why));
    }
}
