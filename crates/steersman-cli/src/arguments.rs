//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use steersman_cluster::{
    AdmissionConfiguration, AuthorizationMode, Cidr, Controllers, HISTORY_BYTES, PluginSelection,
    RuntimeConfig, ServiceRanges,
};

use crate::authentication_flags::AuthenticationFlags;
use crate::controller_flags::ControllerFlags;
use crate::node_flags::{NodeCommand, NodeFlags, Runtime};
use crate::token::TokenCommand;

/// The controllers that run unless others are chosen: those of Kubernetes, and the two that kubeadm
/// asks for beside them so that nodes can join.
const CONTROLLERS: &str = "*,bootstrap-signer-controller,token-cleaner-controller";

/// A Kubernetes-compatible cluster in one process, for people who write and test controllers.
#[derive(Parser)]
#[command(name = "steersman", version, subcommand_required = true, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// What the program is to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start a cluster and serve it until Ctrl-C.
    ///
    /// What the cluster holds is kept on disk, in the user's data directory unless --data-dir
    /// names another, and is there again at the next start: objects, the running Pods of simulated
    /// nodes, the certificates behind the kubeconfig, tokens.
    Up(Box<Up>),
    /// Save a cluster to a file, make a new one of it, or look into it.
    Snapshot(Snapshot),
    /// Put the load that a file describes on any cluster, and tell how it bore it.
    ///
    /// The file says how many namespaces and objects there are and what happens to them, how often
    /// and for how long. Everything is made in namespaces of its own, which are removed at the end.
    Load(Load),
    /// Schedule the Pods of any cluster, in place of kube-scheduler or beside it.
    ///
    /// Several of them elect one that does, by the Lease kube-system/kube-scheduler.
    Scheduler(SchedulerCommand),
    /// Be a node of any cluster: run Pods in real containers on this machine.
    ///
    /// Needs root, and a container runtime that speaks CRI, such as containerd. Pods run on when
    /// this stops, and are found again when it starts. It acts as the user of a kubeconfig, or joins
    /// the cluster with a bootstrap token.
    Node(Box<NodeCommand>),
    /// Let machines join a cluster as nodes.
    Token(TokenCommand),
}

