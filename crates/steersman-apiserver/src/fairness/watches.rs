//! How many watches hear of a write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::authz::{Attributes, Target};

/// The watches of a server, counted by what they see: a kind, a namespace of it, or one object.
/// Selectors have to look at every event, so they make no difference.
#[derive(Debug, Default)]
pub(crate) struct Watches(Arc<Mutex<Counts>>);

/// By group, resource, namespace and name.
type Counts = HashMap<String, HashMap<String, HashMap<String, HashMap<String, u32>>>>;

/// A watch that goes on while this is held.
#[derive(Debug)]
pub(crate) struct Watched {
    counts: Arc<Mutex<Counts>>,
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl Watches {
    /// A watch begins.
    pub(crate) fn begin(&self, asked: &Attributes<'_>) -> Option<Watched> {
        let Target::Resource { group, resource, namespace, name, .. } = asked.target else {
            return None;
        };
        // A Pod's node is looked up, so that watches of other nodes' Pods cost nothing.
        if resource == "pods" && asked.fields.contains("spec.nodeName=") {
            return None;
        }
        let [group, resource, namespace, name] =
            [group, resource, namespace, name].map(str::to_owned);
        let mut counts = lock(&self.0);
        let of_kind = counts.entry(group.clone()).or_default().entry(resource.clone()).or_default();
        *of_kind.entry(namespace.clone()).or_default().entry(name.clone()).or_default() += 1;
        drop(counts);
        Some(Watched { counts: Arc::clone(&self.0), group, resource, namespace, name })
    }

    /// How many watches may hear of a write.
    pub(crate) fn interested(&self, asked: &Attributes<'_>) -> u32 {
        let Target::Resource { group, resource, namespace, name, .. } = asked.target else {
            return 0;
        };
        let counts = lock(&self.0);
        let Some(of_kind) = counts.get(group).and_then(|group| group.get(resource)) else {
            return 0;
        };
        let count = |namespace: &str, name: &str| {
            of_kind.get(namespace).and_then(|names| names.get(name)).copied().unwrap_or(0)
        };
        let of_namespace = if namespace.is_empty() { 0 } else { count(namespace, "") };
        let of_object = if name.is_empty() { 0 } else { count(namespace, name) };
        count("", "") + of_namespace + of_object
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        let Some(of_group) = counts.get_mut(&self.group) else { return };
        let Some(of_kind) = of_group.get_mut(&self.resource) else { return };
        let Some(names) = of_kind.get_mut(&self.namespace) else { return };
        if let Some(count) = names.get_mut(&self.name) {
            *count -= 1;
        }
        names.retain(|_, count| *count > 0);
        of_kind.retain(|_, names| !names.is_empty());
        of_group.retain(|_, of_kind| !of_kind.is_empty());
        counts.retain(|_, of_group| !of_group.is_empty());
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Watches;
    use crate::authz::{Attributes, Target};
    use crate::user::User;

    #[test]
    fn a_write_is_heard_by_watches_of_its_kind_its_namespace_and_itself() {
        let watches = Watches::default();
        let jane = User::known("jane", &[]);
        let asked = |namespace, name| {
            let target =
                Target::Resource { group: "", resource: "pods", subresource: "", namespace, name };
            Attributes::new(&jane, "watch", target)
        };
        let held = [("", ""), ("a", ""), ("a", ""), ("a", "x"), ("b", "")]
            .map(|(namespace, name)| watches.begin(&asked(namespace, name)));
        for (namespace, name, expected) in
            [("a", "x", 4), ("a", "y", 3), ("b", "x", 2), ("c", "", 1)]
        {
            assert_eq!(watches.interested(&asked(namespace, name)), expected);
        }
        drop(held);
        assert_eq!(watches.interested(&asked("a", "x")), 0);
        assert!(watches.0.lock().unwrap().is_empty());
    }
}
