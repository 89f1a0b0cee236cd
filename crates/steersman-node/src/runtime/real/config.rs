//! What the runtime is told of a Pod's sandbox and of each container (pure).

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, ContainerPort, EphemeralContainer, Pod};

use super::labels;
use super::names::{self, ClusterDns};
use super::places::log_in;
use super::resources::{self, Host};
use super::security;
use crate::cri::wire::container::{
    ContainerConfig, ContainerMetadata, KeyValue, LinuxContainerConfig, Mount,
};
use crate::cri::wire::image::ImageSpec;
use crate::cri::wire::sandbox::{
    DNSConfig, LinuxPodSandboxConfig, NamespaceMode, PodSandboxConfig, PodSandboxMetadata,
    PortMapping, Protocol,
};
use crate::runtime::user::ImageUser;

/// The machine that Pods run on, as far as they can tell.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The name of its Node.
    pub(super) node: String,
    pub(super) host: Host,
    /// Who answers names in the cluster.
    pub(super) dns: ClusterDns,
    /// Where its profiles of seccomp are.
    pub(super) profiles: PathBuf,
}

/// What is found out about a container before it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) environment: BTreeMap<String, Vec<u8>>,
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
    pub(super) mounts: Vec<Mount>,
    /// The runtime's name for its image.
    pub(super) image: String,
    pub(super) user: ImageUser,
    /// The container whose processes it is to see.
    pub(super) target: Option<String>,
}

/// Which sandbox of a Pod is made, and where.
#[derive(Clone, Debug)]
pub(super) struct NewSandbox {
    pub(super) attempt: u32,
    pub(super) log_directory: String,
    pub(super) cgroup_parent: String,
    /// Whom the Pod asks for names.
    pub(super) dns: DNSConfig,
}

/// A sandbox for a Pod, or why there cannot be one.
pub(super) fn sandbox(
    pod: &Pod,
    ground: &Ground,
    new: NewSandbox,
) -> Result<PodSandboxConfig, String> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let meta = &pod.metadata;
    let on_host = spec.and_then(|spec| spec.host_network) == Some(true);
    let annotations = meta.annotations.iter().flatten();
    let sysctls = spec.and_then(|spec| spec.security_context.as_ref()?.sysctls.as_ref());
    let sysctls = sysctls.into_iter().flatten();
    let domain = &ground.dns.domain;
    Ok(PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: text(&meta.name),
            uid: text(&meta.uid),
            namespace: text(&meta.namespace),
            attempt: new.attempt,
        }),
        hostname: if on_host { String::new() } else { names::hostname(pod, domain)? },
        log_directory: new.log_directory,
        dns_config: Some(new.dns),
        port_mappings: if on_host { Vec::new() } else { ports(pod) },
        labels: labels::of_sandbox(pod, &ground.node),
        annotations: annotations.map(|(key, value)| (key.clone(), value.clone())).collect(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: new.cgroup_parent,
            security_context: Some(security::of_sandbox(pod)),
            sysctls: sysctls.map(|one| (one.name.clone(), one.value.clone())).collect(),
        }),
    })
}

/// The ports of the machine that lead to a Pod.
fn ports(pod: &Pod) -> Vec<PortMapping> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let companion = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let companions = spec.init_containers.iter().flatten().filter(companion);
    let all = spec.containers.iter().chain(companions);
    all.flat_map(|container| container.ports.iter().flatten()).map(port).collect()
}

fn port(port: &ContainerPort) -> PortMapping {
    let protocol = match port.protocol.as_deref() {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    PortMapping {
        protocol: protocol.into(),
        container_port: port.container_port,
        host_port: port.host_port.unwrap_or(0),
        host_ip: port.host_ip.clone().unwrap_or_default(),
    }
}

/// A container of a Pod, started for the time with this number.
pub(super) fn container(
    pod: &Pod,
    container: &Container,
    attempt: i32,
    ground: &Ground,
    prepared: Prepared,
) -> Result<ContainerConfig, String> {
    let Prepared { environment, command, args, mounts, image, user, target } = prepared;
    let mut security = security::of_container(pod, container, &user, &ground.profiles)?;
    if let (Some(target), Some(namespaces)) = (target, security.namespace_options.as_mut())
        && namespaces.pid == i32::from(NamespaceMode::Container)
    {
        namespaces.pid = NamespaceMode::Target.into();
        namespaces.target_id = target;
    }
    let variable = |(key, value): (String, Vec<u8>)| KeyValue { key, value };
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: container.name.clone(),
            attempt: u32::try_from(attempt).unwrap_or(0),
        }),
        image: Some(ImageSpec { image }),
        command,
        args,
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: environment.into_iter().map(variable).collect(),
        mounts,
        labels: labels::of_container(pod, container, &ground.node),
        annotations: labels::annotations(pod, container, attempt),
        log_path: log_in(&container.name, attempt),
        stdin: container.stdin == Some(true),
        stdin_once: container.stdin_once == Some(true),
        tty: container.tty == Some(true),
        linux: Some(LinuxContainerConfig {
            resources: Some(resources::of_container(pod, container, ground.host)),
            security_context: Some(security),
        }),
    })
}

