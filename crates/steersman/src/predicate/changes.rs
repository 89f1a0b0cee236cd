//! The ready predicates: what changed between two versions of an object, and its labels. They
//! read metadata only, so a cache that holds objects compactly decodes no more than that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Expression, Selector};

use super::{Rule, is_of_deletion};
use crate::cache::{Item, fits};
use crate::informer::Event;
use crate::object::Cacheable;

/// Only updates that changed the desired state: `metadata.generation` went up. For kinds
/// whose status changes often. Kinds without a generation pass.
pub fn generation_changed<K: Cacheable>() -> Rule<K> {
    on_update(|old, new| new.generation.is_none() || old.generation != new.generation)
}

/// Only updates that changed anything at all, which all do but those that were made up.
pub fn resource_version_changed<K: Cacheable>() -> Rule<K> {
    on_update(|old, new| old.resource_version != new.resource_version)
}

/// Only updates that changed the labels.
pub fn label_changed<K: Cacheable>() -> Rule<K> {
    on_update(|old, new| old.labels != new.labels)
}

/// Only updates that changed the annotations.
pub fn annotation_changed<K: Cacheable>() -> Rule<K> {
    on_update(|old, new| old.annotations != new.annotations)
}

/// Only objects whose labels fit, or did before the update: who leaves the selection is noticed
/// once more. `label_selector(selector::parse("app=web")?)`.
pub fn label_selector<K: Cacheable>(selector: Selector) -> Rule<K> {
    let requirements: Vec<Expression> = selector.into_iter().collect();
    Rule::new(move |event: &Event<K>| event.objects().any(|item| fits(item, &requirements)))
}

fn on_update<K: Cacheable>(
    changed: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static,
) -> Rule<K> {
    Rule::deciding(move |event: &Event<K>, strict| {
        let Event::Updated { old, new } = event else { return None };
        if !strict && is_of_deletion(event) {
            return None;
        }
        both(old, new, &changed)
    })
}

/// Nothing, if either cannot be read.
fn both<K: Cacheable>(
    old: &Item<K>,
    new: &Item<K>,
    changed: impl Fn(&ObjectMeta, &ObjectMeta) -> bool,
) -> Option<bool> {
    Some(changed(&*old.meta()?, &*new.meta()?))
}
