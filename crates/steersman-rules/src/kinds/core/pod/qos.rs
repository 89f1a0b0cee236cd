//! The quality of service of a pod: what its containers ask for decides who is evicted first.

use serde_json::Value;

use crate::quantity::Quantity;
use crate::rules::document::{is_empty, items};

/// What the quality of service depends on.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// `BestEffort` if nothing is asked for and nothing limited, `Guaranteed` if every container has
/// limits of CPU and memory and together they ask for just these, `Burstable` otherwise. Resources
/// of the pod as a whole count instead of those of its containers, even if they name none.
///
/// An amount of zero is none, as in Kubernetes: who has a limit of CPU and asks for none of it is
/// not guaranteed any.
pub fn class(spec: &Value) -> &'static str {
    let whole = &spec["resources"];
    let mut requests = Sums::default();
    let mut limits = Sums::default();
    let mut limited = true;
    if whole.is_null() {
        for container in
            ["containers", "initContainers"].iter().flat_map(|list| items(&spec[*list]))
        {
            let resources = &container["resources"];
            requests.add(&resources["requests"]);
            limits.add(&resources["limits"]);
            limited &= limits_all(&resources["limits"]);
        }
    } else {
        requests.add(&whole["requests"]);
        limits.add(&whole["limits"]);
        limited = is_empty(&whole["limits"]) || limits_all(&whole["limits"]);
    }
    if requests == Sums::default() && limits == Sums::default() {
        "BestEffort"
    } else if limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// What there is of each of [`RESOURCES`]; `None` where nobody names an amount.
#[derive(Default, PartialEq, Eq)]
struct Sums([Option<Quantity>; 2]);

impl Sums {
    fn add(&mut self, list: &Value) {
        for (sum, name) in self.0.iter_mut().zip(RESOURCES) {
            if let Some(more) = amount(&list[name]) {
                *sum = Some(sum.and_then(|sum| sum.checked_add(more)).unwrap_or(more));
            }
        }
    }
}

fn limits_all(limits: &Value) -> bool {
    RESOURCES.iter().all(|name| amount(&limits[*name]).is_some())
}

/// A quantity that asks for something.
fn amount(value: &Value) -> Option<Quantity> {
    Quantity::of(value).filter(|amount| amount.is_positive())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn both(cpu: &str, memory: &str) -> Value {
        json!({"cpu": cpu, "memory": memory})
    }

    fn of_containers(resources: &[Value]) -> &'static str {
        let containers: Vec<Value> =
            resources.iter().map(|resources| json!({"resources": resources})).collect();
        class(&json!({"containers": containers}))
    }

    #[test]
    fn what_containers_ask_for_and_may_have_decides() {
        let all = json!({"requests": both("1", "1Gi"), "limits": both("1", "1Gi")});
        let half = json!({"requests": both("500m", "1Gi"), "limits": both("1", "1Gi")});
        let more = json!({"requests": both("1500m", "1Gi"), "limits": both("1", "1Gi")});
        let nothing = json!({"requests": both("0", "1Gi"), "limits": both("1", "1Gi")});
        let zeros = json!({"requests": both("0", "0"), "limits": both("0", "0")});
        for (resources, expected) in [
            (vec![json!({})], "BestEffort"),
            (vec![zeros.clone()], "BestEffort"),
            (vec![json!({"limits": {"example.com/gpu": "1"}})], "BestEffort"),
            (vec![all.clone()], "Guaranteed"),
            (vec![json!({"limits": both("1", "1Gi")})], "Burstable"),
            (vec![nothing], "Burstable"),
            (vec![half.clone()], "Burstable"),
            // Sums are compared, as in Kubernetes.
            (vec![half, more], "Guaranteed"),
            (vec![all.clone(), json!({})], "Burstable"),
            (vec![all, zeros], "Burstable"),
        ] {
            assert_eq!(of_containers(&resources), expected, "{resources:?}");
        }
    }

    #[test]
    fn resources_of_the_pod_as_a_whole_count_instead() {
        let container = json!({"resources": {"requests": {"cpu": "1"}}});
        for (resources, expected) in [
            (json!(null), "Burstable"),
            (json!({}), "BestEffort"),
            (json!({"requests": both("0", "0")}), "BestEffort"),
            (json!({"requests": both("1", "1Gi")}), "Burstable"),
            (json!({"requests": both("1", "1Gi"), "limits": both("1", "1Gi")}), "Guaranteed"),
            (json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}), "Burstable"),
        ] {
            let spec = json!({"containers": [container], "resources": resources});
            assert_eq!(class(&spec), expected, "{resources}");
        }
    }
}
