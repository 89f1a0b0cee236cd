//! What containers get that say nothing of how much they need, and the annotation that tells.

use serde_json::{Map, Value};

use super::super::fields::items;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The lists of containers, and how the annotation calls those in them.
const LISTS: [(&str, &str); 2] =
    [("containers", "container"), ("initContainers", "init container")];

/// Gives the containers of a Pod what a limit range says they get by default. The annotation tells
/// of the last limit range that had something to give. Says whether this one had.
pub(super) fn apply(limit_range: &Value, pod: &mut Value) -> bool {
    let defaults = Defaults::of(limit_range);
    let mut given = Vec::new();
    for (list, called) in LISTS {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (list, word) in [("requests", "request"), ("limits", "limit")] {
                let set = fill(container, list, defaults.of_list(list));
                if !set.is_empty() {
                    given.push(format!("{} {word} for {called} {name}", set.join(", ")));
                }
            }
        }
    }
    if !given.is_empty() {
        let text = format!("LimitRanger plugin set: {}", given.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = text.into();
    }
    !given.is_empty()
}

/// What a container gets by default.
#[derive(Default)]
struct Defaults {
    requests: Map<String, Value>,
    limits: Map<String, Value>,
}

impl Defaults {
    fn of(limit_range: &Value) -> Self {
        let mut defaults = Self::default();
        let of_containers = items(&limit_range["spec"]["limits"]).iter();
        for limit in of_containers.filter(|limit| limit["type"] == "Container") {
            let amounts = |list: &str| limit[list].as_object().cloned().unwrap_or_default();
            defaults.requests.extend(amounts("defaultRequest"));
            defaults.limits.extend(amounts("default"));
        }
        defaults
    }

    fn of_list(&self, list: &str) -> &Map<String, Value> {
        if list == "requests" { &self.requests } else { &self.limits }
    }
}

/// Adds to a list of a container's resources what is missing there, and names it, in order.
fn fill(container: &mut Value, list: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let known = &container["resources"][list];
    let missing = defaults.iter().filter(|(name, _)| known.get(name.as_str()).is_none());
    let missing: Vec<(String, Value)> =
        missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
    let mut names: Vec<String> = missing.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    for (name, amount) in missing {
        container["resources"][list][name] = amount;
    }
    names
}
