//! A heap whose items can be found and taken out by the uid of their Pod.

use std::collections::HashMap;
use std::sync::Arc;

use super::pending::Pending;

/// Whether the first of two comes before the second.
pub(super) type Before<'a> = &'a dyn Fn(&Pending, &Pending) -> bool;

/// The first of its items is at the top. Who uses it always gives the same order.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: Vec<Pending>,
    places: HashMap<Arc<str>, usize>,
}

impl Heap {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.items.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn first(&self) -> Option<&Pending> {
        self.items.first()
    }

    pub(super) fn get_mut(&mut self, uid: &str) -> Option<&mut Pending> {
        self.places.get(uid).map(|place| &mut self.items[*place])
    }

    pub(super) fn push(&mut self, item: Pending, before: Before<'_>) {
        self.remove(&item.info.uid.clone(), before);
        self.places.insert(Arc::clone(&item.info.uid), self.items.len());
        self.items.push(item);
        self.rise(self.items.len() - 1, before);
    }

    pub(super) fn pop(&mut self, before: Before<'_>) -> Option<Pending> {
        let uid = Arc::clone(&self.items.first()?.info.uid);
        self.remove(&uid, before)
    }

    pub(super) fn remove(&mut self, uid: &str, before: Before<'_>) -> Option<Pending> {
        let place = self.places.remove(uid)?;
        let item = self.items.swap_remove(place);
        if place < self.items.len() {
            self.note(place);
            self.rise(place, before);
            self.sink(place, before);
        }
        Some(item)
    }

    fn rise(&mut self, mut place: usize, before: Before<'_>) {
        while place > 0 {
            let above = (place - 1) / 2;
            if !before(&self.items[place], &self.items[above]) {
                break;
            }
            self.swap(place, above);
            place = above;
        }
    }

    fn sink(&mut self, mut place: usize, before: Before<'_>) {
        loop {
            let mut first = place;
            for below in [2 * place + 1, 2 * place + 2] {
                if below < self.items.len() && before(&self.items[below], &self.items[first]) {
                    first = below;
                }
            }
            if first == place {
                break;
            }
            self.swap(place, first);
            place = first;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
        self.note(a);
        self.note(b);
    }

    fn note(&mut self, place: usize) {
        let uid = Arc::clone(&self.items[place].info.uid);
        self.places.insert(uid, place);
    }
}
