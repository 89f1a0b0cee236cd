//! Who a container is and what it may do: the security contexts of the Pod and of the container,
//! and the namespaces that it shares.

use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Container, Pod, PodSecurityContext, SeccompProfile, SecurityContext,
};

use super::described;
use crate::cri::wire::Int64Value;
use crate::cri::wire::container::{Capability, LinuxContainerSecurityContext};
use crate::cri::wire::sandbox::{
    LinuxSandboxSecurityContext, NamespaceMode, NamespaceOption, ProfileType, SecurityProfile,
    SupplementalGroupsPolicy,
};
use crate::runtime::user::{Asked, ImageUser, groups_of};

/// What a container must not see of `/proc` and `/sys`, unless it asks to.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
/// Where there is a directory for each cpu.
const CPUS: &str = "/sys/devices/system/cpu";
/// How often which cpu of this machine was throttled, which it must not see either.
static THROTTLES: LazyLock<Vec<String>> = LazyLock::new(|| throttles(Path::new(CPUS)));
/// What it must not change there.
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Which namespaces a Pod shares with its machine, and its containers with each other.
pub(super) fn namespaces(pod: &Pod) -> NamespaceOption {
    let spec = pod.spec.as_ref();
    let is = |flag: Option<bool>| flag == Some(true);
    let node_if = |on_host: bool| if on_host { NamespaceMode::Node } else { NamespaceMode::Pod };
    let pid = match spec {
        Some(spec) if is(spec.host_pid) => NamespaceMode::Node,
        Some(spec) if is(spec.share_process_namespace) => NamespaceMode::Pod,
        _ => NamespaceMode::Container,
    };
    NamespaceOption {
        network: node_if(spec.is_some_and(|spec| is(spec.host_network))).into(),
        ipc: node_if(spec.is_some_and(|spec| is(spec.host_ipc))).into(),
        pid: pid.into(),
        target_id: String::new(),
    }
}

/// What holds for all of a Pod.
pub(super) fn of_sandbox(pod: &Pod) -> LinuxSandboxSecurityContext {
    let spec = pod.spec.as_ref();
    let context = spec.and_then(|spec| spec.security_context.as_ref());
    let number = |value: Option<i64>| value.map(|value| Int64Value { value });
    let containers = spec
        .into_iter()
        .flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let privileged = containers.into_iter().any(|container| {
        let own = container.security_context.as_ref();
        own.and_then(|own| own.privileged) == Some(true)
    });
    LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(pod)),
        run_as_user: number(context.and_then(|context| context.run_as_user)),
        run_as_group: number(context.and_then(|context| context.run_as_group)),
        readonly_rootfs: false,
        supplemental_groups: groups_of(context),
        supplemental_groups_policy: policy(context),
        privileged,
        seccomp: Some(profile(ProfileType::RuntimeDefault, None)),
        apparmor: None,
    }
}

/// What holds for one container, or why it must not run. Profiles of the machine's own are files in
/// a directory.
pub(super) fn of_container(
    pod: &Pod,
    container: &Container,
    image: &ImageUser,
    profiles: &Path,
) -> Result<LinuxContainerSecurityContext, String> {
    let whole = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let asked = Asked::of(pod, container);
    let (user, group) = (asked.user(), asked.group());
    let refused = |why| format!("{why} (pod: {:?}, container: {})", described(pod), container.name);
    asked.not_root(image).map_err(refused)?;
    let privileged = own.and_then(|own| own.privileged) == Some(true);
    let unmasked = own.and_then(|own| own.proc_mount.as_deref()) == Some("Unmasked");
    let paths = |all: &[&str], more: &[String]| match unmasked {
        true => Vec::new(),
        false => all.iter().map(|path| (*path).to_owned()).chain(more.to_vec()).collect(),
    };
    Ok(LinuxContainerSecurityContext {
        capabilities: own.and_then(|own| own.capabilities.as_ref()).map(|asked| Capability {
            add_capabilities: asked.add.clone().unwrap_or_default(),
            drop_capabilities: asked.drop.clone().unwrap_or_default(),
        }),
        privileged,
        namespace_options: Some(namespaces(pod)),
        run_as_user: user.or(image.uid).map(|value| Int64Value { value }),
        run_as_group: group.map(|value| Int64Value { value }),
        run_as_username: if user.is_none() { image.name.clone() } else { String::new() },
        readonly_rootfs: own.and_then(|own| own.read_only_root_filesystem) == Some(true),
        supplemental_groups: groups_of(whole),
        supplemental_groups_policy: policy(whole),
        no_new_privs: own.and_then(|own| own.allow_privilege_escalation) == Some(false),
        masked_paths: paths(&MASKED, &THROTTLES),
        readonly_paths: paths(&READ_ONLY, &[]),
        seccomp: Some(seccomp(own, whole, privileged, profiles)),
        apparmor: apparmor(own, whole),
    })
}