/// What `steersman scheduler` is told.
#[derive(Args)]
pub(crate) struct SchedulerCommand {
    /// Where the cluster is [default: as kubectl finds it].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A KubeSchedulerConfiguration: profiles, and what plug-ins are told.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The Lease that schedulers compete for, as NAMESPACE/NAME; those that care for other Pods need
    /// another one.
    #[arg(long, value_name = "LEASE", default_value = "kube-system/kube-scheduler")]
    pub(crate) lease: String,
    /// Where to serve /metrics, /healthz and /readyz, over HTTP; port 0 takes any free port.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

/// What `steersman up` is told.
#[derive(Args)]
pub(crate) struct Up {
    /// Where to serve the API, over HTTPS; port 0 takes any free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443")]
    pub(crate) listen: SocketAddr,
    /// The address at which others reach this server, if it is not that of --listen; the
    /// kubeconfig and the endpoints of the service `kubernetes` name it. Servers on several
    /// machines that listen on 0.0.0.0 and share an etcd need one each.
    #[arg(long, value_name = "ADDR", value_parser = reachable)]
    pub(crate) advertise_address: Option<IpAddr>,
    /// Where to write the kubeconfig [default: the user's data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How many simulated nodes the cluster has [default: 3, and none with --nodes-file].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(crate) nodes: Option<u16>,
    /// More simulated nodes: a list of groups in YAML, with count, prefix, capacity, labels, zones,
    /// taints, failures and usage.
    #[arg(long, value_name = "FILE")]
    pub(crate) nodes_file: Option<PathBuf>,
    /// Also be a node: run Pods in real containers on this machine, beside the simulated nodes.
    /// Needs root and a running containerd.
    #[arg(long, value_name = "containerd[=SOCKET]")]
    pub(crate) runtime: Option<Runtime>,
    /// How many seconds the containers of a simulated Pod take to end when it is deleted; at most
    /// its grace period.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) pod_termination: f64,
    /// Which controllers run: `*` for all, a name for one, `-NAME` for all the others if there is
    /// a `*`, `none` for none. The names are those of kube-controller-manager; `kube-scheduler`
    /// and `metrics-server` are among them.
    #[arg(long, value_name = "LIST", default_value = CONTROLLERS)]
    pub(crate) controllers: Controllers,
    /// A KubeSchedulerConfiguration for the scheduler: profiles, and what plug-ins are told.
    #[arg(long, value_name = "FILE")]
    pub(crate) scheduler_config: Option<PathBuf>,
    /// Where Services of the type LoadBalancer get their addresses from, such as 10.200.0.0/24.
    /// Nothing listens there, but what waits for an address gets one. Without it they wait for
    /// another program.
    #[arg(long, value_name = "CIDR")]
    pub(crate) load_balancer_pool: Option<Cidr>,
    /// Where Services get their cluster addresses from: a range, or one of each family, such as
    /// 10.96.0.0/12,fd00:10:96::/112. Simulated nodes and their Pods have addresses of the same
    /// families.
    #[arg(long, value_name = "CIDR,CIDR", default_value = "10.96.0.0/12")]
    pub(crate) service_cluster_ip_range: ServiceRanges,
    /// Serve what Kubernetes serves on request only, such as resource.k8s.io/v1beta2=true; api/beta
    /// stands for all of it. The controllers that it needs run without a feature gate.
    #[arg(long, value_name = "KEY=BOOL,...", default_value = "", hide_default_value = true)]
    pub(crate) runtime_config: RuntimeConfig,
    #[command(flatten)]
    pub(crate) admission: AdmissionFlags,
    /// How many seconds of history watches and paged lists can go back to.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) history: u64,
    /// How many megabytes of history are kept in memory at most, however young it is; watches and
    /// paged lists that need more begin again.
    #[arg(long, value_name = "MB", default_value_t = HISTORY_BYTES >> 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) history_megabytes: u64,
    /// For how many seconds everything is served as before when this is told to stop, while /readyz
    /// fails already, so that clients go elsewhere.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = duration)]
    pub(crate) shutdown_delay_duration: f64,
    /// How many requests that only read are served at once. Together with
    /// --max-mutating-requests-inflight these are the seats that priority levels share.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_requests_inflight: u32,
    /// How many requests that write are served at once.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) max_mutating_requests_inflight: u32,
    /// Run the AppService controller and show an AppService becoming running Pods: who writes
    /// what to the API server, in order, and why each controller looked.
    #[arg(long)]
    pub(crate) demo: bool,
    #[command(flatten, next_help_heading = "Authentication")]
    pub(crate) authentication: AuthenticationFlags,
    /// How requests are authorised: Node,RBAC as kubeadm has it, RBAC, or AlwaysAllow.
    #[arg(
        long,
        value_name = "MODES",
        default_value = "Node,RBAC",
        help_heading = "Authentication"
    )]
    pub(crate) authorization_mode: AuthorizationMode,
    #[command(flatten, next_help_heading = "Real node")]
    pub(crate) node: NodeFlags,
    #[command(flatten, next_help_heading = "Controllers")]
    pub(crate) controller_flags: ControllerFlags,
    #[command(flatten, next_help_heading = "Auditing")]
    pub(crate) audit: AuditFlags,
    #[command(flatten, next_help_heading = "Storage")]
    pub(crate) storage: StorageFlags,
}

impl Up {
    /// Whether the controllers run that usually do.
    pub(crate) fn runs_usual_controllers(&self) -> bool {
        CONTROLLERS.parse() == Ok(self.controllers)
    }
}

