//! The built-in controllers of a Kubernetes cluster.
//!
//! Each folder is one controller: `mod.rs` wires it, `plan.rs` decides (pure, the clock an
//! argument), `reconcile.rs` reads and writes. They use the public API of [`steersman`] and see
//! a cluster only through its client; they know nothing of API servers, stores or nodes, and
//! run against any Kubernetes cluster. Start with [`install`].

mod authority;
mod bootstrap_token;
mod cidr;
mod claims;
mod discovery;
mod disruption_target;
mod hash;
mod history;
mod intstr;
mod node;
mod pod;
mod pod_control;
mod pod_resource_claims;
mod pods_by_node;
mod pulse;
mod service;
mod wakes;

mod attach_detach;
mod bootstrap_signer;
mod certificate_approving;
mod certificate_cleaner;
mod certificate_signing;
mod clusterrole_aggregation;
mod cronjob;
mod daemonset;
mod deployment;
mod device_taint_eviction;
mod disruption;
mod endpoints;
mod endpointslice;
mod endpointslice_mirroring;
mod ephemeral_volume;
mod garbage_collector;
mod horizontal_pod_autoscaler;
mod job;
mod legacy_token_cleaner;
mod local_path_provisioner;
mod namespace;
mod node_ipam;
mod node_lifecycle;
mod persistentvolume_binder;
mod persistentvolume_expander;
mod pod_garbage_collector;
mod replicaset;
mod replicationcontroller;
mod resource_claim;
mod resourcequota;
mod root_ca;
mod service_cidr;
mod service_lb;
mod serviceaccount;
mod statefulset;
mod storage_version_garbage_collector;
mod storage_version_migrator;
mod taint_eviction;
mod token_cleaner;
mod token_secret;
mod ttl;
mod ttl_after_finished;
mod validatingadmissionpolicy_status;
mod volume_protection;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use steersman::cache::Form;
use steersman::events::EventForm;
use steersman::informer::CacheConfig;
use steersman::manager::Group;
use steersman::{Client, Controller, Manager, Metrics};

pub use authority::{Authority, CertificateOf, NoCertificate, TokenOf};
pub use cidr::{Cidr, NotACidr};
pub use horizontal_pod_autoscaler::AutoscalerSettings;
pub use local_path_provisioner::{
    PROVISIONER as LOCAL_PATH_PROVISIONER, provide_standard_class, standard_class,
};
pub use node_ipam::NodeCidrs;
pub use node_lifecycle::NodeLifecycleSettings;
pub use pulse::Pulse;