/// The throttles of all cpus below a directory, of which not every machine has any.
fn throttles(cpus: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cpus).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
    let mut found: Vec<(u32, String)> = entries
        .filter_map(|entry| {
            let path = entry.path().join("thermal_throttle");
            let number = number(entry.file_name().to_str()?)?;
            path.exists().then(|| (number, path.to_string_lossy().into_owned()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Whether a container is in no groups but those that its Pod names.
fn policy(whole: Option<&PodSecurityContext>) -> i32 {
    match whole.and_then(|whole| whole.supplemental_groups_policy.as_deref()) {
        Some("Strict") => SupplementalGroupsPolicy::Strict.into(),
        _ => SupplementalGroupsPolicy::Merge.into(),
    }
}

fn seccomp(
    own: Option<&SecurityContext>,
    whole: Option<&PodSecurityContext>,
    privileged: bool,
    profiles: &Path,
) -> SecurityProfile {
    let asked = own.and_then(|own| own.seccomp_profile.as_ref());
    let asked = asked.or(whole.and_then(|all| all.seccomp_profile.as_ref()));
    match asked {
        _ if privileged => profile(ProfileType::Unconfined, None),
        Some(SeccompProfile { type_, localhost_profile }) => {
            let file = localhost_profile.as_ref().map(|file| profiles.join(file));
            named(type_, file.map(|file| file.to_string_lossy().into_owned()).as_ref())
        }
        None => profile(ProfileType::Unconfined, None),
    }
}

fn apparmor(
    own: Option<&SecurityContext>,
    whole: Option<&PodSecurityContext>,
) -> Option<SecurityProfile> {
    let asked = own.and_then(|own| own.app_armor_profile.as_ref());
    let asked = asked.or(whole.and_then(|all| all.app_armor_profile.as_ref()));
    asked.map(|AppArmorProfile { type_, localhost_profile }| {
        named(type_, localhost_profile.as_ref())
    })
}

fn named(type_: &str, file: Option<&String>) -> SecurityProfile {
    match type_ {
        "RuntimeDefault" => profile(ProfileType::RuntimeDefault, None),
        "Localhost" => profile(ProfileType::Localhost, file.cloned()),
        _ => profile(ProfileType::Unconfined, None),
    }
}

fn profile(type_: ProfileType, file: Option<String>) -> SecurityProfile {
    SecurityProfile { profile_type: type_.into(), localhost_ref: file.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(
        pod: &Value,
        container: &Value,
        image: &ImageUser,
    ) -> Result<LinuxContainerSecurityContext, String> {
        let container = json!({"name": "c", "securityContext": container});
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "u1"});
        let spec = json!({"securityContext": pod, "containers": [container]});
        let pod = json!({"metadata": metadata, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let container = &pod.spec.as_ref().unwrap().containers[0];
        of_container(&pod, container, image, Path::new("/var/lib/node/seccomp"))
    }

    #[test]
    fn what_the_container_says_counts_before_what_the_pod_says() {
        let root = ImageUser { uid: Some(0), name: String::new() };
        let pod = json!({"runAsUser": 1000, "fsGroup": 7, "supplementalGroups": [8]});
        let got = of(&pod, &json!({"runAsUser": 2000}), &root).unwrap();
        assert_eq!(got.run_as_user, Some(Int64Value { value: 2000 }));
        assert_eq!(got.supplemental_groups, [7, 8]);
        let got = of(&pod, &json!({}), &root).unwrap();
        assert_eq!(got.run_as_user, Some(Int64Value { value: 1000 }));
        let got = of(&json!({}), &json!({}), &root).unwrap();
        assert_eq!(got.run_as_user, Some(Int64Value { value: 0 }));
    }

    #[test]
    fn a_runtime_is_told_to_add_no_groups_of_its_own() {
        let root = ImageUser::default();
        let policy = |policy: Option<&str>| {
            let pod = json!({"supplementalGroupsPolicy": policy});
            let whole = json!({"spec": {"securityContext": pod, "containers": []}});
            let of_sandbox = of_sandbox(&serde_json::from_value(whole).unwrap());
            let of_container = of(&pod, &json!({}), &root).unwrap();
            let told = of_container.supplemental_groups_policy;
            assert_eq!(told, of_sandbox.supplemental_groups_policy);
            told
        };
        assert_eq!([None, Some("Merge"), Some("Strict")].map(policy), [0, 0, 1]);
    }

    #[test]
    fn who_must_not_be_root_is_not() {
        let root = ImageUser { uid: Some(0), name: String::new() };
        let named = ImageUser { uid: None, name: "web".into() };
        let absurd = ImageUser { uid: Some(1 << 31), name: String::new() };
        let not_root = json!({"runAsNonRoot": true});
        let will_be = "container has runAsNonRoot and image will run as root";
        for (container, image, refused) in [
            (json!({}), &root, Some(will_be)),
            (json!({}), &ImageUser::default(), Some(will_be)),
            (json!({"runAsUser": 5}), &root, None),
            (json!({"runAsUser": 0}), &named, Some("container's runAsUser breaks non-root policy")),
            (
                json!({}),
                &named,
                Some(
                    "container has runAsNonRoot and image has non-numeric user (web), cannot verify \
                     user is non-root",
                ),
            ),
            (
                json!({}),
                &absurd,
                Some(
                    "container has runAsNonRoot and image has an invalid user id (2147483648). (Must \
                     be 1-(2147483647)): must be between 0 and 2147483647, inclusive",
                ),
            ),
            (json!({"runAsNonRoot": false}), &root, None),
        ] {
            let got = of(&not_root, &container, image).err();
            let all = refused.map(|why| format!("{why} (pod: \"web_shop(u1)\", container: c)"));
            assert_eq!(got, all);
        }
    }

    #[test]
    fn profiles_are_inherited_and_the_privileged_have_none() {
        let root = ImageUser::default();
        let kind = |pod: &Value, container: &Value| {
            of(pod, container, &root).unwrap().seccomp.unwrap().profile_type
        };
        let default = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        assert_eq!(kind(&default, &json!({})), i32::from(ProfileType::RuntimeDefault));
        assert_eq!(
            kind(&default, &json!({"privileged": true})),
            i32::from(ProfileType::Unconfined)
        );
        assert_eq!(kind(&json!({}), &json!({})), i32::from(ProfileType::Unconfined));
    }

    #[test]
    fn profiles_of_the_machine_are_looked_for_in_its_directory() {
        let profile = json!({"type": "Localhost", "localhostProfile": "profiles/web.json"});
        let own = json!({"seccompProfile": profile});
        let got = of(&json!({}), &own, &ImageUser::default()).unwrap().seccomp.unwrap();
        assert_eq!(got.profile_type, i32::from(ProfileType::Localhost));
        assert_eq!(got.localhost_ref, "/var/lib/node/seccomp/profiles/web.json");
    }

    #[test]
    fn what_tells_of_other_work_on_the_machine_is_masked() {
        let got = of(&json!({}), &json!({}), &ImageUser::default()).unwrap();
        assert!(got.masked_paths.contains(&"/sys/devices/virtual/powercap".to_owned()));
        let got = of(&json!({}), &json!({"procMount": "Unmasked"}), &ImageUser::default());
        assert_eq!(got.unwrap().masked_paths, [""; 0]);
        let scratch = std::env::temp_dir().join(format!("throttles-{}", std::process::id()));
        for name in ["cpu10/thermal_throttle", "cpu2/thermal_throttle", "cpu3/cache", "cpuidle"] {
            std::fs::create_dir_all(scratch.join(name)).unwrap();
        }
        let expected = ["cpu2", "cpu10"].map(|name| scratch.join(name).join("thermal_throttle"));
        let expected = expected.map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(throttles(&scratch), expected);
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
