//! What a file says about a load.

use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// So many objects are made at most.
const OBJECTS_MAX: u64 = 2_000_000;
/// So many requests a second are asked for at most, of each sort.
const RATE_MAX: f64 = 100_000.0;
/// Names of namespaces and objects begin with the name of the scenario.
const NAME_MAX: usize = 40;
/// A run takes at most so long.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// What there is, and what happens.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// What namespaces and labels are named after.
    #[serde(default = "default_name")]
    pub name: String,
    /// How many namespaces there are.
    #[serde(default = "one")]
    pub namespaces: u32,
    /// What there is in each of them.
    pub objects: Vec<Objects>,
    /// What happens once everything is there.
    #[serde(default)]
    pub load: Activity,
    /// How many requests are under way at once.
    #[serde(default = "default_clients")]
    pub clients: u32,
    /// Which objects the load meets follows from this number.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How long what was made may take to become ready, and to be gone.
    #[serde(default = "default_patience", with = "span")]
    pub patience: Duration,
}

/// Objects of one sort: one of `deployment`, `configMap` and `template`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Objects {
    /// How many there are in each namespace.
    pub count: u32,
    /// A Deployment, which an update rolls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployments>,
    /// A `ConfigMap`, whose text an update changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMaps>,
    /// Any object, custom resources included. In its texts, `{{name}}`, `{{namespace}}` and
    /// `{{number}}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// The merge patch that an update is; `{{number}}` is another one each time. If not said, an
    /// annotation is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// When an object counts as ready; at once, if not said. Deployments know it by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
}

/// Deployments.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Deployments {
    /// How many Pods each has.
    #[serde(default = "one")]
    pub replicas: u32,
    /// What the Pods run.
    #[serde(default = "default_image")]
    pub image: String,
}

/// `ConfigMaps`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConfigMaps {
    /// How long the text of each is.
    #[serde(default = "default_bytes")]
    pub bytes: u32,
}

/// When an object counts as ready.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Ready {
    /// The condition in its status that must be true.
    pub condition: String,
}

