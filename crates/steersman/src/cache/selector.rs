//! Label selectors over items: which index answers one fastest, and which items fit.

use kube::core::{Expression, Selector};

use super::index::{BY_LABEL, Items, label_text};
use super::item::Item;
use super::store::Store;

/// Sets, no two with an object in common, among which everything is that fits the selector: the
/// smallest that one of its requirements leads to, or everything if none leads anywhere.
pub(super) fn candidates(store: &Store, selector: &[Expression]) -> Vec<Items> {
    let labelled = |name: &str, value: &str| store.indexed(BY_LABEL, &label_text(name, value));
    let sets = selector.iter().filter_map(|expression| match expression {
        Expression::Equal(name, value) => Some(vec![labelled(name, value)]),
        Expression::Exists(name) => Some(vec![store.indexed(BY_LABEL, name)]),
        // An object has one value of a label.
        Expression::In(name, values) => {
            Some(values.iter().map(|value| labelled(name, value)).collect())
        }
        _ => None,
    });
    let smallest = sets.min_by_key(|sets: &Vec<Items>| sets.iter().map(Items::len).sum::<usize>());
    smallest.unwrap_or_else(|| vec![store.ordered()])
}

/// The requirements of a selector.
pub(super) fn requirements(selector: &Selector) -> Vec<Expression> {
    selector.clone().into_iter().collect()
}

/// Whether an item fits all requirements.
pub(crate) fn fits<K>(item: &Item<K>, selector: &[Expression]) -> bool {
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
