//! A `KubeSchedulerConfiguration`: which plug-ins each profile has, and what these are told.

mod args;
mod document;
mod flaws;
mod form;
mod profiles;
#[cfg(test)]
mod tests;
mod validation;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use profiles::assemble;

use crate::extender::ExtenderConfiguration;
use crate::names::SCHEDULER_NAME;
use crate::queue::Backoff;

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no such document, or fields have values that they must not have.
    #[error("{0}")]
    Malformed(String),
    /// No profiles can be made of it: plug-ins lack, or cannot do what they are to do.
    #[error("initializing profiles: {0}")]
    Profiles(String),
}

/// What a scheduler is to do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    api_version: String,
    kind: String,
    pub(crate) profiles: Vec<ProfileConfiguration>,
    percentage_of_nodes_to_score: Option<i64>,
    pod_initial_backoff_seconds: Option<i64>,
    pod_max_backoff_seconds: Option<i64>,
    pub(crate) extenders: Vec<ExtenderConfiguration>,
    leader_election: Option<LeaderElection>,
    parallelism: Option<i64>,
    client_connection: Option<Value>,
    delay_cache_until_active: Option<bool>,
    enable_profiling: Option<bool>,
    enable_contention_profiling: Option<bool>,
    health_z_bind_address: Option<String>,
    metrics_bind_address: Option<String>,
}

/// Whether replicas elect one that schedules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaderElection {
    leader_elect: Option<bool>,
    lease_duration: Option<String>,
    renew_deadline: Option<String>,
    retry_period: Option<String>,
    resource_lock: Option<String>,
    resource_name: Option<String>,
    resource_namespace: Option<String>,
}

/// The plug-ins for the Pods of one scheduler name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProfileConfiguration {
    pub(crate) scheduler_name: Option<String>,
    pub(crate) percentage_of_nodes_to_score: Option<i64>,
    /// By extension point, or `multiPoint` for all that a plug-in has.
    pub(crate) plugins: BTreeMap<String, PluginSet>,
    pub(crate) plugin_config: Vec<PluginConfig>,
}

/// Which plug-ins take part beside or instead of the default ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PluginSet {
    pub(crate) enabled: Vec<PluginChoice>,
    pub(crate) disabled: Vec<PluginChoice>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PluginChoice {
    pub(crate) name: String,
    pub(crate) weight: Option<i64>,
}

/// What a plug-in is told.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PluginConfig {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) args: Value,
}

impl Configuration {
    /// Reads a configuration, in YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let malformed = |error: String| ConfigurationError::Malformed(error);
        let document: Value =
            serde_saphyr::from_str(text).map_err(|error| malformed(error.to_string()))?;
        let field = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (field("apiVersion"), field("kind"));
        if version != API_VERSION || kind != KIND {
            return Err(malformed(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme; expected \
                 {KIND} of {API_VERSION}"
            )));
        }
        let configuration = Self::deserialize(&document)
            .map_err(|error| malformed(format!("strict decoding error: {error}")))?;
        form::check(&document, &configuration.profiles)?;
        configuration.check()?;
        Ok(configuration)
    }

    /// The same for Pods of another scheduler name, if no profile says for which it is.
    #[must_use]
    pub fn named(mut self, scheduler_name: &str) -> Self {
        if self.profiles.is_empty() {
            self.profiles.push(ProfileConfiguration::default());
        }
        for profile in &mut self.profiles {
            profile.scheduler_name.get_or_insert_with(|| scheduler_name.to_owned());
        }
        self
    }

    /// Whether replicas are to elect one that schedules: so it is unless it says otherwise.
    pub fn elects_leader(&self) -> bool {
        let election = self.leader_election.as_ref();
        election.and_then(|election| election.leader_elect).unwrap_or(true)
    }

    pub(crate) fn backoff(&self) -> Backoff {
        let seconds = |given: Option<i64>, default: Duration| {
            given.and_then(|it| u64::try_from(it).ok()).map_or(default, Duration::from_secs)
        };
        let Backoff { initial, max } = Backoff::default();
        Backoff {
            initial: seconds(self.pod_initial_backoff_seconds, initial),
            max: seconds(self.pod_max_backoff_seconds, max),
        }
    }

    /// How many of every hundred nodes a profile compares; zero leaves it to the scheduler.
    pub(crate) fn percentage(&self, profile: &ProfileConfiguration) -> usize {
        let chosen = profile.percentage_of_nodes_to_score.or(self.percentage_of_nodes_to_score);
        chosen.and_then(|it| usize::try_from(it).ok()).unwrap_or_default()
    }

    /// Extended resources that only extenders look at.
    fn ignored_resources(&self) -> Vec<String> {
        let managed = self.extenders.iter().flat_map(|extender| &extender.managed_resources);
        managed.filter(|it| it.ignored_by_scheduler).map(|it| it.name.clone()).collect()
    }
}

impl ProfileConfiguration {
    pub(crate) fn name(&self) -> &str {
        self.scheduler_name.as_deref().unwrap_or(SCHEDULER_NAME)
    }
}
