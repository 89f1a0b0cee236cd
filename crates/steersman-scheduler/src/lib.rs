//! Assigns Pods to Nodes, as Kubernetes' scheduler does.
//!
//! A Pod without a node waits in the [`queue`]. It is taken from there, one after another, and passes
//! the plug-ins of its [profile](framework::Profile): some say which nodes could run it, some which of
//! them should, some do what has to be done before it is bound, and one binds it. The [`cache`] knows
//! what each node has and what is taken of it, by Pods that are bound or will be. A Pod that fits
//! nowhere is told so, others may have to go for it, and it is tried again when something happens that
//! can help it. The [`scheduler`] is what connects these with a cluster, which it sees only through its
//! client; it knows nothing of API servers, stores or node agents.
//!
//! Whoever wants a say in it writes a [`framework::Plugin`]:
//! `Scheduler::new().with(MyPlugin).install(manager)`.

mod metrics;
mod names;

pub mod framework;

mod plugins;

mod cache;
mod queue;

mod config;
mod extender;

mod scheduler;
#[cfg(test)]
mod testing;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steersman::events::EventForm;
use steersman::manager::Group;
use steersman::{Client, Manager};

pub use config::{Configuration, ConfigurationError};
pub use framework::{HostPort, Plugin};
pub use names::{PART, SCHEDULER_NAME};
pub use scheduler::WaitingPods;

use metrics::SchedulerMetrics;
use plugins::Handle;
use scheduler::Parts;

/// A scheduler that is not running yet.
///
/// ```
/// # use steersman::Manager;
/// # use steersman_scheduler::framework::{Cycle, NodeInfo, Plugin};
/// # use steersman_scheduler::{Configuration, ConfigurationError, Scheduler};
/// struct RatherNew;
///
/// impl Plugin for RatherNew {
///     fn name(&self) -> &'static str {
///         "RatherNew"
///     }
///
///     fn score(&self, _: &Cycle<'_>, node: &NodeInfo) -> i64 {
///         if node.labels().contains_key("new") { 100 } else { 0 }
///     }
/// }
///
/// # fn install(manager: Manager) -> Result<Manager, ConfigurationError> {
/// let configuration = Configuration::default().named("my-scheduler");
/// Scheduler::configured(configuration).with(RatherNew).install(manager)
/// # }
/// ```
#[derive(Default)]
#[must_use = "a scheduler does nothing until it is installed"]
pub struct Scheduler {
    configuration: Configuration,
    plugins: Vec<Arc<dyn Plugin>>,
    waiting: WaitingPods,
}

impl Scheduler {
    /// With Kubernetes' plug-ins, for the Pods that name no other scheduler.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the profiles of a configuration.
    pub fn configured(configuration: Configuration) -> Self {
        Self { configuration, ..Self::default() }
    }

    /// Adds a plug-in. It takes part in every profile, unless the configuration disables it; there it
    /// also gets another weight than 1.
    pub fn with(mut self, plugin: impl Plugin) -> Self {
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// The Pods that plug-ins make wait; by this they permit that they are bound, or reject it.
    pub fn waiting(&self) -> WaitingPods {
        self.waiting.clone()
    }

    /// Whether its configuration makes sense with its plug-ins.
    pub fn check(&self) -> Result<(), ConfigurationError> {
        config::assemble(&self.configuration, &self.plugins, &Arc::default()).map(drop)
    }

    /// Lets a manager run it, on the replica that is elected.
    pub fn install(self, manager: Manager) -> Result<Manager, ConfigurationError> {
        let handle = Arc::new(Handle::default());
        let mut assembled = config::assemble(&self.configuration, &self.plugins, &handle)?;
        let preempts = self.configuration.extenders.iter().any(|it| !it.preempt_verb.is_empty());
        handle.lists_candidates.store(preempts, Ordering::Relaxed);
        let metrics: SchedulerMetrics = manager.metrics().families();
        handle.measure(metrics.clone());
        for profile in assembled.profiles.values_mut() {
            Arc::make_mut(profile).measure(metrics.clone());
        }
        let parts = Parts {
            metrics,
            profiles: Arc::new(assembled.profiles),
            sort: assembled.sort,
            backoff: self.configuration.backoff(),
            extenders: self.configuration.extenders.clone(),
            handle,
            waiting: self.waiting,
        };
        let caches = manager.caches().clone();
        let own = Client::new(manager.client_of(PART), PART);
        let recorder = manager.recorder().form(EventForm::Series).through(own);
        let group = Group::LeaderElected;
        Ok(manager.with_runnable_in(group, PART, move |client, stop| {
            scheduler::run(parts, caches, recorder, client, stop)
        }))
    }
}