/// The container of this name, whichever list it is in, and what it is to see into.
pub(super) fn spec_of(pod: &Pod, name: &str) -> Option<(Container, Option<String>)> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    if let Some(found) = all.find(|container| container.name == name) {
        return Some((found.clone(), None));
    }
    let mut added = spec.ephemeral_containers.iter().flatten();
    let found = added.find(|container| container.name == name)?;
    Some((as_container(found), found.target_container_name.clone()))
}

/// An ephemeral container is a container with fewer fields.
fn as_container(added: &EphemeralContainer) -> Container {
    let added = added.clone();
    Container {
        name: added.name,
        image: added.image,
        image_pull_policy: added.image_pull_policy,
        command: added.command,
        args: added.args,
        env: added.env,
        env_from: added.env_from,
        lifecycle: added.lifecycle,
        ports: added.ports,
        resources: added.resources,
        security_context: added.security_context,
        stdin: added.stdin,
        stdin_once: added.stdin_once,
        termination_message_path: added.termination_message_path,
        termination_message_policy: added.termination_message_policy,
        tty: added.tty,
        volume_devices: added.volume_devices,
        volume_mounts: added.volume_mounts,
        working_dir: added.working_dir,
        ..Container::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ground() -> Ground {
        let host = Host { memory: 1 << 30, unified: false };
        let dns = ClusterDns::default();
        Ground { node: "vm".into(), host, dns, profiles: "/seccomp".into() }
    }

    fn pod() -> Pod {
        let pod = json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "u1", "labels": {"app": "web"}},
            "spec": {
                "containers": [{
                    "name": "main",
                    "image": "web:1",
                    "workingDir": "/srv",
                    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
                }],
                "ephemeralContainers": [
                    {"name": "debug", "image": "busybox:1", "targetContainerName": "main"},
                ],
            },
        });
        serde_json::from_value(pod).unwrap()
    }

    fn new() -> NewSandbox {
        NewSandbox {
            attempt: 2,
            log_directory: "/logs/shop_web_u1".into(),
            cgroup_parent: "/kubepods/besteffort/podu1".into(),
            dns: DNSConfig::default(),
        }
    }

    #[test]
    fn a_sandbox_says_whose_it_is_and_has_the_ports() {
        let got = sandbox(&pod(), &ground(), new()).unwrap();
        let metadata = got.metadata.unwrap();
        assert_eq!((metadata.name.as_str(), metadata.attempt), ("web", 2));
        assert_eq!(
            (got.labels["app"].as_str(), got.labels["steersman.dev/node"].as_str()),
            ("web", "vm")
        );
        assert_eq!((got.hostname.as_str(), got.port_mappings[0].host_port), ("web", 8080));
        let mut on_host = pod();
        on_host.spec.as_mut().unwrap().host_network = Some(true);
        let got = sandbox(&on_host, &ground(), new()).unwrap();
        assert_eq!((got.hostname.as_str(), got.port_mappings.len()), ("", 0));
    }

    #[test]
    fn a_container_is_made_as_it_was_prepared() {
        let pod = pod();
        let (spec, target) = spec_of(&pod, "main").unwrap();
        assert_eq!(target, None);
        let environment = BTreeMap::from([("A".to_owned(), b"1".to_vec())]);
        let prepared = Prepared { environment, image: "sha256:1".into(), ..Prepared::default() };
        let got = container(&pod, &spec, 3, &ground(), prepared).unwrap();
        assert_eq!(got.metadata.unwrap().attempt, 3);
        assert_eq!((got.log_path.as_str(), got.working_dir.as_str()), ("main/3.log", "/srv"));
        assert_eq!(got.envs, [KeyValue { key: "A".into(), value: b"1".to_vec() }]);
        assert_eq!(got.labels["io.kubernetes.container.name"], "main");
        assert_eq!(got.annotations["io.kubernetes.container.restartCount"], "3");
    }

    #[test]
    fn a_debug_container_sees_the_processes_of_its_target() {
        let pod = pod();
        let (spec, target) = spec_of(&pod, "debug").unwrap();
        assert_eq!(target.as_deref(), Some("main"));
        let prepared = Prepared { target: Some("id1".into()), ..Prepared::default() };
        let got = container(&pod, &spec, 0, &ground(), prepared).unwrap();
        let namespaces = got.linux.unwrap().security_context.unwrap().namespace_options.unwrap();
        assert_eq!(namespaces.pid, i32::from(NamespaceMode::Target));
        assert_eq!(namespaces.target_id, "id1");
    }
}
