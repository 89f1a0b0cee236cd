//! The kinds whose caches a controller reads, as it declared them.
//!
//! One resource may be read in several forms: whole, its metadata alone, a slim type of the
//! author's own, a document. What is written in one of them must be waited for in all.

use std::collections::HashSet;
use std::sync::Arc;

use crate::cache::AnyCache;
use crate::caches::Caches;
use crate::kind::{Kind, KindId, KindNames};
use crate::object::AnyObject;

/// The kinds whose caches a controller reads.
#[derive(Default)]
pub(crate) struct Declared {
    ids: HashSet<KindId>,
    forms: Vec<Box<dyn Form>>,
}

/// One form of a resource, whose type has been forgotten.
trait Form: Send + Sync {
    fn is_of(&self, group: &str, plural: &str) -> bool;

    /// Its cache, while there is one.
    fn cache(&self, caches: &Caches) -> Option<Arc<dyn AnyCache>>;
}

impl<K: AnyObject> Form for Kind<K> {
    fn is_of(&self, group: &str, plural: &str) -> bool {
        self.plural() == plural && self.group() == group
    }

    fn cache(&self, caches: &Caches) -> Option<Arc<dyn AnyCache>> {
        caches.find_untyped(&self.id()).map(|cache| Arc::new(cache) as _)
    }
}

impl Declared {
    pub(crate) fn insert<K: AnyObject>(&mut self, kind: &Kind<K>) {
        if self.ids.insert(kind.id()) {
            self.forms.push(Box::new(kind.clone()));
        }
    }

    pub(crate) fn contains<K: AnyObject>(&self, kind: &Kind<K>) -> bool {
        self.ids.contains(&kind.id())
    }

    /// Every cache that holds the objects of this kind, in whatever form and version.
    pub(crate) fn caches_of(
        &self,
        kind: &KindNames<'_>,
        caches: &Caches,
    ) -> impl Iterator<Item = Arc<dyn AnyCache>> {
        self.caches_named(&kind.group, &kind.plural, caches)
    }

    /// The same by the names of the resource.
    pub(crate) fn caches_named(
        &self,
        group: &str,
        plural: &str,
        caches: &Caches,
    ) -> impl Iterator<Item = Arc<dyn AnyCache>> {
        let forms = self.forms.iter().filter(move |form| form.is_of(group, plural));
        forms.filter_map(move |form| form.cache(caches))
    }
}
