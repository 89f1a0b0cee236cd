//! Label selectors over items: which index answers one fastest, and which items fit.

use kube::core::{Expression, Selector};

use super::index::{BY_LABEL, Items, label_text};
use super::item::Item;
use super::store::Store;
use crate::object::Cacheable;

/// Objects among which everything that fits the selector is: the smallest set that one of its
/// requirements leads to, or everything if none leads anywhere.
pub(super) fn candidates<K: Cacheable>(store: &Store<K>, selector: &[Expression]) -> Items<K> {
    let sets = selector.iter().filter_map(|expression| match expression {
        Expression::Equal(name, value) => Some(store.indexed(BY_LABEL, &label_text(name, value))),
        Expression::Exists(name) => Some(store.indexed(BY_LABEL, name)),
        Expression::In(name, values) => Some(Items::unions(
            values.iter().map(|value| store.indexed(BY_LABEL, &label_text(name, value))),
        )),
        _ => None,
    });
    sets.min_by_key(Items::len).unwrap_or_else(|| store.ordered())
}

/// The requirements of a selector.
pub(super) fn requirements(selector: &Selector) -> Vec<Expression> {
    selector.clone().into_iter().collect()
}

/// Whether an item fits all requirements.
pub(super) fn fits<K: Cacheable>(item: &Item<K>, selector: &[Expression]) -> bool {
    selector.iter().all(|expression| match expression {
        Expression::Equal(name, value) => item.label(name) == Some(value),
        Expression::NotEqual(name, value) => item.label(name) != Some(value),
        Expression::In(name, values) => {
            item.label(name).is_some_and(|value| values.contains(value))
        }
        Expression::NotIn(name, values) => {
            item.label(name).is_none_or(|value| !values.contains(value))
        }
        Expression::Exists(name) => item.label(name).is_some(),
        Expression::DoesNotExist(name) => item.label(name).is_none(),
    })
}
