//! A containerd of the tests' own: its own directory, socket, network and images, one for all tests.
//!
//! A small shell script is its parent. It starts containerd again when a test kills it, and when the
//! tests are gone, however they went, it takes away whatever is left on the machine.

pub(crate) mod images;
mod layout;
mod room;
mod tar;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

pub(crate) use room::Room;
use serde_json::{Value, json};

/// What the tests need on the path, and the package that it is in.
const NEEDED: [(&str, &str); 6] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
];
/// Where Debian has the plug-ins of networks.
const PLUGINS: &str = "/usr/lib/cni";
/// How often to look whether containerd answers: for half a minute.
const LOOKS: usize = 300;

/// A running containerd.
pub(crate) struct Containerd {
    directory: PathBuf,
    /// What cgroups, the network and the like are called.
    pub name: String,
    /// The script; its end of the pipe closes with this process.
    _script: Child,
}

/// The containerd of all tests.
pub(crate) fn shared() -> &'static Containerd {
    static SHARED: OnceLock<Containerd> = OnceLock::new();
    SHARED.get_or_init(|| Containerd::start(Like::default()))
}

/// One for a test that would take the images of the others away, with a disk of so many bytes.
pub(crate) fn with_disk(bytes: u64) -> &'static Containerd {
    static SMALL: OnceLock<Containerd> = OnceLock::new();
    SMALL
        .get_or_init(|| Containerd::start(Like { number: 9, disk: Some(bytes), ..Like::default() }))
}

/// One for a test that wants ports of the machine to lead to Pods: that takes each Pod some time.
pub(crate) fn with_host_ports() -> &'static Containerd {
    static MAPPED: OnceLock<Containerd> = OnceLock::new();
    MAPPED.get_or_init(|| Containerd::start(Like { number: 8, ports: true, ..Like::default() }))
}

/// What is particular about one of them.
#[derive(Clone, Copy, Default)]
struct Like<'a> {
    /// Which one in this process.
    number: u32,
    /// The size of its disk, if that is in memory.
    disk: Option<u64>,
    /// The network namespace that it is in.
    netns: Option<&'a str>,
    /// Whether ports of the machine lead to Pods.
    ports: bool,
}

/// Lets the directory of network namespaces be a mount, as `ip netns add` has it: where that comes later,
/// it covers the namespaces that are there already, and containerd never gets rid of those again.
fn prepare_namespaces() {
    const SCRIPT: &str = "mkdir -p /run/netns && if ! mountpoint -q /run/netns; then \
                          mount --bind /run/netns /run/netns && mount --make-shared /run/netns; fi";
    static PREPARED: OnceLock<()> = OnceLock::new();
    PREPARED.get_or_init(|| {
        let done = Command::new("sh").args(["-c", SCRIPT]).status().expect("a shell");
        assert!(done.success(), "the directory of network namespaces can be made a mount");
    });
}