/// What `steersman load` is told.
#[derive(Args)]
pub(crate) struct Load {
    /// The scenario, in YAML.
    pub(crate) file: PathBuf,
    /// Which cluster [default: as kubectl finds it, by KUBECONFIG or in the home directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Where to write a page with plots.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Where to write what was measured.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json: Option<PathBuf>,
    /// What was measured before, as --json wrote it, to be shown beside it in the report.
    #[arg(long, value_name = "FILE.json", requires = "report")]
    pub(crate) beside: Option<PathBuf>,
    /// Leave what was made in the cluster.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Which admission plug-ins are on.
#[derive(Args)]
pub(crate) struct AdmissionFlags {
    /// Admission plug-ins to switch on beside those that Kubernetes has on by default, by its
    /// names. ServiceAccount is on if serviceaccount-controller runs.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plug-ins to switch off although they are on by default.
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// An AdmissionConfiguration (apiserver.config.k8s.io/v1): what plug-ins are told beside being
    /// on, such as the defaults of PodSecurity or what ResourceQuota limits.
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
}

impl AdmissionFlags {
    /// The plug-ins that were chosen.
    pub(crate) fn chosen(&self) -> Result<PluginSelection, String> {
        let on = self.enable_admission_plugins.iter().map(String::as_str);
        let off = self.disable_admission_plugins.iter().map(String::as_str);
        let selection = PluginSelection::new(on, off);
        let selection = selection.map_err(|why| format!("{why}; see `steersman up --help`"))?;
        let read = self.admission_control_config_file.as_deref().map(AdmissionConfiguration::read);
        let configuration = read.transpose().map_err(|why| why.to_string())?.unwrap_or_default();
        selection.configured(configuration).map_err(|why| why.to_string())
    }
}

/// What is audited, and who is told: kube-apiserver's flags and defaults.
#[derive(Args)]
pub(crate) struct AuditFlags {
    /// Which requests are audited and how much of them: a Policy (audit.k8s.io/v1).
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,
    /// Write audit events to this file, as lines of JSON; `-` is the standard output.
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_log_path: Option<PathBuf>,
    /// How many days a log file stays after it was put aside; 0 is for ever.
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub(crate) audit_log_maxage: u32,
    /// How many such files stay; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) audit_log_maxbackup: usize,
    /// How many megabytes a log file has when it is put aside.
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub(crate) audit_log_maxsize: u32,
    /// The format of the log.
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = ["json"])]
    pub(crate) audit_log_format: String,
    /// Whether events that are too large for the log lose their bodies.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) audit_log_truncate_enabled: bool,
    /// How many bytes an event in the log may have.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub(crate) audit_log_truncate_max_event_size: usize,
    /// How many bytes a batch of events for the log may have.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760)]
    pub(crate) audit_log_truncate_max_batch_size: usize,
    /// Send audit events to the server of this kubeconfig, in batches.
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    pub(crate) audit_webhook_config_file: Option<PathBuf>,
    /// How many events wait for a batch; more are lost.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) audit_webhook_batch_buffer_size: usize,
    /// How many events a batch has.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) audit_webhook_batch_max_size: usize,
    /// How many seconds a batch waits for more events.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) audit_webhook_batch_max_wait: f64,
    /// How many batches are sent in a second, on average.
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub(crate) audit_webhook_batch_throttle_qps: f64,
    /// How many batches may be sent at once after a while without any.
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(crate) audit_webhook_batch_throttle_burst: u32,
    /// How many seconds to wait before a batch that failed is sent again.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub(crate) audit_webhook_initial_backoff: f64,
    /// Whether events that are too large for the webhook lose their bodies.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, action = clap::ArgAction::Set)]
    pub(crate) audit_webhook_truncate_enabled: bool,
    /// How many bytes an event for the webhook may have.
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub(crate) audit_webhook_truncate_max_event_size: usize,
    /// How many bytes a batch of events for the webhook may have, more or less.
    #[arg(long, value_name = "BYTES", default_value_t = 10_485_760)]
    pub(crate) audit_webhook_truncate_max_batch_size: usize,
}

/// Where the cluster is kept.
#[derive(Args)]
pub(crate) struct StorageFlags {
    /// Keep the cluster in this directory, which is made if it is not there. One process at a
    /// time can use it [default: $XDG_DATA_HOME/steersman/data or
    /// ~/.local/share/steersman/data].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["memory", "etcd"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// Whether every write is on disk before it is acknowledged. `off` is faster, for clusters
    /// that may be thrown away: a power failure can damage them, the end of the program cannot.
    #[arg(long, value_enum, value_name = "on|off", default_value = "on", hide_possible_values = true, conflicts_with_all = ["memory", "etcd"])]
    pub(crate) sync: Sync,
    /// Keep the cluster in memory only: it is gone when this stops.
    #[arg(long, conflicts_with = "etcd")]
    pub(crate) memory: bool,
    /// An EncryptionConfiguration (apiserver.config.k8s.io/v1): which resources are encrypted on
    /// disk or in etcd, and with which keys. The providers aesgcm and identity are known.
    #[arg(long, value_name = "FILE", conflicts_with = "memory")]
    pub(crate) encryption_provider_config: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Storage on etcd")]
    pub(crate) etcd: EtcdFlags,
}

