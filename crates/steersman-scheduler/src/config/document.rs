//! Which values a configuration may have besides the arguments of plug-ins, in Kubernetes' words.

use serde::Serialize;
use serde_json::json;
use steersman_values::names::qualified_name;

use super::flaws::Flaws;
use super::{
    API_VERSION, Configuration, ConfigurationError, LeaderElection, PluginChoice, PluginSet,
    ProfileConfiguration, args,
};
use crate::extender::ExtenderConfiguration;

/// Plug-ins that earlier versions had.
const GONE: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

impl Configuration {
    /// Whether it makes sense. Everything that is wrong is said at once.
    pub(super) fn check(&self) -> Result<(), ConfigurationError> {
        let mut flaws = Flaws::default();
        let burst = self.client_connection.as_ref().and_then(|it| it["burst"].as_i64());
        if let Some(burst) = burst.filter(|burst| *burst < 0) {
            flaws.invalid("clientConnection.burst", burst, "must be non-negative");
        }
        if let Some(election) = &self.leader_election {
            check_election(election, &mut flaws);
        }
        if let Some(parallelism) = self.parallelism.filter(|it| *it <= 0) {
            let why = "should be an integer value greater than zero";
            flaws.invalid("parallelism", parallelism, why);
        }
        for number in 0..self.profiles.len() {
            check_profile(&self.profiles, number, &mut flaws);
        }
        check_queue_sorts(&self.profiles, &mut flaws);
        check_percentage("percentageOfNodesToScore", self.percentage_of_nodes_to_score, &mut flaws);
        self.check_backoff(&mut flaws);
        check_extenders(&self.extenders, &mut flaws);
        flaws.none().map_err(ConfigurationError::Malformed)
    }

    fn check_backoff(&self, flaws: &mut Flaws) {
        let initial = self.pod_initial_backoff_seconds.unwrap_or(1);
        let max = self.pod_max_backoff_seconds.unwrap_or(10);
        if initial <= 0 {
            flaws.invalid("podInitialBackoffSeconds", initial, "must be greater than 0");
        }
        if max < initial {
            let why = "must be greater than or equal to PodInitialBackoffSeconds";
            flaws.invalid("podMaxBackoffSeconds", max, why);
        }
    }
}

/// A time as it is written.
struct Period<'a> {
    text: &'a str,
    nanos: i64,
}

impl<'a> Period<'a> {
    /// The time that is given, or the default if none is or that is nothing.
    fn of(given: Option<&'a str>, default: &'static str) -> Self {
        let read = |text: &'a str| {
            let time = steersman_cel::Duration::parse(text)?;
            Some(Self { text, nanos: time.nanos })
        };
        let given = given.and_then(read).filter(|period| period.nanos != 0);
        given.or_else(|| read(default)).unwrap_or(Self { text: default, nanos: 0 })
    }
}

fn check_election(election: &LeaderElection, flaws: &mut Flaws) {
    let times = [
        ("leaderElection.leaseDuration", election.lease_duration.as_deref(), "15s"),
        ("leaderElection.renewDeadline", election.renew_deadline.as_deref(), "10s"),
        ("leaderElection.retryPeriod", election.retry_period.as_deref(), "2s"),
    ];
    for (field, given, _) in times {
        if let Some(text) = given.filter(|text| steersman_cel::Duration::parse(text).is_none()) {
            flaws.invalid(field, text, "must be a duration");
        }
    }
    if election.leader_elect == Some(false) {
        return;
    }
    let [lease, renewal, _] = times.map(|(field, given, default)| {
        let period = Period::of(given, default);
        if period.nanos <= 0 {
            flaws.invalid(field, period.text, "must be greater than zero");
        }
        period
    });
    if lease.nanos <= renewal.nanos {
        let why = "must be greater than `RenewDeadline`";
        flaws.invalid("leaderElection.leaseDuration", renewal.text, why);
    }
    let lock = election.resource_lock.as_deref().filter(|lock| !lock.is_empty());
    if let Some(lock) = lock.filter(|lock| *lock != "leases") {
        let why = "resourceLock value must be \"leases\"";
        flaws.invalid("leaderElection.resourceLock", lock, why);
    }
}

fn check_percentage(field: &str, percentage: Option<i64>, flaws: &mut Flaws) {
    if let Some(percentage) = percentage.filter(|it| !(0..=100).contains(it)) {
        flaws.invalid(field, percentage, "not in valid range [0-100]");
    }
}