/// Every built-in controller: its name and the short name it had before, both as
/// kube-controller-manager or, where clouds come in, cloud-controller-manager has them; what is
/// newer has one name. `local-path-provisioner` is what clusters of kind and k3s have beside those.
/// Those of [`OFF_BY_DEFAULT`] are not among them. What works on an API that is served on request only
/// does nothing where it is not.
pub const NAMES: [(&str, &str); 44] = [
    ("deployment-controller", "deployment"),
    ("replicaset-controller", "replicaset"),
    ("statefulset-controller", "statefulset"),
    ("daemonset-controller", "daemonset"),
    ("replicationcontroller-controller", "replicationcontroller"),
    ("disruption-controller", "disruption"),
    ("namespace-controller", "namespace"),
    ("serviceaccount-controller", "serviceaccount"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    ("resourcequota-controller", "resourcequota"),
    ("job-controller", "job"),
    ("cronjob-controller", "cronjob"),
    ("ttl-after-finished-controller", "ttl-after-finished"),
    ("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    ("validatingadmissionpolicy-status-controller", "validatingadmissionpolicy-status-controller"),
    ("endpointslice-controller", "endpointslice"),
    ("endpoints-controller", "endpoint"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring"),
    ("service-cidr-controller", "service-cidr-controller"),
    ("service-lb-controller", "service"),
    ("persistentvolume-binder-controller", "persistentvolume-binder"),
    ("persistentvolume-expander-controller", "persistentvolume-expander"),
    ("persistentvolume-attach-detach-controller", "attachdetach"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection"),
    ("persistentvolume-protection-controller", "pv-protection"),
    ("volumeattributesclass-protection-controller", "volumeattributesclass-protection-controller"),
    ("ephemeral-volume-controller", "ephemeral-volume"),
    ("local-path-provisioner", "local-path"),
    ("node-ipam-controller", "nodeipam"),
    ("node-lifecycle-controller", "nodelifecycle"),
    ("taint-eviction-controller", "taint-eviction-controller"),
    ("pod-garbage-collector-controller", "podgc"),
    ("ttl-controller", "ttl"),
    ("garbage-collector-controller", "garbagecollector"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("certificatesigningrequest-signing-controller", "csrsigning"),
    ("serviceaccount-token-controller", "serviceaccount-token"),
    ("certificatesigningrequest-approving-controller", "csrapproving"),
    ("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    (resource_claim::NAME, "resource-claim-controller"),
    (device_taint_eviction::NAME, device_taint_eviction::NAME),
    (storage_version_migrator::NAME, "svm"),
    (storage_version_garbage_collector::NAME, "storage-version-gc"),
];

/// The controllers that run only if they are asked for by name, as in Kubernetes.
pub const OFF_BY_DEFAULT: [(&str, &str); 2] =
    [(bootstrap_signer::NAME, "bootstrapsigner"), (token_cleaner::NAME, "tokencleaner")];

/// Whether the controller of this name runs unless somebody says otherwise.
pub fn is_on_by_default(name: &str) -> bool {
    OFF_BY_DEFAULT.iter().all(|(off, _)| *off != name)
}

/// What controllers can be told by flags of kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerSettings {
    /// How long nodes may be silent, and how fast they are given up.
    pub node_lifecycle: NodeLifecycleSettings,
    /// How many Pods that have ended may stay, as by `--terminated-pod-gc-threshold`; all if nothing
    /// is said.
    pub terminated_pod_threshold: Option<usize>,
    /// How targets are scaled.
    pub autoscaler: AutoscalerSettings,
    /// How long certificates that are asked for live at most, as by `--cluster-signing-duration`.
    pub certificate_lifetime: Duration,
}

impl Default for ControllerSettings {
    /// Those of Kubernetes.
    fn default() -> Self {
        Self {
            node_lifecycle: NodeLifecycleSettings::default(),
            terminated_pod_threshold: Some(pod_garbage_collector::TERMINATED_POD_THRESHOLD),
            autoscaler: AutoscalerSettings::default(),
            certificate_lifetime: certificate_signing::LIFETIME,
        }
    }
}

/// Whether a version of a group is served.
pub type Serves<'a> = &'a dyn Fn(&str, &str) -> bool;

/// What controllers have to be told because no client shows it, and which of them run.
pub struct Installation<'a> {
    /// The certificates by which Pods know the API server, in PEM; without them, nobody publishes
    /// any.
    pub root_ca: Option<&'a str>,
    /// Who has the keys of the cluster; without them, nobody signs certificates and tokens.
    pub authority: Option<Arc<dyn Authority>>,
    /// Where Services of the type `LoadBalancer` get their addresses from; without it, they wait for
    /// somebody else.
    pub load_balancer_pool: Option<Cidr>,
    /// Where nodes that have none get ranges for their Pods from, one of each family; if there are
    /// none, from nobody.
    pub node_cidrs: &'a [NodeCidrs],
    /// Who knows of nodes that they are alive, though neither Lease nor status shows it.
    pub pulse: Option<Arc<dyn Pulse>>,
    /// What else they are told.
    pub settings: ControllerSettings,
    /// Whether this version of a group is served, of those that Kubernetes serves on request only.
    pub serves: Serves<'a>,
    /// Whether the controller of this name, one of [`NAMES`] or [`OFF_BY_DEFAULT`], runs.
    pub runs: &'a dyn Fn(&str) -> bool,
}

/// How many Pods stay decoded. Who owns Pods reads all of them at each change of one, and of more
/// than stay decoded, most would have to be decoded each time.
const PODS_DECODED: usize = 16_384;

/// Keeps out of a manager's caches what no built-in controller reads: for a manager that runs
/// nothing else.
#[must_use]
pub fn restrict_caches(manager: Manager) -> Manager {
    let form = Form::Compact { recent: PODS_DECODED };
    let manager = manager
        .cache::<Pod>(|pods| pods.form(form).strip_managed_fields())
        .cache::<Deployment>(CacheConfig::strip_managed_fields)
        .cache::<ReplicaSet>(CacheConfig::strip_managed_fields)
        .cache::<StatefulSet>(CacheConfig::strip_managed_fields)
        .cache::<DaemonSet>(CacheConfig::strip_managed_fields)
        .cache::<Job>(CacheConfig::strip_managed_fields)
        .cache::<CronJob>(CacheConfig::strip_managed_fields);
    token_secret::restrict_cache(root_ca::restrict_cache(node_lifecycle::restrict_cache(manager)))
}

/// Every built-in controller that reconciles one kind and needs to be told nothing. What they
/// count, nobody reads.
pub fn all() -> Vec<Controller> {
    all_serving(&|_, _| false)
}

/// The same for a cluster that also serves these groups and versions.
pub fn all_serving(serves: Serves<'_>) -> Vec<Controller> {
    let all = counting(&Metrics::default(), None, ControllerSettings::default(), serves);
    all.into_iter().map(as_upstream).collect()
}

/// The field manager of all controllers of kube-controller-manager: the name of their program.
const FIELD_MANAGER: &str = "kube-controller-manager";

/// The collector, by the name of its client: it is no controller of one kind.
const COLLECTOR: &str = "garbage-collector";

/// A controller whose Events and managed fields read like those of kube-controller-manager, all of whose
/// controllers record by client-go's `tools/record` and write under the name of the program. Those that
/// Kubernetes has elsewhere write under their own.
fn as_upstream(controller: Controller) -> Controller {
    let elsewhere = [local_path_provisioner::NAME, service_lb::NAME];
    let is_elsewhere = elsewhere.contains(&chosen_as(controller.name()));
    let controller = controller.event_form(EventForm::Counted);
    if is_elsewhere { controller } else { controller.field_manager(FIELD_MANAGER) }
}

/// The same, which count as Kubernetes' controllers do.
fn counting(
    metrics: &Metrics,
    pulse: Option<Arc<dyn Pulse>>,
    settings: ControllerSettings,
    serves: Serves<'_>,
) -> Vec<Controller> {
    let ended_max = settings.terminated_pod_threshold.unwrap_or(usize::MAX);
    let [budgets, covered] = disruption::controllers();
    let [provisioner, deleter, resizer] = local_path_provisioner::controllers();
    let [claims, volumes, classes] = volume_protection::controllers();
    let [attachments, attacher] = attach_detach::controllers(metrics);
    let [pod_claims, resource_claims] = resource_claim::controllers(metrics);
    let mut all = on_request(metrics, serves);
    all.extend([
        deployment::controller(),
        replicaset::controller(metrics),
        statefulset::controller(),
        daemonset::controller(),
        replicationcontroller::controller(metrics),
        budgets,
        covered,
        namespace::controller(),
        serviceaccount::controller(),
        clusterrole_aggregation::controller(),
        resourcequota::controller(),
        job::controller(metrics),
        job::orphans(metrics),
        cronjob::controller(metrics),
        ttl_after_finished::controller(metrics),
        horizontal_pod_autoscaler::controller(metrics, settings.autoscaler),
        validatingadmissionpolicy_status::controller(),
        endpointslice::controller(metrics),
        endpoints::controller(),
        endpoints::leftovers(),
        endpointslice_mirroring::controller(metrics),
        service_cidr::controller(),
        persistentvolume_binder::claims(metrics),
        persistentvolume_binder::volumes(metrics),
        persistentvolume_expander::controller(),
        attachments,
        attacher,
        claims,
        volumes,
        classes,
        ephemeral_volume::controller(metrics),
        provisioner,
        deleter,
        resizer,
        node_lifecycle::controller(metrics, pulse, settings.node_lifecycle),
        taint_eviction::controller(metrics),
        pod_garbage_collector::controller(metrics, ended_max),
        ttl::controller(),
        certificate_approving::controller(),
        certificate_cleaner::controller(),
        legacy_token_cleaner::controller(),
        pod_claims,
        resource_claims,
    ]);
    all
}

/// Those that work on what is served on request only, and what they are where it is not.
fn on_request(metrics: &Metrics, serves: Serves<'_>) -> Vec<Controller> {
    let mut all = match serves("resource.k8s.io", "v1beta2") {
        true => device_taint_eviction::with_rules(metrics).into(),
        false => vec![device_taint_eviction::controller(metrics)],
    };
    if serves("storagemigration.k8s.io", "v1beta1") {
        all.extend(storage_version_migrator::controllers());
    }
    if serves("internal.apiserver.k8s.io", "v1alpha1") {
        all.push(storage_version_garbage_collector::controller());
    }
    all
}

/// The controller `service-lb-controller`, which gives Services of the type `LoadBalancer` addresses of
/// this pool.
pub fn load_balancer(pool: Cidr) -> Controller {
    as_upstream(service_lb::controller(pool))
}

/// The controller `node-ipam-controller`, which gives nodes parts of ranges, one of each.
pub fn node_ipam(cidrs: &[NodeCidrs]) -> Controller {
    as_upstream(node_ipam::controller(&Metrics::default(), cidrs))
}

/// The name under which a controller is chosen: some have parts with queues of their own.
fn chosen_as(name: &str) -> &str {
    match name {
        job::ORPHANS => "job-controller",
        disruption::PODS => "disruption-controller",
        endpoints::LEFTOVERS => "endpoints-controller",
        attach_detach::ATTACHER => attach_detach::NAME,
        resource_claim::CLAIMS => resource_claim::NAME,
        device_taint_eviction::RULES => device_taint_eviction::NAME,
        storage_version_migrator::CHECKPOINTS | storage_version_migrator::RUNNER => {
            storage_version_migrator::NAME
        }
        persistentvolume_binder::VOLUMES => "persistentvolume-binder-controller",
        local_path_provisioner::DELETER | local_path_provisioner::RESIZER => {
            local_path_provisioner::NAME
        }
        name => name,
    }
}

/// Adds every built-in controller that needs to be told nothing to a manager, but those that are
/// off by default.
#[must_use]
pub fn install(manager: Manager) -> Manager {
    let installation = Installation {
        root_ca: None,
        authority: None,
        load_balancer_pool: None,
        node_cidrs: &[],
        pulse: None,
        settings: ControllerSettings::default(),
        serves: &|_, _| false,
        runs: &is_on_by_default,
    };
    install_with(manager, &installation)
}

/// Adds built-in controllers to a manager, including the garbage collector, which follows all
/// kinds at once and is therefore no [`Controller`].
#[must_use]
pub fn install_with(manager: Manager, installation: &Installation<'_>) -> Manager {
    let Installation { root_ca, authority, load_balancer_pool, node_cidrs, .. } = installation;
    let Installation { pulse, settings, serves, runs, .. } = installation;
    let publisher = root_ca.map(|pem| root_ca::controller(pem, manager.metrics()));
    let lifetime = settings.certificate_lifetime;
    let signing = authority.clone().map(|keys| certificate_signing::controller(keys, lifetime));
    let tokens = authority.clone().map(|keys| token_secret::controller(keys, *root_ca));
    let balancer = load_balancer_pool.map(load_balancer);
    let gives_ranges = !node_cidrs.is_empty();
    let ranges = gives_ranges.then(|| node_ipam::controller(manager.metrics(), node_cidrs));
    let told = publisher.into_iter().chain(signing).chain(tokens).chain(balancer).chain(ranges);
    let counting = counting(manager.metrics(), pulse.clone(), *settings, serves);
    let chosen = counting.into_iter().chain(told).filter(|it| runs(chosen_as(it.name())));
    let manager = chosen.map(as_upstream).fold(manager, Manager::with);
    let bootstrap = [bootstrap_signer::controller(), token_cleaner::controller()];
    let bootstrap = bootstrap.into_iter().filter(|it| runs(it.name())).map(as_upstream);
    let manager = bootstrap.fold(manager, bootstrap_token::install);
    if !runs("garbage-collector-controller") {
        return manager;
    }
    let group = Group::LeaderElected;
    let own = Client::new(manager.client_of(COLLECTOR), FIELD_MANAGER);
    let recorder = manager.recorder().form(EventForm::Counted).through(own);
    let metrics = manager.metrics().clone();
    manager.with_runnable_in(group, COLLECTOR, move |client, shutdown| {
        let client = client.with_field_manager(FIELD_MANAGER);
        garbage_collector::run(client, recorder, metrics, shutdown)
    })
}
