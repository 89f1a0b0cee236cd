//! The cgroup of each Pod, in which its containers are: `/kubepods/burstable/pod…` and the like.
//!
//! Works on the first version of cgroups, with a hierarchy for each controller, and on the second
//! with one for all. The runtime puts containers into the Pod's cgroup and takes them out; the Pod's
//! own is made and removed here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use rustix::process::{Pid, Signal, kill_process};

use super::resources::{self, PodLimits, Qos};

/// Where hierarchies are mounted.
const MOUNTS: &str = "/proc/self/mounts";
/// In microseconds.
const PERIOD: i64 = 100_000;

/// The cgroups of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    /// The path under each hierarchy below which Pods have theirs.
    root: String,
    hierarchies: Vec<Hierarchy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mounted: PathBuf,
    controllers: Controllers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Controllers {
    /// Of the first version: these.
    Some(Vec<String>),
    /// Of the second: all that are not in one of the first.
    Unified,
}

/// Something that a cgroup allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// In bytes.
    Memory(i64),
    /// Microseconds of each [`PERIOD`].
    Quota(i64),
    Shares(i64),
}

impl Cgroups {
    /// The cgroups of this machine, below this path.
    pub(crate) fn of_this_machine(root: &str) -> io::Result<Self> {
        Ok(Self { root: root.to_owned(), hierarchies: hierarchies(&fs::read_to_string(MOUNTS)?) })
    }

    /// Whether all controllers are in the hierarchy of the second version.
    pub(super) fn is_unified(&self) -> bool {
        let mut all = self.hierarchies.iter().map(|hierarchy| &hierarchy.controllers);
        !self.hierarchies.is_empty() && all.all(|own| *own == Controllers::Unified)
    }

    /// The path of a Pod's cgroup in every hierarchy, as the runtime is told.
    pub(super) fn parent(&self, pod: &Pod) -> String {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        match Qos::of(pod) {
            Qos::Guaranteed => format!("{}/pod{uid}", self.root),
            Qos::Burstable => format!("{}/burstable/pod{uid}", self.root),
            Qos::BestEffort => format!("{}/besteffort/pod{uid}", self.root),
        }
    }

    /// The path below which all Pods have theirs.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// How much memory a cgroup has that it cannot give up at once, in bytes.
    pub(super) fn working_set(&self, cgroup: &str) -> Option<i64> {
        self.hierarchies.iter().find_map(|hierarchy| {
            let path = hierarchy.path(cgroup);
            let (usage, inactive) = match &hierarchy.controllers {
                Controllers::Some(own) if own.iter().any(|own| own == "memory") => {
                    ("memory.usage_in_bytes", "total_inactive_file")
                }
                Controllers::Some(_) => return None,
                Controllers::Unified => ("memory.current", "inactive_file"),
            };
            let usage = number(&path.join(usage))?;
            let stat = fs::read_to_string(path.join("memory.stat")).ok()?;
            let inactive = stat.lines().find_map(|line| {
                line.strip_prefix(inactive)?.strip_prefix(' ')?.parse::<i64>().ok()
            });
            Some((usage - inactive.unwrap_or(0)).max(0))
        })
    }

    /// How much memory a cgroup has in all, in bytes.
    pub(super) fn memory(&self, cgroup: &str) -> Option<i64> {
        self.read(cgroup, &["memory.usage_in_bytes", "memory.current"])?.parse().ok()
    }

