//! `ExtendedResourceToleration` lets pods onto the nodes that are kept for those who ask for an
//! extended resource, such as a GPU.

use std::collections::BTreeSet;

use futures::future::{self, BoxFuture};
use serde_json::{Value, json};
use steersman_rules::rules::is_extended;

use super::fields::{items, push, text};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

/// Adds a toleration for each extended resource that a pod asks for.
pub(super) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        _write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        let spec = &mut new["spec"];
        let mut changed = false;
        for resource in extended_resources(spec) {
            changed |= tolerate(spec, &resource);
        }
        Box::pin(future::ready(Ok(changed)))
    }
}

/// The extended resources that the containers of a pod ask for.
fn extended_resources(spec: &Value) -> BTreeSet<String> {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.flat_map(|list| items(&spec[list]));
    let requests = containers.filter_map(|c| c["resources"]["requests"].as_object());
    let names = requests.flat_map(|requests| requests.keys());
    names.filter(|name| is_extended(name)).cloned().collect()
}

fn tolerate(spec: &mut Value, resource: &str) -> bool {
    let wanted = json!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
    let matches = |toleration: &Value| {
        ["key", "operator", "effect", "value"]
            .iter()
            .all(|field| text(&toleration[*field]) == text(&wanted[*field]))
    };
    let same = items(&spec["tolerations"]).iter().position(matches);
    match same {
        // One that says how long it holds for is another toleration, and gives way.
        Some(n) if !spec["tolerations"][n]["tolerationSeconds"].is_null() => {
            spec["tolerations"][n] = wanted;
        }
        Some(_) => return false,
        None => push(spec, "tolerations", wanted),
    }
    true
}