/// What happens, each so many times a second over all namespaces.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Activity {
    /// For how long.
    #[serde(rename = "for", with = "span")]
    pub duration: Duration,
    /// Objects that are changed.
    pub updates: f64,
    /// Objects that are deleted and made anew under another name.
    pub churn: f64,
    /// Objects that are read.
    pub gets: f64,
    /// Lists of the objects of one sort in one namespace.
    pub lists: f64,
    /// How many watches there are beside our own, each of one sort in one namespace.
    pub watchers: u32,
}

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub enum InvalidScenario {
    /// It is no scenario at all.
    #[error("{0}")]
    Syntax(String),
    /// A field has a value that makes no sense.
    #[error("{field}: {reason}")]
    Value {
        /// Where it stands.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl FromStr for Scenario {
    type Err = InvalidScenario;

    /// Reads YAML or JSON.
    fn from_str(text: &str) -> Result<Self, InvalidScenario> {
        let scenario: Self = serde_saphyr::from_str(text)
            .map_err(|error| InvalidScenario::Syntax(error.to_string()))?;
        scenario.validate()?;
        Ok(scenario)
    }
}

impl Scenario {
    /// How many objects it has in all.
    pub fn size(&self) -> u64 {
        let each: u64 = self.objects.iter().map(|objects| u64::from(objects.count)).sum();
        each * u64::from(self.namespaces)
    }

    fn validate(&self) -> Result<(), InvalidScenario> {
        let name = self.name.as_str();
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_name = name.chars().all(letters)
            && ends(name.chars().next())
            && ends(name.chars().last())
            && name.len() <= NAME_MAX;
        let named = "lower case letters, digits and '-', at most 40, are a name";
        check(is_name, "name", || named.into())?;
        check(self.namespaces > 0, "namespaces", || "at least one is needed".into())?;
        check((1..=1000).contains(&self.clients), "clients", || "1 to 1000".into())?;
        check(!self.objects.is_empty(), "objects", || "nothing is described".into())?;
        for (number, objects) in self.objects.iter().enumerate() {
            objects.validate(&format!("objects[{number}]"))?;
        }
        check(self.size() <= OBJECTS_MAX, "objects", || {
            format!("{} in all namespaces, {OBJECTS_MAX} at most", self.size())
        })?;
        self.load.validate()?;
        check(self.patience <= DURATION_MAX, "patience", || "at most 7 days".into())
    }
}

impl Objects {
    fn validate(&self, field: &str) -> Result<(), InvalidScenario> {
        let sorts = [self.deployment.is_some(), self.config_map.is_some(), self.template.is_some()];
        check(sorts.into_iter().filter(|is| *is).count() == 1, field, || {
            "one of deployment, configMap and template is needed".into()
        })?;
        let Some(template) = &self.template else {
            return check(self.ready.is_none(), &format!("{field}.ready"), || {
                "only a template needs to say when it is ready".into()
            });
        };
        for part in ["apiVersion", "kind"] {
            let field = format!("{field}.template.{part}");
            check(template[part].as_str().is_some_and(|text| !text.is_empty()), &field, || {
                "required".into()
            })?;
        }
        Ok(())
    }
}

impl Activity {
    fn validate(&self) -> Result<(), InvalidScenario> {
        let rates = [
            ("load.updates", self.updates),
            ("load.churn", self.churn),
            ("load.gets", self.gets),
            ("load.lists", self.lists),
        ];
        for (field, rate) in rates {
            check((0.0..=RATE_MAX).contains(&rate), field, || {
                format!("so many a second, 0 to {RATE_MAX}")
            })?;
        }
        let asked = rates.iter().any(|(_, rate)| *rate > 0.0) || self.watchers > 0;
        check(!asked || !self.duration.is_zero(), "load.for", || "for how long, as 1m".into())?;
        check(self.watchers <= 10_000, "load.watchers", || "10,000 at most".into())?;
        check(self.duration <= DURATION_MAX, "load.for", || "at most 7 days".into())
    }
}

fn check(good: bool, field: &str, reason: impl FnOnce() -> String) -> Result<(), InvalidScenario> {
    if good {
        return Ok(());
    }
    Err(InvalidScenario::Value { field: field.to_owned(), reason: reason() })
}

fn default_name() -> String {
    "load".into()
}

fn one() -> u32 {
    1
}

fn default_clients() -> u32 {
    16
}

fn default_seed() -> u64 {
    1
}

fn default_patience() -> Duration {
    Duration::from_secs(300)
}

fn default_image() -> String {
    "registry.k8s.io/pause:3.10".into()
}

fn default_bytes() -> u32 {
    1024
}

/// Spans of time as people write them: `90s`, `1m`, `1h 30m`.
mod span {
    use super::{Deserialize, Deserializer, Duration, Serializer, SignedDuration};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        let span: Option<SignedDuration> = text.parse().ok();
        let span = span.and_then(|span| Duration::try_from(span).ok());
        let wrong = || format!("{text:?} is no span of time such as 90s, 1m or 1h 30m");
        span.ok_or_else(|| serde::de::Error::custom(wrong()))
    }

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        let span = SignedDuration::try_from(*span).map_err(serde::ser::Error::custom)?;
        to.collect_str(&format_args!("{span:#}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Scenario;

    #[test]
    fn what_is_not_said_is_moderate() {
        let scenario: Scenario = "objects: [{count: 2, configMap: {}}]".parse().unwrap();
        assert_eq!((scenario.namespaces, scenario.clients, scenario.size()), (1, 16, 2));
        assert_eq!(scenario.objects[0].config_map.as_ref().unwrap().bytes, 1024);
        assert_eq!(scenario.load.duration, Duration::ZERO);
    }

    #[test]
    fn a_scenario_is_read_back_as_it_was_written() {
        let text =
            "{objects: [{count: 2, deployment: {replicas: 3}}], load: {for: 1h 30m, gets: 2.5}}";
        let scenario: Scenario = text.parse().unwrap();
        assert_eq!(scenario.load.duration, Duration::from_secs(5400));
        let written = serde_json::to_string(&scenario).unwrap();
        let again: Scenario = written.parse().unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), written);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let cases = [
            ("objects: []", "objects: nothing is described"),
            ("objects: [{count: 1}]", "objects[0]: one of deployment, configMap and template"),
            ("objects: [{count: 1, configMap: {}, deployment: {}}]", "objects[0]: one of"),
            (
                "objects: [{count: 1, template: {kind: A}}]",
                "objects[0].template.apiVersion: required",
            ),
            ("{name: A b, objects: [{count: 1, configMap: {}}]}", "name: lower case"),
            ("{namespaces: 0, objects: [{count: 1, configMap: {}}]}", "namespaces: at least one"),
            ("{clients: 0, objects: [{count: 1, configMap: {}}]}", "clients: 1 to 1000"),
            ("{namespaces: 3000, objects: [{count: 1000, configMap: {}}]}", "2000000 at most"),
            ("{objects: [{count: 1, configMap: {}}], load: {gets: 1}}", "load.for: for how long"),
            (
                "{objects: [{count: 1, configMap: {}}], load: {for: 1s, gets: -1}}",
                "load.gets: so many",
            ),
            (
                "{objects: [{count: 1, configMap: {}}], load: {for: soon}}",
                "\"soon\" is no span of time",
            ),
            ("{objects: [{count: 1, configMap: {}}], pace: 3}", "pace"),
        ];
        for (text, reason) in cases {
            let refused = text.parse::<Scenario>().unwrap_err().to_string();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
