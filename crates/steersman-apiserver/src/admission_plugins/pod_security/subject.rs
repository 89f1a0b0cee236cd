//! A Pod, or the template of one, as the checks look at it.

use serde_json::Value;

pub(super) use super::super::fields::{items, text};

/// The lists of containers, in the order in which refusals name what is in them.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What of a Pod is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// What is judged of a Pod, or of a template.
    pub(super) fn of(object: &'a Value) -> Self {
        Self { metadata: &object["metadata"], spec: &object["spec"] }
    }

    pub(super) fn spec(self) -> &'a Value {
        self.spec
    }

    /// Its security context.
    pub(super) fn security(self) -> &'a Value {
        &self.spec["securityContext"]
    }

    pub(super) fn containers(self) -> impl Iterator<Item = Container<'a>> {
        LISTS.into_iter().flat_map(move |list| items(&self.spec[list])).map(Container)
    }

    /// The names of the containers of which something is true.
    pub(super) fn names_of(self, which: impl FnMut(&Container<'a>) -> bool) -> Vec<&'a str> {
        self.containers().filter(which).map(Container::name).collect()
    }

    pub(super) fn volumes(self) -> &'a [Value] {
        items(&self.spec["volumes"])
    }

    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let annotations = self.metadata["annotations"].as_object().into_iter().flatten();
        annotations.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata["annotations"][key].as_str()
    }

    pub(super) fn is_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Whether its users are not those of the host.
    pub(super) fn has_user_namespace(self) -> bool {
        self.spec["hostUsers"] == false
    }

    pub(super) fn runtime_class(self) -> &'a str {
        text(&self.spec["runtimeClassName"])
    }

    /// Whether a Pod has changed from `old` in what may turn a sound Pod into one that is not: of
    /// what a Pod lets itself be changed, that is its images, and containers that are added.
    pub(super) fn differs_from(self, old: Pod<'_>) -> bool {
        let fixed = |list: &str| {
            let new = items(&self.spec[list]);
            let old = items(&old.spec[list]);
            new.len() != old.len() || new.iter().zip(old).any(|(new, old)| images_differ(new, old))
        };
        let added = |new: &Value| {
            let before = items(&old.spec["ephemeralContainers"]);
            let before = before.iter().find(|old| text(&old["name"]) == text(&new["name"]));
            before.is_none_or(|old| images_differ(new, old))
        };
        fixed("containers")
            || fixed("initContainers")
            || items(&self.spec["ephemeralContainers"]).iter().any(added)
    }
}

/// A container of any list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container<'a>(&'a Value);

impl<'a> Container<'a> {
    pub(super) fn name(self) -> &'a str {
        text(&self.0["name"])
    }

    pub(super) fn field(self, field: &str) -> &'a Value {
        &self.0[field]
    }

    /// Its own security context.
    pub(super) fn security(self) -> &'a Value {
        &self.0["securityContext"]
    }
}

fn images_differ(new: &Value, old: &Value) -> bool {
    text(&new["image"]) != text(&old["image"])
}
