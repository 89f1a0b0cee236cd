//! Real etcd processes for tests: started, stopped, killed, paused.
//!
//! [`Etcd::start`] gives a cluster of one member, [`Etcd::builder`] any other. Every cluster has
//! ports and a directory of its own; both go with the value, and with the process if that dies
//! first. Needs `etcd` and, for [`Etcd::ctl`], `etcdctl` on the path; the environment's `ETCD` and
//! `ETCDCTL` may name others. Of use to any crate's tests: it knows the standard
//! library, tokio and rcgen.
#![allow(dead_code, reason = "each crate's tests use some of it")]

mod member;
mod ports;
mod tls;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use self::member::{Address, Member};
pub use self::tls::Tls;

/// How long a cluster may take to be ready on a busy machine.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often to try other ports when somebody was quicker to take one.
const ATTEMPTS: usize = 5;

/// What cluster to start.
#[derive(Clone, Debug)]
pub struct Builder {
    members: usize,
    tls: Option<Tls>,
    arguments: Vec<String>,
}

/// A running cluster. Dropping it kills its members and removes what they stored.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    directory: PathBuf,
    tls: bool,
}

impl Builder {
    /// How many members the cluster has.
    #[must_use]
    pub fn members(mut self, members: usize) -> Self {
        self.members = members;
        self
    }

    /// Clients speak TLS and show a certificate of the same authority.
    #[must_use]
    pub fn tls(mut self, tls: &Tls) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    /// How large the database may become.
    #[must_use]
    pub fn quota(self, bytes: u64) -> Self {
        self.argument(format!("--quota-backend-bytes={bytes}"))
    }

    /// Another argument of every member.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts the cluster and waits until all members answer.
    pub async fn start(self) -> Etcd {
        let mut failed = String::new();
        for _ in 0..ATTEMPTS {
            match self.try_start().await {
                Ok(etcd) => return etcd,
                Err(reason) => failed = reason,
            }
        }
        panic!("etcd does not start: {failed}");
    }

    async fn try_start(&self) -> Result<Etcd, String> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("steersman-etcd-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory of our own");
        let arguments = self.all_arguments(&directory);
        let addresses: Vec<Address> = (0..self.members)
            .map(|n| Address::new(n, if self.tls.is_some() { "https" } else { "http" }))
            .collect();
        let members = addresses
            .iter()
            .map(|address| Member::new(address, &addresses, &directory, &arguments))
            .collect();
        let mut etcd = Etcd { members, directory, tls: self.tls.is_some() };
        etcd.members.iter_mut().for_each(Member::spawn);
        for member in &mut etcd.members {
            member.ready(READY_MAX).await?;
        }
        Ok(etcd)
    }

    fn all_arguments(&self, directory: &Path) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        // Ready in a moment; several members on a busy machine need time to hear of each other.
        let (heartbeat, election) = if self.members == 1 { (10, 100) } else { (50, 500) };
        arguments.push(format!("--heartbeat-interval={heartbeat}"));
        arguments.push(format!("--election-timeout={election}"));
        if let Some(tls) = &self.tls {
            let files =
                [("ca.pem", &tls.ca), ("cert.pem", &tls.certificate), ("key.pem", &tls.key)];
            for (name, content) in files {
                std::fs::write(directory.join(name), content).expect("a file of our own");
            }
            let path = |name: &str| directory.join(name).display().to_string();
            arguments.push("--client-cert-auth".into());
            arguments.push(format!("--trusted-ca-file={}", path("ca.pem")));
            arguments.push(format!("--cert-file={}", path("cert.pem")));
            arguments.push(format!("--key-file={}", path("key.pem")));
        }
        arguments
    }
}

impl Etcd {
    /// One member that anyone may use.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Another cluster than that.
    pub fn builder() -> Builder {
        Builder { members: 1, tls: None, arguments: Vec::new() }
    }

    /// Where clients reach the members, in their order.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client().to_owned()).collect()
    }

    /// The number of the member that leads, once there is one.
    pub async fn leader(&self) -> usize {
        let found = tokio::time::timeout(READY_MAX, async {
            let mut tick = tokio::time::interval(Duration::from_millis(20));
            loop {
                tick.tick().await;
                for (n, member) in self.members.iter().enumerate() {
                    if member.is_leader().await {
                        return n;
                    }
                }
            }
        });
        found.await.expect("no member becomes the leader")
    }

    /// Asks a member to end, and waits until it has.
    pub fn stop(&mut self, member: usize) {
        self.members[member].stop();
    }

    /// Ends a member as a power failure would.
    pub fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    /// Starts a member that was ended, on what it had stored, and waits until it answers.
    pub async fn restart(&mut self, member: usize) {
        self.members[member].spawn();
        self.members[member].ready(READY_MAX).await.expect("the member starts again");
    }

    /// Forgets everything and starts over, behind the same addresses: another cluster.
    pub async fn replace(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
        for member in &mut self.members {
            member.forget();
            member.spawn();
        }
        for member in &mut self.members {
            member.ready(READY_MAX).await.expect("the cluster starts over");
        }
    }

    /// A copy of what a member that was ended has stored.
    pub fn save(&self, member: usize) -> PathBuf {
        self.members[member].save()
    }

    /// Lets a member that was ended have stored nothing but this.
    pub fn put_back(&self, member: usize, saved: &Path) {
        self.members[member].put_back(saved);
    }

    /// Makes a member stand still.
    pub fn pause(&self, member: usize) {
        self.members[member].pause();
    }

    /// Makes a member go on.
    pub fn resume(&self, member: usize) {
        self.members[member].signal("CONT");
    }

    /// Runs `etcdctl` with these arguments and gives what it printed.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        self.ctl_with_input(arguments, "")
    }

    /// The same for a command that reads, such as `txn`.
    pub fn ctl_with_input(&self, arguments: &[&str], input: &str) -> String {
        let output = member::run(&mut self.ctl_command(arguments), input);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "etcdctl {arguments:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn ctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(member::program("ETCDCTL", "etcdctl"));
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(self.endpoints().join(","));
        if self.tls {
            let files = [("--cacert", "ca.pem"), ("--cert", "cert.pem"), ("--key", "key.pem")];
            for (flag, file) in files {
                command.arg(flag).arg(self.directory.join(file));
            }
        }
        command.args(arguments);
        command
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
