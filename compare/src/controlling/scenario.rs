//! What is done to both clusters, as [files](../../scenarios) tell it.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::glob;

/// The files, in the order in which their scenarios are told.
const FILES: [(&str, &str); 7] = [
    ("deployments", include_str!("../../scenarios/deployments.yaml")),
    ("sets", include_str!("../../scenarios/sets.yaml")),
    ("jobs", include_str!("../../scenarios/jobs.yaml")),
    ("services", include_str!("../../scenarios/services.yaml")),
    ("budgets", include_str!("../../scenarios/budgets.yaml")),
    ("storage", include_str!("../../scenarios/storage.yaml")),
    ("housekeeping", include_str!("../../scenarios/housekeeping.yaml")),
];

/// The word in a file that stands for the scenario's namespace.
const NAMESPACE: &str = "NAMESPACE";

/// Steps in a namespace of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// What it is called; its namespace too.
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
}

/// One thing that is done. An object without a namespace is in the scenario's, unless its name has the
/// word `NAMESPACE` in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Step {
    Create(Value),
    /// A merge patch, with the object's names in it.
    Patch(Value),
    /// The same for its status.
    PatchStatus(Value),
    /// An object by its names, and what becomes of its dependents.
    Delete(Delete),
    /// So many seconds pass in any case, for all scenarios: those that need long come late.
    Wait(u64),
    /// Nothing moves any more, or it has been long enough; everything is compared.
    Settle,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    pub(super) object: Value,
    #[serde(default)]
    pub(super) propagation: Option<String>,
}

impl Scenario {
    /// Those whose name fits.
    pub(super) fn all(pattern: &str) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        for (file, text) in FILES {
            all.extend(Self::read(text).map_err(|error| format!("{file}.yaml: {error}"))?);
        }
        all.retain(|scenario| glob::fits(pattern, &scenario.name));
        if all.is_empty() { Err(format!("no scenario is called {pattern}")) } else { Ok(all) }
    }

    /// Those of a file.
    fn read(text: &str) -> Result<Vec<Self>, serde_saphyr::Error> {
        let file: File = serde_saphyr::from_str(text)?;
        let named = file.scenarios.into_iter().map(|mut scenario| {
            scenario.steps.iter_mut().for_each(|step| step.place(&scenario.name));
            scenario
        });
        Ok(named.collect())
    }

    /// The steps up to each comparison.
    pub(super) fn rounds(&self) -> impl Iterator<Item = &[Step]> {
        self.steps.split_inclusive(|step| matches!(step, Step::Settle))
    }
}

/// What a file holds.
#[derive(Deserialize)]
struct File {
    /// Parts that others refer to.
    #[serde(default)]
    #[expect(dead_code, reason = "aliases are resolved before this is read")]
    parts: Value,
    scenarios: Vec<Scenario>,
}

impl Step {
    /// Puts the objects of a step where they belong.
    fn place(&mut self, namespace: &str) {
        let object = match self {
            Self::Create(object) | Self::Patch(object) | Self::PatchStatus(object) => object,
            Self::Delete(delete) => &mut delete.object,
            Self::Wait(_) | Self::Settle => return,
        };
        let of_cluster = object["metadata"]["name"].as_str().is_some_and(|n| n.contains(NAMESPACE));
        name(object, namespace);
        if !of_cluster && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = namespace.into();
        }
    }

    /// How long it lasts at least.
    pub(super) fn lasts(&self) -> Duration {
        match self {
            Self::Wait(seconds) => Duration::from_secs(*seconds),
            _ => Duration::ZERO,
        }
    }
}

/// Writes the scenario's name wherever the word for it stands.
fn name(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text.contains(NAMESPACE) => {
            *text = text.replace(NAMESPACE, namespace);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| name(field, namespace)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_files_can_be_read_and_names_are_given_once() {
        let all = Scenario::all("*").unwrap();
        let names: BTreeSet<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|scenario| scenario.rounds().count() > 0));
    }

    #[test]
    fn objects_are_put_into_the_namespace_of_their_scenario() {
        let text = "
scenarios:
- name: one
  steps:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - create: {apiVersion: v1, kind: Node, metadata: {name: n-NAMESPACE}}
  - settle
  - wait: 3
";
        let scenario = Scenario::read(text).unwrap().remove(0);
        let [Step::Create(map), Step::Create(node), Step::Settle, wait] = &scenario.steps[..]
        else {
            panic!("{scenario:?}");
        };
        assert_eq!(map["metadata"]["namespace"], "one");
        assert_eq!(
            (&node["metadata"]["name"], &node["metadata"]["namespace"]),
            (&"n-one".into(), &Value::Null)
        );
        assert_eq!(wait.lasts(), Duration::from_secs(3));
        assert_eq!(scenario.rounds().count(), 2);
    }
}
