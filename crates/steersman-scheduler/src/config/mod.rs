//! A `KubeSchedulerConfiguration`: which plug-ins each profile has, and what these are told.

mod args;
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

use flaws::Flaws;
pub(crate) use profiles::assemble;

use crate::extender::ExtenderConfiguration;
use crate::names::SCHEDULER_NAME;
use crate::queue::Backoff;

const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no such document, or what it tells plug-ins makes no sense.
    #[error("{0}")]
    Malformed(String),
    /// A field has a value that it must not have.
    #[error("{field}: Invalid value: {value}: {why}")]
    Invalid {
        /// Where it stands.
        field: String,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such plug-in.
    #[error("profiles[{profile}].plugins: plugin {name:?} does not exist")]
    UnknownPlugin {
        /// The number of the profile.
        profile: usize,
        /// The name.
        name: String,
    },
}

/// What a scheduler is to do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
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
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
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
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ProfileConfiguration {
    pub(crate) scheduler_name: Option<String>,
    pub(crate) percentage_of_nodes_to_score: Option<i64>,
    /// By extension point, or `multiPoint` for all that a plug-in has.
    pub(crate) plugins: BTreeMap<String, PluginSet>,
    pub(crate) plugin_config: Vec<PluginConfig>,
}

/// Which plug-ins take part beside or instead of the default ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PluginSet {
    pub(crate) enabled: Vec<PluginChoice>,
    pub(crate) disabled: Vec<PluginChoice>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginChoice {
    pub(crate) name: String,
    pub(crate) weight: Option<i64>,
}

/// What a plug-in is told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
        let configuration: Self = serde_json::from_value(document)
            .map_err(|error| malformed(format!("strict decoding error: {error}")))?;
        form::check(&configuration.profiles)?;
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

    fn check(&self) -> Result<(), ConfigurationError> {
        if let Some(parallelism) = self.parallelism.filter(|it| *it <= 0) {
            let why = "should be an integer value greater than zero";
            return Err(invalid("parallelism", parallelism, why));
        }
        self.check_arguments()?;
        let all = self.percentage_of_nodes_to_score.iter();
        for percentage in all
            .chain(self.profiles.iter().filter_map(|it| it.percentage_of_nodes_to_score.as_ref()))
        {
            if !(0..=100).contains(percentage) {
                let why = "not in valid range [0-100]";
                return Err(invalid("percentageOfNodesToScore", percentage, why));
            }
        }
        if self.pod_initial_backoff_seconds.is_some_and(|it| it <= 0) {
            let value = self.pod_initial_backoff_seconds.unwrap_or_default();
            return Err(invalid("podInitialBackoffSeconds", value, "must be greater than 0"));
        }
        let backoff = self.backoff();
        if backoff.max < backoff.initial {
            let why = "must be greater than or equal to PodInitialBackoffSeconds";
            return Err(invalid("podMaxBackoffSeconds", backoff.max.as_secs(), why));
        }
        self.check_extenders()?;
        let mut names: Vec<&str> = self.profiles.iter().map(ProfileConfiguration::name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let why = "Duplicate value";
            return Err(invalid("profiles.schedulerName", format!("{:?}", pair[0]), why));
        }
        Ok(())
    }
}

impl Configuration {
    /// Whether plug-ins can do with what they are told; everything that is wrong is said at once.
    fn check_arguments(&self) -> Result<(), ConfigurationError> {
        let mut flaws = Flaws::default();
        for (number, profile) in self.profiles.iter().enumerate() {
            for (place, config) in profile.plugin_config.iter().enumerate() {
                let path = format!("profiles[{number}].pluginConfig[{place}]");
                if profile.plugin_config[..place].iter().any(|it| it.name == config.name) {
                    flaws.duplicate(&path, &config.name);
                }
                args::check(config, &format!("{path}.args"), &mut flaws);
            }
        }
        flaws.none().map_err(ConfigurationError::Malformed)
    }

    fn check_extenders(&self) -> Result<(), ConfigurationError> {
        for (number, extender) in self.extenders.iter().enumerate() {
            if let Some((field, value, why)) = extender.mistake() {
                return Err(invalid(&format!("extenders[{number}].{field}"), value, why));
            }
        }
        let binders = self.extenders.iter().filter(|it| !it.bind_verb.is_empty()).count();
        if binders > 1 {
            let found = format!("\"found {binders} extenders implementing bind\"");
            return Err(invalid("extenders", found, "only one extender can implement bind"));
        }
        Ok(())
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

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers give numbers and texts as they have them"
)]
fn invalid(field: &str, value: impl ToString, why: &str) -> ConfigurationError {
    let (field, value, why) = (field.to_owned(), value.to_string(), why.to_owned());
    ConfigurationError::Invalid { field, value, why }
}