/// How etcd is reached.
#[derive(Args)]
pub(crate) struct EtcdFlags {
    /// Keep the cluster in etcd (3.4 or later) at these addresses. Several `steersman up` can
    /// share one etcd: all serve the API, and one of them is elected to run controllers,
    /// scheduler and nodes.
    #[arg(long = "etcd", id = "etcd", value_name = "URL,URL", value_delimiter = ',')]
    pub(crate) endpoints: Vec<String>,
    /// Who signed the certificates of etcd, as a PEM file; https needs it.
    #[arg(long = "etcd-cafile", value_name = "FILE", requires = "etcd")]
    pub(crate) cafile: Option<PathBuf>,
    /// The certificate that is shown to etcd, as a PEM file.
    #[arg(long = "etcd-certfile", value_name = "FILE", requires = "etcd", requires = "keyfile")]
    pub(crate) certfile: Option<PathBuf>,
    /// The key of that certificate, as a PEM file.
    #[arg(long = "etcd-keyfile", value_name = "FILE", requires = "etcd", requires = "certfile")]
    pub(crate) keyfile: Option<PathBuf>,
    /// The user of etcd to act as. The password comes from --etcd-password-file or from the
    /// environment's STEERSMAN_ETCD_PASSWORD.
    #[arg(long = "etcd-user", value_name = "NAME", requires = "etcd")]
    pub(crate) user: Option<String>,
    /// A file that holds that user's password.
    #[arg(long = "etcd-password-file", value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    /// How long the servers that share an etcd wait for the one that runs the controllers before
    /// another takes over. One that is stopped with Ctrl-C hands over within two.
    #[arg(long = "leader-elect-lease-duration", value_name = "SECONDS", default_value_t = 15, requires = "etcd", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) lease_duration: u64,
}

/// Whether writes wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sync {
    On,
    Off,
}

/// What `steersman snapshot` is told.
#[derive(Args)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    pub(crate) action: SnapshotAction,
    /// Taken only to say what to do instead.
    #[arg(long, global = true, hide = true, num_args = 0..=1, default_missing_value = "")]
    pub(crate) etcd: Option<String>,
}

/// What to do with a snapshot.
#[derive(Subcommand)]
pub(crate) enum SnapshotAction {
    /// Save all that a cluster holds to a file, also while `steersman up` serves it.
    Save {
        /// The file to write. One of that name is replaced once the snapshot is whole.
        file: PathBuf,
        /// Where the cluster is kept [default: as of `steersman up`].
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// Make a data directory of a snapshot, for `steersman up --data-dir DIR`.
    ///
    /// Clients of the cluster that was saved list again when they meet the new one.
    Restore {
        /// The file that `steersman snapshot save` wrote.
        file: PathBuf,
        /// A new or empty directory [default: as of `steersman up`].
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// How far resource versions move on, so that none is given a second time that was given
        /// after the snapshot. More than were written since.
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        bump_revision: u64,
    },
    /// Verify a snapshot and say what it holds.
    Status {
        /// The file that `steersman snapshot save` wrote.
        file: PathBuf,
        /// How to say it.
        #[arg(short, long, value_enum, default_value = "text")]
        output: Output,
    },
}

/// How a command says what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// An address that somebody can connect to.
fn reachable(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|error| format!("{error}"))?;
    match address.is_unspecified() {
        true => Err("nobody can connect to every address".to_owned()),
        false => Ok(address),
    }
}

/// A time that can pass.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match (0.0..=86_400.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("it is not between 0 and 86400".to_owned()),
    }
}

/// The same, with or without the unit that Kubernetes wants.
fn duration(text: &str) -> Result<f64, String> {
    seconds(text.strip_suffix('s').unwrap_or(text))
}

/// Reads the command line. Help and version are printed here and end the program.
pub(crate) fn parse() -> Result<Command, String> {
    match CommandLine::try_parse() {
        Ok(CommandLine { command }) => Ok(command),
        Err(error) if error.use_stderr() && std::env::args().len() > 1 => Err(one_line(&error)),
        Err(error) => error.exit(),
    }
}

