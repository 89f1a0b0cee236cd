//! Groups of simulated nodes: how many, what they have and say, how they fail and what runs on them
//! uses. A file lists them; see the guide of clusters.

mod failures;
mod usage;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use self::failures::NodeFailure;
pub(crate) use self::failures::run as run_failures;
pub use self::usage::UsageProfile;

/// The label of a zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// Nodes of one kind, named by a prefix and a number.
///
/// ```
/// use steersman_node::NodeGroup;
///
/// let groups = NodeGroup::parse(
///     "
/// - count: 100
///   prefix: worker-
///   capacity: {cpu: 16, memory: 64Gi}
///   zones: [a, b, c]
/// - prefix: gpu-
///   capacity: {example.com/gpu: 8}
///   taints: [{key: example.com/gpu, effect: NoSchedule}]
///   failures: [{lostAt: 10m, backAt: 12m, every: 1h}]
/// ",
/// )?;
/// assert_eq!(groups.iter().map(|group| group.count).sum::<usize>(), 101);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeGroup {
    /// How many nodes.
    #[serde(default = "one")]
    pub count: usize,
    /// What their names begin with; a number follows.
    pub prefix: String,
    /// What each node has, by resource name, as quantities: what is not named is as everywhere.
    #[serde(default, deserialize_with = "amounts")]
    pub capacity: BTreeMap<String, String>,
    /// What it says that it has instead. It refuses Pods for which it has too little after all.
    #[serde(default, deserialize_with = "amounts")]
    pub claims: BTreeMap<String, String>,
    /// Labels beside those that every node has.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The zones that they are in, one after the other.
    #[serde(default)]
    pub zones: Vec<String>,
    /// The taints that they register with.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// When nothing is heard of them.
    #[serde(default)]
    pub failures: Vec<NodeFailure>,
    /// What containers on them use, unless somebody says otherwise of them.
    #[serde(default)]
    pub usage: Option<UsageProfile>,
}

fn one() -> usize {
    1
}

/// What makes one simulated node differ from others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    /// What it says that it has, and has not.
    pub(crate) claims: BTreeMap<String, String>,
}

impl NodeGroup {
    /// Reads a list of groups, in YAML or JSON; otherwise says what is wrong with it.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let document: serde_json::Value = serde_saphyr::from_str(text).map_err(|error| {
            let told = error.to_string();
            told.lines().next().unwrap_or_default().to_owned()
        })?;
        let groups: Vec<Self> =
            serde_json::from_value(document).map_err(|error| error.to_string())?;
        for (number, group) in groups.iter().enumerate() {
            group.check(number)?;
            let others = &groups[..number];
            if let Some(other) = others.iter().find(|other| other.prefix == group.prefix) {
                return Err(format!("two groups have the prefix {:?}", other.prefix));
            }
        }
        Ok(groups)
    }

    fn check(&self, number: usize) -> Result<(), String> {
        let name = self.name(0);
        if !steersman_values::names::is_subdomain(&name) {
            return Err(format!("group {number}: no node can be called {name:?}"));
        }
        for (resource, amount) in self.capacity.iter().chain(&self.claims) {
            if steersman_values::Quantity::parse(amount).is_err() {
                return Err(format!("group {number}: {resource}: {amount:?} is no quantity"));
            }
        }
        for failure in &self.failures {
            failure.check(self.count).map_err(|why| format!("group {number}: {why}"))?;
        }
        match &self.usage {
            Some(usage) => usage.check().map_err(|why| format!("group {number}: {why}")),
            None => Ok(()),
        }
    }

    /// The name of one of the nodes.
    pub(crate) fn name(&self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    /// Whether this is the name of one of the nodes.
    pub(crate) fn has(&self, name: &str) -> bool {
        let number = name.strip_prefix(&self.prefix).and_then(|rest| rest.parse::<usize>().ok());
        number.is_some_and(|number| number < self.count && self.name(number) == name)
    }

    /// What makes one of the nodes differ.
    pub(crate) fn shape(&self, number: usize) -> Shape {
        let mut labels = self.labels.clone();
        if !self.zones.is_empty() {
            let zone = self.zones[number % self.zones.len()].clone();
            labels.insert(ZONE.to_owned(), zone);
        }
        Shape { labels, taints: self.taints.clone(), claims: self.claims.clone() }
    }

    /// The numbers of its nodes.
    pub(crate) fn numbers(&self) -> Range<usize> {
        0..self.count
    }
}

/// A quantity may be written as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Whole(i64),
    Fraction(f64),
    Text(String),
}

impl Amount {
    fn text(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Fraction(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

fn amounts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let amounts: BTreeMap<String, Amount> = Deserialize::deserialize(from)?;
    Ok(amounts.into_iter().map(|(resource, amount)| (resource, amount.text())).collect())
}

/// A time as Go writes it: `90s`, `1h30m`.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_time(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no time such as 1h30m")))
}

fn optional_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    time(from).map(Some)
}

fn parse_time(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let number: f64 = number.parse().ok()?;
        let (unit, seconds) = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
            .into_iter()
            .find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &after[unit.len()..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_nodes_there_are() {
        let groups = NodeGroup::parse(
            "
- count: 4
  prefix: worker-
  capacity: {cpu: 16, memory: 64Gi, pods: 250}
  claims: {cpu: 32}
  labels: {pool: web}
  zones: [a, b, c]
- prefix: gpu-
  taints: [{key: gpu, value: 'yes', effect: NoSchedule}]
",
        )
        .unwrap();
        let worker = &groups[0];
        assert_eq!(worker.capacity["cpu"], "16");
        let shape = worker.shape(3);
        assert_eq!((&*shape.labels["pool"], &*shape.labels[ZONE]), ("web", "a"));
        assert_eq!(shape.claims["cpu"], "32");
        assert_eq!(groups[1].shape(0).taints[0].effect, "NoSchedule");
        assert!(worker.has("worker-3") && !worker.has("worker-4") && !worker.has("worker-03"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        for (text, expected) in [
            ("- count: 1", "missing field"),
            ("- {prefix: a, colour: red}", "unknown field"),
            ("- {prefix: A_}", "no node can be called \"A_0\""),
            ("- {prefix: a, capacity: {cpu: many}}", "cpu: \"many\" is no quantity"),
            ("- {prefix: a}\n- {prefix: a}", "two groups have the prefix \"a\""),
            ("- {prefix: a, failures: [{lostAt: soon}]}", "\"soon\" is no time such as 1h30m"),
            ("- {prefix: a, failures: [{lostAt: 2m, backAt: 1m}]}", "back before"),
            ("- {prefix: a, failures: [{lostAt: 1m, every: 1h}]}", "never back"),
            ("- {prefix: a, failures: [{lostAt: 1m, nodes: [1]}]}", "no node 1"),
            ("- {prefix: a, usage: {cpu: x}}", "usage"),
        ] {
            let refused = NodeGroup::parse(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn times_are_written_as_in_go() {
        for (text, millis) in [
            ("90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
        ] {
            assert_eq!(parse_time(text), millis.map(Duration::from_millis), "{text}");
        }
        for text in ["", "5", "s", "1x", "-1s"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