impl Containerd {
    /// One of its own for the machine of this number from 1 on, in a network namespace. It lasts until
    /// this process ends.
    pub(crate) fn of_machine(number: u32, netns: &str) -> &'static Self {
        let netns = Some(netns);
        Box::leak(Box::new(Self::start(Like { number, netns, ..Like::default() })))
    }

    fn start(Like { number, disk, netns, ports }: Like<'_>) -> Self {
        check();
        prepare_namespaces();
        let pid = std::process::id();
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let name = format!("stm{pid:x}{suffix}");
        let directory = std::env::temp_dir().join(format!("steersman-containerd-{pid}{suffix}"));
        for inside in ["cni", "root"] {
            fs::create_dir_all(directory.join(inside)).expect("a directory of our own");
        }
        if let Some(bytes) = disk {
            mount_memory(&directory.join("root"), bytes);
        }
        let write = |file: &str, text: String| {
            fs::write(directory.join(file), text).expect("a file of our own");
        };
        write("config.toml", configuration(&directory));
        write("cni/10-bridge.conflist", network(&directory, &name, &subnet(number), ports));
        write("parent.sh", include_str!("parent.sh").to_owned());
        let script = Command::new("sh")
            .arg(directory.join("parent.sh"))
            .args([directory.as_os_str(), name.as_ref()])
            .args(netns)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.join("parent.log")).expect("a log"))
            // Who stops the tests from a terminal must not stop what clears up after them.
            .process_group(0)
            .spawn()
            .expect("a shell");
        let containerd = Self { directory, name, _script: script };
        containerd.wait();
        containerd.import(&images::archive());
        containerd
    }

    /// Brings images that are in an archive.
    pub(crate) fn import(&self, archive: &[u8]) {
        let file = self.directory.join("images.tar");
        fs::write(&file, archive).expect("an archive of our own");
        self.ctr(&["images", "import", &file.display().to_string()]);
        fs::remove_file(&file).expect("it was there");
    }

    /// The names of the images that it has.
    pub(crate) fn images(&self) -> Vec<String> {
        let all = self.ctr(&["images", "ls", "-q"]);
        all.lines().filter(|name| !name.starts_with("sha256:")).map(str::to_owned).collect()
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("containerd.sock")
    }

    /// A directory for one test.
    pub(crate) fn room(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Kills it; it comes back.
    pub(crate) fn kill(&self) {
        for _ in 0..LOOKS {
            let pid = fs::read_to_string(self.directory.join("pid")).expect("its number");
            let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill");
            if killed.success() {
                return;
            }
            pause(); // somebody else has killed it
        }
        panic!("containerd was not there");
    }

    /// Runs `ctr` in the namespace of Kubernetes.
    pub(crate) fn ctr(&self, arguments: &[&str]) -> String {
        self.try_ctr(arguments).unwrap_or_else(|why| panic!("ctr {arguments:?}: {why}"))
    }

    /// The same, or why it failed: somebody may have killed containerd.
    pub(crate) fn try_ctr(&self, arguments: &[&str]) -> Result<String, String> {
        let socket = self.socket().display().to_string();
        let output = Command::new("ctr")
            .args(["--address", &socket, "--namespace", "k8s.io"])
            .args(arguments)
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn wait(&self) {
        for _ in 0..LOOKS {
            if self.try_ctr(&["plugins", "ls"]).is_ok_and(|all| all.contains("cri")) {
                return;
            }
            pause();
        }
        let log = fs::read_to_string(self.directory.join("containerd.log")).unwrap_or_default();
        panic!("containerd does not start:\n{log}");
    }
}

/// What disks in memory say that they are.
pub(crate) const DISK: &str = "steersman-tests";

/// Mounts a disk in memory.
pub(crate) fn mount_memory(directory: &Path, bytes: u64) {
    mount(directory, &format!("size={bytes}"));
}

/// Mounts a disk in memory that has room for so many files.
pub(crate) fn mount_for_files(directory: &Path, files: u64) {
    mount(directory, &format!("size=64m,nr_inodes={files}"));
}

fn mount(directory: &Path, options: &str) {
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, DISK])
        .arg(directory)
        .status()
        .expect("mount");
    assert!(mounted.success(), "{} cannot be mounted", directory.display());
}

/// Waits for a process, which nobody tells of.
fn pause() {
    let _ = Command::new("sleep").arg("0.1").status();
}

/// Fails with what to install.
fn check() {
    let there = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).exists())
    };
    let mut missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !there(program)).map(|(_, package)| *package).collect();
    if !Path::new(PLUGINS).join("bridge").exists() {
        missing.push("containernetworking-plugins");
    }
    missing.dedup();
    assert!(
        missing.is_empty(),
        "real containers need: apt-get install -y --no-install-recommends {}",
        missing.join(" ")
    );
    let user = Command::new("id").arg("-u").output().expect("id");
    assert_eq!(user.stdout.trim_ascii(), b"0", "real containers need root");
}

fn configuration(directory: &Path) -> String {
    let at = directory.display();
    // Without the right to lower it, every sandbox that asks for a better score would fail.
    format!(
        r#"version = 2
root = "{at}/root"
state = "{at}/state"
[grpc]
address = "{at}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{at}/cni"
"#
    )
}

/// The addresses of Pods of a machine, which no other run has.
pub(crate) fn subnet(number: u32) -> String {
    let pid = std::process::id();
    format!("10.{}.{}.0/24", 200 + pid % 50, (pid / 50 + number) % 250)
}

/// A bridge of our own.
fn network(directory: &Path, name: &str, subnet: &str, ports: bool) -> String {
    let state = directory.join("addresses");
    let bridge = json!({
        "type": "bridge",
        "bridge": name,
        "isGateway": true,
        "ipam": {
            "type": "host-local",
            "dataDir": state,
            "ranges": [[{"subnet": subnet}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    });
    let mapping = json!({"type": "portmap", "capabilities": {"portMappings": true}, "snat": true});
    let plugins: Vec<Value> = [bridge].into_iter().chain(ports.then_some(mapping)).collect();
    json!({"cniVersion": "0.4.0", "name": name, "plugins": plugins}).to_string()
}
