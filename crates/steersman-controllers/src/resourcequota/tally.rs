//! What the objects of one resource use, by namespace. Pure: changes in, namespaces to count out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use steersman::ObjectKey;
use steersman_rules::quota::{Amounts, Evaluator, Measure, Quota};

/// What objects use, by their names.
type Objects = HashMap<Arc<str>, Measure>;

/// What every object of a resource uses.
#[derive(Debug)]
pub(super) struct Tally {
    evaluator: Evaluator,
    namespaces: BTreeMap<Arc<str>, Objects>,
}

impl Tally {
    pub(super) fn new(evaluator: Evaluator) -> Self {
        Self { evaluator, namespaces: BTreeMap::new() }
    }

    /// Takes in an object as it is now. Says in which namespace quotas have to be counted for it:
    /// none for a new object, since it was charged when it was admitted.
    pub(super) fn observe(&mut self, key: &ObjectKey, object: &Value) -> Option<Arc<str>> {
        let namespace = key.namespace.clone()?;
        let measure = self.evaluator.measure(object);
        let objects = self.namespaces.entry(Arc::clone(&namespace)).or_default();
        let before = objects.insert(Arc::clone(&key.name), measure);
        (before.is_some() && before.as_ref() != objects.get(&key.name)).then_some(namespace)
    }

    /// Takes note that an object is gone.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<str>> {
        let namespace = key.namespace.clone()?;
        let objects = self.namespaces.get_mut(&namespace)?;
        let removed = objects.remove(&key.name);
        if objects.is_empty() {
            self.namespaces.remove(&namespace);
        }
        removed.map(|_| namespace)
    }

    /// Takes in all objects there are, besides those that could not be read.
    pub(super) fn replace(
        &mut self,
        objects: &[(ObjectKey, Value)],
        skipped: &[ObjectKey],
    ) -> BTreeSet<Arc<str>> {
        let present = objects.iter().map(|(key, _)| key).chain(skipped);
        let present: BTreeSet<&ObjectKey> = present.collect();
        let known = self.namespaces.iter().flat_map(|(namespace, objects)| {
            let key = |name: &Arc<str>| ObjectKey {
                namespace: Some(Arc::clone(namespace)),
                name: Arc::clone(name),
            };
            objects.keys().map(key).collect::<Vec<_>>()
        });
        let gone: Vec<ObjectKey> = known.filter(|key| !present.contains(key)).collect();
        let gone: Vec<_> = gone.iter().filter_map(|key| self.remove(key)).collect();
        let changed = objects.iter().filter_map(|(key, object)| self.observe(key, object));
        gone.into_iter().chain(changed.collect::<Vec<_>>()).collect()
    }

    /// What the objects in a namespace that are in the scopes of a quota use of these names;
    /// nothing of those that no object uses.
    pub(super) fn usage(&self, namespace: &str, quota: &Quota, now: Timestamp) -> Amounts {
        let mut usage = Amounts::default();
        for measure in self.namespaces.get(namespace).into_iter().flat_map(HashMap::values) {
            if quota.has_in_scope(measure) {
                usage.add(&measure.usage(now));
            }
        }
        usage
    }

    /// Whether objects of this resource count under a name.
    pub(super) fn counts(&self, name: &str) -> bool {
        self.evaluator.counts(name)
    }
}
