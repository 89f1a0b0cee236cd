//! A state in the making: objects put aside until all of them are there.
//!
//! Nothing of it is delivered before it is complete, so a list or stream that breaks leaves no trace.

use std::collections::{HashMap, HashSet};

use super::{Delta, Keyed};
use crate::object::{ObjectKey, version_of};

pub(super) struct Gathered<T> {
    objects: Vec<Option<T>>,
    skipped: HashSet<ObjectKey>,
    /// Where each object is. Only needed once something other than additions comes.
    places: Option<HashMap<ObjectKey, usize>>,
}

impl<T: Keyed> Gathered<T> {
    pub(super) fn new() -> Self {
        Self { objects: Vec::new(), skipped: HashSet::new(), places: None }
    }

    /// An object of the state.
    pub(super) fn add(&mut self, object: T) {
        if self.places.is_some() {
            return self.change(object);
        }
        self.objects.push(Some(object));
    }

    /// An object that changed while the state was being read.
    pub(super) fn change(&mut self, object: T) {
        let key = object.key();
        self.skipped.remove(&key);
        let end = self.objects.len();
        let place = *self.places().entry(key).or_insert(end);
        if place == end {
            self.objects.push(Some(object));
        } else {
            self.objects[place] = Some(object);
        }
    }

    /// An object that was deleted while the state was being read.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.skipped.remove(key);
        if let Some(place) = self.places().remove(key) {
            self.objects[place] = None;
        }
    }

    /// An object that exists and cannot be decoded.
    pub(super) fn skip(&mut self, key: ObjectKey) {
        self.skipped.insert(key);
    }

    /// The objects that exist and cannot be decoded.
    pub(super) fn skipped(&self) -> impl Iterator<Item = &ObjectKey> {
        self.skipped.iter()
    }

    /// The whole state, at `version`.
    pub(super) fn into_delta(self, version: &str) -> Delta<T> {
        Delta::Replaced {
            objects: self.objects.into_iter().flatten().collect(),
            skipped: self.skipped.into_iter().collect(),
            version: version_of(Some(version)),
        }
    }

    fn places(&mut self) -> &mut HashMap<ObjectKey, usize> {
        self.places.get_or_insert_with(|| {
            let present = self.objects.iter().enumerate();
            present.filter_map(|(place, object)| Some((object.as_ref()?.key(), place))).collect()
        })
    }
}