    /// What a cgroup allows.
    pub(super) fn allowed(&self, cgroup: &str) -> PodLimits {
        let memory = self.read(cgroup, &["memory.limit_in_bytes", "memory.max"]);
        let quota = self.read(cgroup, &["cpu.cfs_quota_us", "cpu.max"]);
        let quota = quota.and_then(|text| text.split(' ').next()?.parse::<i64>().ok());
        let shares = self.read(cgroup, &["cpu.shares"]).and_then(|text| text.parse().ok());
        let weight = || self.read(cgroup, &["cpu.weight"])?.parse::<i64>().ok();
        PodLimits {
            cpu_shares: shares.or_else(|| weight().map(shares_of)).unwrap_or(0),
            cpu_quota: quota.filter(|quota| *quota > 0),
            // What is not limited is said to be so by a number that no machine has.
            memory: memory.and_then(|text| text.parse().ok()).filter(|bytes| *bytes < 1 << 62),
        }
    }

    /// Changes what a cgroup allows.
    pub(super) fn allow(&self, cgroup: &str, allowed: Allowed) -> io::Result<()> {
        let (first, second) = match allowed {
            Allowed::Memory(bytes) => {
                (("memory.limit_in_bytes", bytes.to_string()), ("memory.max", bytes.to_string()))
            }
            Allowed::Quota(quota) => {
                (("cpu.cfs_quota_us", quota.to_string()), ("cpu.max", format!("{quota} {PERIOD}")))
            }
            Allowed::Shares(shares) => {
                (("cpu.shares", shares.to_string()), ("cpu.weight", weight_of(shares).to_string()))
            }
        };
        for path in self.hierarchies.iter().map(|hierarchy| hierarchy.path(cgroup)) {
            for (file, value) in [&first, &second] {
                let file = path.join(file);
                if file.exists() {
                    return fs::write(file, value);
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("no {} of {cgroup}", first.0)))
    }

    /// What the first of these files says that there is.
    fn read(&self, cgroup: &str, files: &[&str]) -> Option<String> {
        let paths = self.hierarchies.iter().map(|hierarchy| hierarchy.path(cgroup));
        paths.flat_map(|path| files.iter().map(move |file| path.join(file))).find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            Some(text.trim().to_owned())
        })
    }

    /// How many processes there are in a cgroup.
    pub(super) fn processes(&self, cgroup: &str) -> Option<i64> {
        let mut all = self.hierarchies.iter().map(|hierarchy| hierarchy.path(cgroup));
        all.find_map(|path| number(&path.join("pids.current")))
    }

    /// Makes the cgroup of a Pod, or brings its limits up to date.
    pub(super) fn make(&self, pod: &Pod) -> io::Result<()> {
        let (parent, limits) = (self.parent(pod), resources::of_pod(pod));
        for hierarchy in &self.hierarchies {
            hierarchy.make(&parent, &limits)?;
        }
        Ok(())
    }

    /// Removes the cgroups of a Pod, whatever its class. Fails while something runs there; that is
    /// killed if the Pod is known to be `ours`.
    pub(super) fn remove(&self, uid: &str, ours: bool) -> io::Result<()> {
        for class in ["", "/burstable", "/besteffort"] {
            for hierarchy in &self.hierarchies {
                let path = hierarchy.path(&format!("{}{class}/pod{uid}", self.root));
                remove_tree(&path, ours)?;
            }
        }
        Ok(())
    }

    /// The uids of all Pods that have a cgroup.
    pub(super) fn uids(&self) -> Vec<String> {
        let mut uids: Vec<String> = Vec::new();
        for class in ["", "/burstable", "/besteffort"] {
            for hierarchy in &self.hierarchies {
                let path = hierarchy.path(&format!("{}{class}", self.root));
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                uids.extend(entries.filter_map(|entry| {
                    Some(entry.file_name().to_str()?.strip_prefix("pod")?.to_owned())
                }));
            }
        }
        uids.sort();
        uids.dedup();
        uids
    }
}

impl Hierarchy {
    fn path(&self, cgroup: &str) -> PathBuf {
        self.mounted.join(cgroup.trim_start_matches('/'))
    }

