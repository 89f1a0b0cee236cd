//! In which order the containers of a Pod are told to end.
//!
//! All are told at once, and do what they do before they stop; the signal waits. Those that accompany
//! others get it after all main containers have ended, and among them the last that was started
//! first. All of it happens within one grace period. With the companions `log` and `proxy`, in this
//! order, and the main containers `a` and `b`:
//!
//! ```text
//! a, b    get the signal at once
//! proxy   when a and b have ended
//! log     when a, b and proxy have ended
//! ```

use k8s_openapi::api::core::v1::{Container, PodSpec};

use crate::restart_policy::accompanies;

/// The containers that must have ended before this one gets the signal.
pub(crate) fn waits_for<'a>(spec: &'a PodSpec, name: &str) -> Vec<&'a str> {
    let init = spec.init_containers.iter().flatten();
    let companions: Vec<&Container> = init.filter(|container| accompanies(container)).collect();
    let Some(place) = companions.iter().position(|container| container.name == name) else {
        return Vec::new();
    };
    let later = companions[place + 1..].iter().copied();
    spec.containers.iter().chain(later).map(|container| container.name.as_str()).collect()
}

/// These containers in an order in which each comes after those that it waits for.
pub(crate) fn ordered<'a>(spec: &PodSpec, names: &'a [String]) -> Vec<&'a str> {
    let mut ordered: Vec<&str> = names.iter().map(String::as_str).collect();
    ordered.sort_by_key(|name| waits_for(spec, name).len());
    ordered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> PodSpec {
        let companion = |name: &str| json!({"name": name, "restartPolicy": "Always"});
        let init = json!([companion("log"), {"name": "setup"}, companion("proxy")]);
        let main = json!([{"name": "a"}, {"name": "b"}]);
        serde_json::from_value(json!({"initContainers": init, "containers": main})).unwrap()
    }

    #[test]
    fn companions_wait_for_main_containers_and_for_those_started_after_them() {
        for (name, expected) in [
            ("a", ""),
            ("b", ""),
            ("setup", ""),
            ("debug", ""),
            ("proxy", "a b"),
            ("log", "a b proxy"),
        ] {
            assert_eq!(waits_for(&spec(), name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn who_is_waited_for_comes_first() {
        let names = ["log", "proxy", "a", "b"].map(str::to_owned);
        assert_eq!(ordered(&spec(), &names), ["a", "b", "proxy", "log"]);
    }
}
