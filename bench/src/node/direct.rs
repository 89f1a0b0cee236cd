//! The same containers by the runtime alone: a sandbox, a container, its start, and nothing else. They
//! are [`told`] what the agent tells of a plain Pod, since that takes the runtime time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::try_join_all;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Times;
use super::containerd::Containerd;
use super::cri::wire::container as c;
use super::cri::wire::image::ImageSpec;
use super::cri::wire::sandbox as s;
use super::cri::{Cri, CriError};

/// What containers do.
pub(super) const COMMAND: [&str; 3] = ["sh", "-c", "while true; do sleep 1000; done"];
/// How many the agent works on at once.
const CONCURRENCY: usize = 32;

/// Asks the runtime.
pub(super) struct Direct {
    cri: Cri,
    cgroup: String,
    logs: String,
    /// One that is mounted.
    file: String,
    made: AtomicU32,
}

impl Direct {
    pub(super) fn new(containerd: &Containerd) -> Result<Self, String> {
        let cri = Cri::at(&containerd.socket()).map_err(|error| error.to_string())?;
        let logs = containerd.room("direct").display().to_string();
        let cgroup = format!("/{}/direct", containerd.name);
        let file = format!("{logs}/file");
        std::fs::create_dir_all(&logs).map_err(|error| error.to_string())?;
        std::fs::write(&file, "").map_err(|error| error.to_string())?;
        Ok(Self { cri, cgroup, logs, file, made: AtomicU32::new(0) })
    }

    /// How long each of so many took, one after the other.
    pub(super) async fn one_by_one(&self, count: usize) -> Result<Times, String> {
        let mut times = Times::new();
        for _ in 0..count {
            let begun = Instant::now();
            let sandbox = self.run().await.map_err(|error| error.to_string())?;
            times.push(begun.elapsed());
            self.end(&sandbox).await.map_err(|error| error.to_string())?;
        }
        Ok(times)
    }

    /// How long each of so many took from when all were asked for, as many at once as the agent would.
    pub(super) async fn at_once(&self, count: usize) -> Result<Times, String> {
        let places = Arc::new(Semaphore::new(CONCURRENCY));
        let begun = Instant::now();
        let running = (0..count).map(|_| {
            let places = Arc::clone(&places);
            async move {
                let _place = places.acquire().await;
                let sandbox = self.run().await?;
                Ok::<_, CriError>((sandbox, begun.elapsed()))
            }
        });
        let ran = try_join_all(running).await.map_err(|error| error.to_string())?;
        let ended = ran.iter().map(|(sandbox, _)| self.end(sandbox));
        try_join_all(ended).await.map_err(|error| error.to_string())?;
        Ok(ran.into_iter().map(|(_, time)| time).collect())
    }

    /// Runs a container, and gives its sandbox.
    async fn run(&self) -> Result<String, CriError> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("direct-{number}");
        let metadata = s::PodSandboxMetadata {
            name: name.clone(),
            uid: name.clone(),
            namespace: "default".into(),
            attempt: 0,
        };
        let linux = s::LinuxPodSandboxConfig {
            cgroup_parent: format!("{}/{name}", self.cgroup),
            security_context: Some(s::LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces()),
                seccomp: Some(profile(s::ProfileType::RuntimeDefault)),
                ..s::LinuxSandboxSecurityContext::default()
            }),
            ..s::LinuxPodSandboxConfig::default()
        };
        let sandbox = s::PodSandboxConfig {
            metadata: Some(metadata),
            hostname: name.clone(),
            log_directory: format!("{}/{name}", self.logs),
            linux: Some(linux),
            ..s::PodSandboxConfig::default()
        };
        let id = self.cri.run_sandbox(sandbox.clone(), String::new()).await?;
        let config = c::ContainerConfig {
            metadata: Some(c::ContainerMetadata { name: "main".into(), attempt: 0 }),
            image: Some(ImageSpec { image: "localhost/busybox:1".into() }),
            command: COMMAND.map(str::to_owned).into(),
            log_path: "main.log".into(),
            mounts: ["/etc/hosts", "/dev/termination-log"].map(|path| self.mount(path)).into(),
            linux: Some(told()),
            ..c::ContainerConfig::default()
        };
        let container = c::CreateContainerRequest {
            pod_sandbox_id: id.clone(),
            config: Some(config),
            sandbox_config: Some(sandbox),
        };
        let container = self.cri.create_container(container).await?;
        self.cri.start_container(&container).await?;
        Ok(id)
    }

    /// A file of the machine that a container sees.
    fn mount(&self, path: &str) -> c::Mount {
        let host_path = self.file.clone();
        c::Mount { container_path: path.to_owned(), host_path, ..c::Mount::default() }
    }

    async fn end(&self, sandbox: &str) -> Result<(), CriError> {
        self.cri.stop_sandbox(sandbox).await?;
        self.cri.remove_sandbox(sandbox).await
    }
}

/// A process namespace for each container, the rest for the Pod.
fn namespaces() -> s::NamespaceOption {
    s::NamespaceOption { pid: s::NamespaceMode::Container.into(), ..s::NamespaceOption::default() }
}

/// The runtime's own list of system calls, or none. As on a kubelet, a sandbox has it and a container that
/// does not ask for it has not; to compile it takes runc longer than all the rest of a start.
fn profile(profile_type: s::ProfileType) -> s::SecurityProfile {
    s::SecurityProfile { profile_type: profile_type.into(), localhost_ref: String::new() }
}

/// What a container of a Pod that asks for nothing may do and use.
fn told() -> c::LinuxContainerConfig {
    let paths = |names: &[&str]| names.iter().map(|name| format!("/proc/{name}")).collect();
    let resources = c::LinuxContainerResources {
        cpu_shares: 2,
        oom_score_adj: 1000,
        ..c::LinuxContainerResources::default()
    };
    let security = c::LinuxContainerSecurityContext {
        namespace_options: Some(namespaces()),
        masked_paths: paths(&[
            "asound",
            "acpi",
            "interrupts",
            "kcore",
            "keys",
            "latency_stats",
            "timer_list",
            "timer_stats",
            "sched_debug",
            "scsi",
        ]),
        readonly_paths: paths(&["bus", "fs", "irq", "sys", "sysrq-trigger"]),
        seccomp: Some(profile(s::ProfileType::Unconfined)),
        ..c::LinuxContainerSecurityContext::default()
    };
    c::LinuxContainerConfig { resources: Some(resources), security_context: Some(security) }
}