/// The first paragraph of what clap has to say, in one line, and where to read more.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let first = first.join(" ");
    let first = first.strip_prefix("error: ").unwrap_or(&first);
    let command = std::env::args().nth(1).filter(|word| ["up", "snapshot"].contains(&&**word));
    let command = command.map_or_else(String::new, |command| format!(" {command}"));
    format!("{first}; see `steersman{command} --help`")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn refused(line: &str) -> String {
        let Err(error) = CommandLine::try_parse_from(line.split(' ')) else {
            panic!("{line} is taken");
        };
        one_line(&error)
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn controllers_are_chosen_by_name() {
        let chosen = |line: &str| match CommandLine::try_parse_from(line.split(' ')) {
            Ok(CommandLine { command: Command::Up(up) }) => up.controllers.to_string(),
            _ => panic!("{line} is refused"),
        };
        assert_eq!(chosen("steersman up"), CONTROLLERS);
        assert_eq!(chosen("steersman up --controllers *"), "*");
        assert_eq!(chosen("steersman up --controllers none"), "none");
        let left = chosen("steersman up --controllers=*,-deployment-controller,-replicaset");
        let left: Vec<&str> = left.split(',').collect();
        for out in ["deployment-controller", "replicaset-controller"] {
            assert!(!left.contains(&out), "{out} in {left:?}");
        }
        for kept in ["garbage-collector-controller", "statefulset-controller", "kube-scheduler"] {
            assert!(left.contains(&kept), "{kept} not in {left:?}");
        }
        let text = refused("steersman up --controllers=*,-nonsense");
        for part in ["--controllers", "\"nonsense\"", "garbage-collector-controller", "*"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn a_container_runtime_is_named_with_or_without_its_socket() {
        let chosen = |line: &str| match CommandLine::try_parse_from(line.split(' ')) {
            Ok(CommandLine { command: Command::Up(up) }) => up.runtime.map(|it| it.socket),
            _ => panic!("{line} is refused"),
        };
        assert_eq!(chosen("steersman up"), None);
        let usual = Some(PathBuf::from("/run/containerd/containerd.sock"));
        assert_eq!(chosen("steersman up --runtime containerd"), usual);
        let own = Some(PathBuf::from("/tmp/c.sock"));
        assert_eq!(chosen("steersman up --runtime containerd=/tmp/c.sock"), own);
        for line in ["--runtime docker", "--runtime containerd=relative"] {
            let text = refused(&format!("steersman up {line}"));
            assert!(text.contains("--runtime"), "{text}");
        }
    }

    #[test]
    fn plug_ins_are_switched_by_name_with_commas_or_again() {
        let chosen = |line: &str| match CommandLine::try_parse_from(line.split(' ')) {
            Ok(CommandLine { command: Command::Up(up) }) => up.admission.chosen(),
            _ => panic!("{line} is refused"),
        };
        let selection = PluginSelection::new(["AlwaysPullImages", "AlwaysDeny"], ["Priority"]);
        let selection = selection.map_err(|why| why.to_string());
        let enable = "--enable-admission-plugins";
        let disable = "--disable-admission-plugins=Priority";
        for enabled in [
            format!("{enable}=AlwaysPullImages,AlwaysDeny"),
            format!("{enable} AlwaysPullImages {enable} AlwaysDeny"),
        ] {
            assert_eq!(chosen(&format!("steersman up {enabled} {disable}")), selection);
        }
        assert_eq!(chosen("steersman up"), Ok(PluginSelection::default()));
        let why = chosen(&format!("steersman up {enable} PodNode")).unwrap_err();
        assert!(why.starts_with("enable-admission-plugins plugin \"PodNode\" is unknown"), "{why}");
        let why = chosen(&format!("steersman up {enable} Priority {disable}")).unwrap_err();
        assert!(why.contains("overlapped"), "{why}");
    }

    #[test]
    fn stores_that_exclude_each_other_are_refused_by_name() {
        for (line, flags) in [
            ("steersman up --memory --data-dir /d", ["--memory", "--data-dir"]),
            ("steersman up --memory --etcd http://a", ["--memory", "--etcd"]),
            ("steersman up --data-dir /d --etcd http://a", ["--data-dir", "--etcd"]),
            ("steersman up --sync=off --memory", ["--sync", "--memory"]),
            ("steersman up --sync=on --etcd http://a", ["--sync", "--etcd"]),
            ("steersman up --etcd-cafile /f", ["not provided", "--etcd <"]),
            ("steersman up --etcd http://a --etcd-certfile /f", ["not provided", "--etcd-keyfile"]),
            ("steersman up --etcd http://a --etcd-password-file /f", ["provided", "--etcd-user"]),
            ("steersman up --leader-elect-lease-duration 3", ["not provided", "--etcd <"]),
        ] {
            let text = refused(line);
            assert!(flags.iter().all(|flag| text.contains(flag)), "{line}: {text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
}