fn check_profile(profiles: &[ProfileConfiguration], number: usize, flaws: &mut Flaws) {
    let profile = &profiles[number];
    let path = format!("profiles[{number}]");
    let name = profile.scheduler_name.as_deref();
    // One that is alone has a name if it does not say which.
    if name == Some("") || (name.is_none() && profiles.len() > 1) {
        flaws.required(&format!("{path}.schedulerName"), "");
    }
    let field = format!("{path}.percentageOfNodesToScore");
    check_percentage(&field, profile.percentage_of_nodes_to_score, flaws);
    for (point, set) in profile.plugins.iter().filter(|(point, _)| *point != "multiPoint") {
        for (place, choice) in set.enabled.iter().enumerate() {
            check_plugin(&choice.name, &format!("{path}.plugins.{point}.enabled[{place}]"), flaws);
        }
    }
    for (place, config) in profile.plugin_config.iter().enumerate() {
        let path = format!("{path}.pluginConfig[{place}]");
        if profile.plugin_config[..place].iter().any(|it| it.name == config.name) {
            flaws.duplicate(&path, &config.name);
        }
        check_plugin(&config.name, &path, flaws);
        args::check(config, &format!("{path}.args"), flaws);
    }
    let mut others = profiles[..number].iter().map(|it| it.scheduler_name.as_deref());
    if others.any(|other| other.unwrap_or_default() == name.unwrap_or_default()) {
        // Kubernetes means to say here which other profile has that name.
        flaws.duplicate(&format!("{path}.schedulerName"), json!({}));
    }
}

fn check_plugin(name: &str, field: &str, flaws: &mut Flaws) {
    if GONE.contains(&name) {
        let why = format!(
            "was invalid in version {API_VERSION:?} (KubeSchedulerConfiguration is version \
             {API_VERSION:?})"
        );
        flaws.invalid(field, name, &why);
    }
}

fn check_queue_sorts(profiles: &[ProfileConfiguration], flaws: &mut Flaws) {
    let none = PluginSet::default();
    let mut sets = profiles.iter().map(|it| it.plugins.get("queueSort").unwrap_or(&none));
    let Some(first) = sets.next() else { return };
    if first.enabled.len() > 1 {
        let why = "only one queue sort plugin can be enabled";
        flaws.invalid("profiles[0].plugins.queueSort.Enabled", first.enabled.len(), why);
    }
    let first = Shown::of(first);
    for (number, set) in (1..).zip(sets) {
        let shown = Shown::of(set);
        if shown != first {
            let why = "must be the same for all profiles";
            flaws.invalid(&format!("profiles[{number}].plugins.queueSort"), shown, why);
        }
    }
}

/// A set of plug-ins as Kubernetes shows it.
#[derive(PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown<'a> {
    enabled: Option<Vec<ShownChoice<'a>>>,
    disabled: Option<Vec<ShownChoice<'a>>>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownChoice<'a> {
    name: &'a str,
    weight: i64,
}

impl<'a> Shown<'a> {
    fn of(set: &'a PluginSet) -> Self {
        let enabled = |it: &'a PluginChoice| ShownChoice {
            name: &it.name,
            weight: it.weight.unwrap_or_default(),
        };
        let disabled = |it: &'a PluginChoice| ShownChoice { name: &it.name, weight: 0 };
        let enabled: Vec<_> = set.enabled.iter().map(enabled).collect();
        let disabled: Vec<_> = set.disabled.iter().map(disabled).collect();
        Self {
            enabled: Some(enabled).filter(|all| !all.is_empty()),
            disabled: Some(disabled).filter(|all| !all.is_empty()),
        }
    }
}

fn check_extenders(extenders: &[ExtenderConfiguration], flaws: &mut Flaws) {
    let mut managed: Vec<&str> = Vec::new();
    for (number, extender) in extenders.iter().enumerate() {
        let path = format!("extenders[{number}]");
        if let Some((field, value, why)) = extender.unreadable() {
            flaws.invalid(&format!("{path}.{field}"), value, why);
        }
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let why = "must have a positive weight applied to it";
            flaws.invalid(&format!("{path}.weight"), extender.weight, why);
        }
        for (place, resource) in extender.managed_resources.iter().enumerate() {
            let field = format!("{path}.managedResources[{place}].name");
            check_extended_resource(&resource.name, &field, flaws);
            if managed.contains(&resource.name.as_str()) {
                let why = "duplicate extender managed resource name";
                flaws.invalid(&field, &resource.name, why);
            }
            managed.push(&resource.name);
        }
    }
    let binders = extenders.iter().filter(|it| !it.bind_verb.is_empty()).count();
    if binders > 1 {
        let found = format!("found {binders} extenders implementing bind");
        flaws.invalid("extenders", found, "only one extender can implement bind");
    }
}

fn check_extended_resource(name: &str, field: &str, flaws: &mut Flaws) {
    if !qualified_name(name).is_empty() {
        return flaws.not_qualified(field, name);
    }
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let of_quota = format!("requests.{name}");
    if is_native || name.starts_with("requests.") || !qualified_name(&of_quota).is_empty() {
        flaws.invalid(field, name, "is an invalid extended resource name");
    }
}
