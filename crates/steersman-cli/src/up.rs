//! `steersman up`: a cluster, served until Ctrl-C.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Duration;

use steersman::Error;
use steersman_cluster::{Builder, Cluster, Controllers, Endpoint, NodeGroup, Storage};
use tokio::runtime::{self, Handle};
use tracing_subscriber::EnvFilter;

use crate::arguments::Up;
use crate::beside::Beside;
use crate::{audit, authentication, demo, failure, files, kubeconfig, node, scheduler, storage};

/// How long requests under way may take to end when the program is told to.
const GRACE: Duration = Duration::from_secs(10);

/// How many threads controllers, scheduler and nodes have at most, if there are as many processors.
const CONTROLLER_THREADS_MAX: usize = 4;

/// How many simulated nodes there are, if nothing is said.
const NODES: u16 = 3;
/// What their names begin with.
const PREFIX: &str = "node-";

/// Runs the command to its end.
pub(crate) fn run(up: Up) -> Result<(), String> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    files::allow_many();
    let cannot = |error: std::io::Error| format!("cannot start: {error}");
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(cannot)?;
    // Who is served must not wait for controllers, whatever is in the objects that they look at.
    let mut apart = runtime::Builder::new_multi_thread();
    apart.worker_threads(controller_threads()).thread_name("controllers").enable_all();
    let controllers = apart.build().map_err(cannot)?;
    let ended = runtime.block_on(serve(up, controllers.handle().clone()));
    for runtime in [controllers, runtime] {
        runtime.shutdown_timeout(Duration::from_millis(100));
    }
    ended
}

fn controller_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(CONTROLLER_THREADS_MAX)
}

/// The simulated nodes: so many, and those that a file lists.
fn with_nodes(builder: Builder, up: &Up) -> Result<Builder, String> {
    let Some(file) = &up.nodes_file else {
        return Ok(builder.nodes(usize::from(up.nodes.unwrap_or(NODES))));
    };
    let told = |why: String| format!("{}: {why}", file.display());
    let text = fs::read_to_string(file).map_err(|error| told(error.to_string()))?;
    let groups = NodeGroup::parse(&text).map_err(told)?;
    let nodes = up.nodes.unwrap_or_default();
    if nodes > 0 && groups.iter().any(|group| group.prefix == PREFIX) {
        return Err(told(format!("{PREFIX:?} is the prefix of those that --nodes asks for")));
    }
    Ok(builder.nodes(usize::from(nodes)).node_groups(groups))
}