    fn make(&self, cgroup: &str, limits: &PodLimits) -> io::Result<()> {
        let path = self.path(cgroup);
        match &self.controllers {
            Controllers::Some(own) => {
                let has = |name: &str| own.iter().any(|own| own == name);
                if has("cpu") || has("memory") || has("pids") {
                    fs::create_dir_all(&path)?;
                }
                if has("cpu") {
                    write(&path, "cpu.shares", limits.cpu_shares)?;
                    write(&path, "cpu.cfs_period_us", PERIOD)?;
                    write(&path, "cpu.cfs_quota_us", limits.cpu_quota.unwrap_or(-1))?;
                }
                if let Some(memory) = limits.memory.filter(|_| has("memory")) {
                    write(&path, "memory.limit_in_bytes", memory)?;
                }
                Ok(())
            }
            Controllers::Unified => self.make_unified(cgroup, &path, limits),
        }
    }

    fn make_unified(&self, cgroup: &str, path: &Path, limits: &PodLimits) -> io::Result<()> {
        let available = fs::read_to_string(self.mounted.join("cgroup.controllers"))?;
        let wanted = ["cpu", "cpuset", "io", "memory", "pids"];
        let available: Vec<&str> = available.split_whitespace().collect();
        let wanted: Vec<&str> =
            wanted.into_iter().filter(|name| available.contains(name)).collect();
        if wanted.is_empty() {
            return Ok(()); // all of them are in hierarchies of the first version
        }
        fs::create_dir_all(path)?;
        let enable: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        let mut above = self.mounted.clone();
        for part in cgroup.trim_start_matches('/').split('/') {
            fs::write(above.join("cgroup.subtree_control"), enable.join(" "))?;
            above.push(part);
        }
        if wanted.contains(&"cpu") {
            write(path, "cpu.weight", weight_of(limits.cpu_shares))?;
            let quota = limits.cpu_quota.map_or("max".to_owned(), |quota| quota.to_string());
            fs::write(path.join("cpu.max"), format!("{quota} {PERIOD}"))?;
        }
        if wanted.contains(&"memory") {
            let memory = limits.memory.map_or("max".to_owned(), |bytes| bytes.to_string());
            fs::write(path.join("memory.max"), memory)?;
        }
        Ok(())
    }
}

/// What shares of the first version are in the second.
fn weight_of(shares: i64) -> i64 {
    1 + (shares - 2) * 9999 / 262_142
}

fn shares_of(weight: i64) -> i64 {
    2 + (weight - 1) * 262_142 / 9999
}

fn number(file: &Path) -> Option<i64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn write(path: &Path, file: &str, value: i64) -> io::Result<()> {
    fs::write(path.join(file), value.to_string())
}

/// Removes a cgroup and all below it: each is a directory whose files go with it.
fn remove_tree(path: &Path, ours: bool) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        remove_tree(&entry.path(), ours)?;
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if ours && error.kind() == io::ErrorKind::ResourceBusy => {
            kill_all(path);
            Err(error)
        }
        removed => removed,
    }
}

/// Kills what runs in a cgroup. The runtime knows nothing of it: it was killed while it made a
/// sandbox, whose process is left.
fn kill_all(path: &Path) {
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw) {
        tracing::info!(pid = pid.as_raw_nonzero(), cgroup = %path.display(), "killing what is left");
        let _ = kill_process(pid, Signal::KILL); // it may be gone by now
    }
}