async fn serve(up: Up, controllers: Handle) -> Result<(), String> {
    if up.demo && !up.runs_usual_controllers() {
        return Err("--demo needs all controllers; leave --controllers out".to_owned());
    }
    if up.demo && up.audit.audit_policy_file.is_some() {
        return Err("--demo audits for itself; leave --audit-policy-file out".to_owned());
    }
    let usual = up.runs_usual_controllers();
    let history = Duration::from_secs(up.history);
    let storage = storage::chosen(&up.storage, history)?;
    let builder = with_nodes(Cluster::builder(), &up)?.listen(up.listen);
    let builder = builder.pod_termination(Duration::from_secs_f64(up.pod_termination));
    let builder = builder.controllers(up.controllers).admission(up.admission.chosen()?);
    let builder = builder.authorization(up.authorization_mode).runtime_config(up.runtime_config);
    let builder = builder.authentication(authentication::chosen(&up.authentication)?);
    let seats = up.max_requests_inflight.saturating_add(up.max_mutating_requests_inflight);
    let builder = builder.requests_inflight_max(seats).controllers_on(controllers);
    let builder = builder.shutdown_delay(Duration::from_secs_f64(up.shutdown_delay_duration));
    let mut builder = builder.shutdown_grace(GRACE).history(history).storage(storage.clone());
    builder = builder.history_bytes(up.history_megabytes * 1024 * 1024);
    if let Some(encryption) = storage::encryption(&up.storage)? {
        builder = builder.encryption(encryption);
    }
    if let Some(auditing) = audit::chosen(&up.audit)? {
        builder = builder.audit(auditing);
    }
    if let Some(file) = &up.scheduler_config {
        let chosen = builder.scheduler(scheduler::configuration(file)?);
        builder = chosen.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if let Some(pool) = up.load_balancer_pool {
        builder = builder.load_balancer_pool(pool);
    }
    builder = builder.node_cidrs(up.controller_flags.node_cidrs()?);
    builder = builder.controller_settings(up.controller_flags.settings());
    builder = builder.service_ranges(up.service_cluster_ip_range);
    if let Some(address) = up.advertise_address {
        builder = builder.advertise(address);
    }
    if let Storage::Etcd(_) = storage {
        builder = builder.lease_duration(Duration::from_secs(up.storage.etcd.lease_duration));
    }
    let node_dir = up.node.node_dir.clone();
    let real = match up.runtime {
        Some(runtime) => Some(node::connect(runtime, up.node).await?),
        None => None,
    };
    let cluster = builder.start().await.map_err(|error| failure::of_start(&error))?;
    let endpoint = cluster.endpoint().ok_or("the cluster does not listen")?;
    let kubeconfig = kubeconfig::path(up.kubeconfig, endpoint.address.port());
    if let Err(error) = kubeconfig::write(&kubeconfig, &endpoint.kubeconfig) {
        // Without an orderly end, its parts would complain over this message.
        cluster.stop().await;
        return Err(error);
    }
    let real = real.map(|node| Beside::join(&cluster, node, node_dir));
    let controllers = (!usual).then_some(up.controllers);
    greet(&cluster, endpoint, &kubeconfig, &storage, controllers);
    if let Some(real) = &real {
        say!("\nPods that are bound to the node {} run in real containers.", real.name);
    }
    let ended = until_ended(&cluster, real.as_ref(), up.demo).await;
    say!("\nstopping");
    stop(cluster, real, &storage, ended.is_ok()).await;
    ended
}

/// Waits until somebody stops the program, or a part of it fails.
async fn until_ended(cluster: &Cluster, real: Option<&Beside>, demo: bool) -> Result<(), String> {
    let demonstration = async {
        if demo {
            demo::run(cluster).await.map_err(|error| format!("the demo failed: {error}"))?;
        }
        std::future::pending().await
    };
    tokio::select! {
        () = steersman::shutdown_signal() => Ok(()),
        failed = demonstration => failed,
        error = cluster.failed() => Err(format!("part of the cluster failed: {error}")),
        error = failed(real) => Err(format!("the real node failed: {error}")),
    }
}

/// Stops in order. Who asks for that while it goes on does not want to wait.
async fn stop(cluster: Cluster, real: Option<Beside>, storage: &Storage, was_asked: bool) {
    let stop = async {
        if let Some(real) = real {
            // Its Pods run on, unless nobody would know of them any more.
            if matches!(storage, Storage::Memory) {
                real.clear(&cluster).await;
            }
            real.running.stop().await;
        }
        cluster.stop().await;
    };
    let asked = async {
        if was_asked {
            std::future::pending::<()>().await; // who asks once more ends the process
        }
        steersman::shutdown_signal().await;
    };
    tokio::select! {
        () = stop => {}
        () = asked => {}
    }
}

/// Waits until the real node fails, if there is one.
async fn failed(real: Option<&Beside>) -> Error {
    match real {
        Some(real) => real.running.failed().await,
        None => std::future::pending().await,
    }
}

/// Says what was started, how long it took, and what to do with it.
fn greet(
    cluster: &Cluster,
    endpoint: &Endpoint,
    kubeconfig: &Path,
    storage: &Storage,
    controllers: Option<Controllers>,
) {
    say!("steersman {}, speaking Kubernetes v1.36\n", env!("CARGO_PKG_VERSION"));
    for (part, took) in cluster.timings() {
        say!("  {part:<12} {:>7.1} ms", took.as_secs_f64() * 1000.0);
    }
    let total: Duration = cluster.timings().iter().map(|(_, took)| *took).sum();
    say!("  {:<12} {:>7.1} ms\n", "ready", total.as_secs_f64() * 1000.0);
    say!("  address      {}", endpoint.url);
    say!("  kubeconfig   {}", kubeconfig.display());
    for (number, line) in storage::described(cluster, storage).iter().enumerate() {
        say!("  {:<12} {line}", if number == 0 { "store" } else { "" });
    }
    if let Some(controllers) = controllers {
        say!("  controllers  {controllers}");
    }
    say!();
    say!("Try, in another terminal:\n");
    say!("  export KUBECONFIG={}", kubeconfig.display());
    say!("  kubectl get nodes");
    say!("  kubectl create deployment web --image=nginx --replicas=3");
    say!("  kubectl get all -A");
    say!("  steersman token create --print-join-command   # for a real node\n");
    say!("Ctrl-C stops it.");
}