/// The hierarchies in a list of mounts.
fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    const KNOWN: [&str; 12] = [
        "cpu",
        "cpuacct",
        "cpuset",
        "memory",
        "devices",
        "freezer",
        "blkio",
        "pids",
        "hugetlb",
        "net_cls",
        "net_prio",
        "perf_event",
    ];
    let mut found: Vec<Hierarchy> = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(mounted), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let controllers = match kind {
            "cgroup" => {
                let all = options
                    .split(',')
                    .filter(|option| KNOWN.contains(option) || option.starts_with("name="));
                Controllers::Some(all.map(str::to_owned).collect())
            }
            "cgroup2" => Controllers::Unified,
            _ => continue,
        };
        if !found.iter().any(|known| known.controllers == controllers) {
            found.push(Hierarchy { mounted: mounted.into(), controllers });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_found_once() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup /other/memory cgroup rw,relatime,memory 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
            tmpfs /run tmpfs rw 0 0\n";
        let found = hierarchies(mounts);
        let paths: Vec<&str> = found.iter().filter_map(|all| all.mounted.to_str()).collect();
        assert_eq!(
            paths,
            ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"]
        );
        assert_eq!(found[2].controllers, Controllers::Unified);
        let root = String::from("/kubepods");
        assert!(!Cgroups { root: root.clone(), hierarchies: found }.is_unified(), "it is both");
        let second = hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
        assert!(Cgroups { root, hierarchies: second }.is_unified());
    }

    #[test]
    fn shares_and_weights_are_converted_as_a_kubelet_does() {
        for (shares, weight) in [
            (2, 1),
            (102, 4),
            (512, 20),
            (1024, 39),
            (2048, 79),
            (100_000, 3815),
            (262_144, 10_000),
        ] {
            assert_eq!(weight_of(shares), weight, "{shares}");
        }
        for (weight, shares) in [(1, 2), (4, 80), (39, 998), (100, 2597), (10_000, 262_144)] {
            assert_eq!(shares_of(weight), shares, "{weight}");
        }
    }

    /// A hierarchy of the second version, of files that nobody reads but the test.
    fn unified(name: &str, controllers: &str) -> (PathBuf, Cgroups) {
        let mounted = std::env::temp_dir().join(format!("steersman-{name}-{}", std::process::id()));
        fs::create_dir_all(&mounted).unwrap();
        fs::write(mounted.join("cgroup.controllers"), controllers).unwrap();
        let hierarchy = Hierarchy { mounted: mounted.clone(), controllers: Controllers::Unified };
        (mounted, Cgroups { root: "/kubepods".into(), hierarchies: vec![hierarchy] })
    }

    #[test]
    fn a_pod_has_its_limits_in_the_second_version() {
        let (mounted, cgroups) = unified("v2", "cpuset cpu io memory hugetlb pids rdma misc\n");
        let little = json!({"cpu": "500m", "memory": "64Mi"});
        let requests = json!({"requests": {"cpu": "500m"}});
        for (class, place, resources, expected) in [
            (
                "Guaranteed",
                "",
                json!({"limits": little, "requests": little}),
                ["20", "50000 100000", "67108864"],
            ),
            ("Burstable", "burstable/", requests, ["20", "max 100000", "max"]),
            (
                "Burstable",
                "burstable/",
                json!({"limits": {"memory": "1Gi"}}),
                ["1", "max 100000", "1073741824"],
            ),
            ("BestEffort", "besteffort/", json!({}), ["1", "max 100000", "max"]),
        ] {
            let pod = json!({
                "metadata": {"uid": "u"},
                "spec": {"containers": [{"name": "c", "resources": resources}]},
                "status": {"qosClass": class},
            });
            cgroups.make(&serde_json::from_value(pod).unwrap()).unwrap();
            let own = mounted.join(format!("kubepods/{place}podu"));
            let found = ["cpu.weight", "cpu.max", "memory.max"]
                .map(|file| fs::read_to_string(own.join(file)).unwrap());
            assert_eq!(found, expected, "{class}: {resources}");
            // Whoever is above lets those below have the controllers; a Pod's own are its runtime's.
            for above in ["", "kubepods"] {
                let control = mounted.join(above).join("cgroup.subtree_control");
                let control = fs::read_to_string(control).unwrap();
                assert_eq!(control, "+cpu +cpuset +io +memory +pids");
            }
            assert!(!own.join("cgroup.subtree_control").exists());
        }
        fs::remove_dir_all(&mounted).unwrap();
    }

    #[test]
    fn what_the_first_version_has_is_not_made_in_the_second() {
        let (mounted, cgroups) = unified("hybrid", "hugetlb\n");
        let pod = json!({"metadata": {"uid": "u"}, "spec": {"containers": []}});
        cgroups.make(&serde_json::from_value(pod).unwrap()).unwrap();
        assert!(!mounted.join("kubepods").exists());
        fs::remove_dir_all(&mounted).unwrap();
    }

    #[test]
    fn what_a_cgroup_could_give_up_at_once_does_not_count() {
        let mounted = std::env::temp_dir().join(format!("steersman-set-{}", std::process::id()));
        let pod = mounted.join("kubepods/podu");
        fs::create_dir_all(&pod).unwrap();
        fs::write(pod.join("memory.usage_in_bytes"), "1000\n").unwrap();
        fs::write(pod.join("memory.stat"), "inactive_file 1\ntotal_inactive_file 300\n").unwrap();
        fs::write(pod.join("pids.current"), "7\n").unwrap();
        let of = |controllers| Cgroups {
            root: "/kubepods".into(),
            hierarchies: vec![Hierarchy { mounted: mounted.clone(), controllers }],
        };
        let first = of(Controllers::Some(vec!["memory".into()]));
        assert_eq!(first.working_set("/kubepods/podu"), Some(700));
        assert_eq!(first.processes("/kubepods/podu"), Some(7));
        fs::write(pod.join("memory.current"), "1000\n").unwrap();
        assert_eq!(of(Controllers::Unified).working_set("/kubepods/podu"), Some(999));
        assert_eq!(first.working_set("/absent"), None);
        fs::remove_dir_all(&mounted).unwrap();
    }

    #[test]
    fn what_a_cgroup_allows_is_read_and_changed_in_both_versions() {
        let mounted = std::env::temp_dir().join(format!("steersman-allow-{}", std::process::id()));
        let first = [
            ("memory.limit_in_bytes", "9223372036854771712"),
            ("cpu.cfs_quota_us", "-1"),
            ("cpu.shares", "1024"),
        ];
        let second = [("memory.max", "max"), ("cpu.max", "max 100000"), ("cpu.weight", "39")];
        for (files, shares) in [(first, 512), (second, 500)] {
            let pod = mounted.join("kubepods/podu");
            fs::create_dir_all(&pod).unwrap();
            for (file, text) in files {
                fs::write(pod.join(file), text).unwrap();
            }
            let hierarchy =
                Hierarchy { mounted: mounted.clone(), controllers: Controllers::Unified };
            let cgroups = Cgroups { root: "/kubepods".into(), hierarchies: vec![hierarchy] };
            let open = cgroups.allowed("/kubepods/podu");
            assert_eq!((open.cpu_quota, open.memory), (None, None), "{files:?}");
            for allowed in [Allowed::Memory(64), Allowed::Quota(20_000), Allowed::Shares(512)] {
                cgroups.allow("/kubepods/podu", allowed).unwrap();
            }
            let expected =
                PodLimits { cpu_shares: shares, cpu_quota: Some(20_000), memory: Some(64) };
            assert_eq!(cgroups.allowed("/kubepods/podu"), expected);
            assert!(cgroups.allow("/kubepods/absent", Allowed::Memory(64)).is_err());
            fs::remove_dir_all(&mounted).unwrap();
        }
    }

    #[test]
    fn a_pod_is_below_its_class() {
        let cgroups = Cgroups { root: "/kubepods".into(), hierarchies: Vec::new() };
        let parent = |class: &str| {
            let pod = json!({"metadata": {"uid": "u"}, "status": {"qosClass": class}});
            cgroups.parent(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(parent("Guaranteed"), "/kubepods/podu");
        assert_eq!(parent("Burstable"), "/kubepods/burstable/podu");
        assert_eq!(parent("BestEffort"), "/kubepods/besteffort/podu");
    }
}
