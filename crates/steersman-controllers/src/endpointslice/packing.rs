//! Puts endpoints into slices with as few writes as can be.
//!
//! What changed must be written where it stands. Slices that are written anyway are filled up first,
//! the fullest before the others; what is left goes into one that has just enough room, or into new
//! ones. Slices are never repacked for their own sake: a hole costs less than a write that everybody
//! watches. Worked example, with room for three: of `[a b c] [d e]`, when `b` has gone and `f` and `g`
//! come, the first becomes `[a c f]`, and `g` goes to the second; had only `f` come, the second would
//! not have been touched.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::endpoint::Candidate;
use crate::service::{Desired, same_beyond_identity};

/// What happens to slices.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    /// Those that stay as they are.
    pub(super) keep: Vec<Arc<EndpointSlice>>,
    /// How many endpoints are new, and how many are gone.
    pub(super) added: usize,
    pub(super) removed: usize,
}

impl Changes {
    pub(super) fn append(&mut self, mut other: Self) {
        self.create.append(&mut other.create);
        self.update.append(&mut other.update);
        self.delete.append(&mut other.delete);
        self.keep.append(&mut other.keep);
        self.added += other.added;
        self.removed += other.removed;
    }

    /// How many writes that is.
    pub(super) fn writes(&self) -> usize {
        self.create.len() + self.update.len() + self.delete.len()
    }
}

/// A slice that could be new: without endpoints, and the most that it takes.
pub(super) struct Blank<'a> {
    pub(super) slice: &'a EndpointSlice,
    pub(super) max: usize,
}

impl Blank<'_> {
    /// Whether a slice has the labels that a new one would have.
    fn has_labels_of(&self, slice: &EndpointSlice) -> bool {
        self.labels() == slice.metadata.labels.as_ref()
    }

    fn labels(&self) -> Option<&BTreeMap<String, String>> {
        self.slice.metadata.labels.as_ref()
    }

    /// This slice with other endpoints.
    fn revised(&self, slice: &EndpointSlice, endpoints: Vec<Endpoint>) -> EndpointSlice {
        let mut revised = EndpointSlice { endpoints: Some(endpoints), ..slice.clone() };
        revised.metadata.labels = self.labels().cloned();
        revised
    }
}

/// Slices of one sort, and which of their endpoints are as they should be.
#[derive(Default)]
pub(super) struct Standing<'a> {
    slices: Vec<(&'a Arc<EndpointSlice>, Vec<bool>)>,
    /// Where the endpoint of a Pod stands, by its name: in which slice, and there.
    places: HashMap<&'a str, (usize, usize)>,
    same: usize,
}

impl<'a> Standing<'a> {
    /// Adds a slice, all of whose endpoints have to be compared with Pods.
    pub(super) fn add(&mut self, slice: &'a Arc<EndpointSlice>) {
        self.add_settled(slice, |_| false);
    }

    /// Adds a slice in which endpoints of these Pods are as they should be. Gives how many are.
    pub(super) fn add_settled(
        &mut self,
        slice: &'a Arc<EndpointSlice>,
        is_settled: impl Fn(Option<&str>) -> bool,
    ) -> usize {
        let all = endpoints(slice);
        let mut same = Vec::with_capacity(all.len());
        for (index, endpoint) in all.iter().enumerate() {
            let pod = pod_of(endpoint);
            let settled = is_settled(pod);
            if let Some(pod) = pod.filter(|_| !settled) {
                // If several tell of it, the first does from now on.
                self.places.entry(pod).or_insert((self.slices.len(), index));
            }
            same.push(settled);
        }
        let count = same.iter().filter(|same| **same).count();
        self.same += count;
        self.slices.push((slice, same));
        count
    }

    /// Whether a slice tells of a Pod as it is; then that stays.
    pub(super) fn tells_of(&mut self, candidate: &Candidate<'_>) -> bool {
        let name = candidate.pod.metadata.name.as_deref().unwrap_or_default();
        let Some(&(slice, index)) = self.places.get(name) else { return false };
        let (slice, same) = &mut self.slices[slice];
        let is = candidate.is(&endpoints(slice)[index]);
        if is && !same[index] {
            same[index] = true;
            self.same += 1;
        }
        is
    }

    pub(super) fn slices(&self) -> impl Iterator<Item = &'a Arc<EndpointSlice>> {
        self.slices.iter().map(|(slice, _)| *slice)
    }

    /// How many endpoints are as they should be.
    pub(super) fn same(&self) -> usize {
        self.same
    }
}

/// Brings slices of one sort to the endpoints that there should be.
pub(super) fn pack(standing: &Standing<'_>, mut desired: Desired, blank: &Blank<'_>) -> Changes {
    let mut changes = Changes::default();
    for (slice, same) in &standing.slices {
        revise(slice, same, &mut desired, blank, &mut changes);
    }
    changes.added = desired.len();
    let mut rest: VecDeque<Endpoint> = desired.rest().collect();
    changes.update.sort_by_key(|slice| Reverse(endpoints(slice).len()));
    for slice in &mut changes.update {
        fill(slice, &mut rest, blank.max);
    }
    while !rest.is_empty() {
        let roomy = roomiest(&changes.keep, rest.len(), blank.max);
        let mut slice = match roomy {
            Some(index) => Arc::unwrap_or_clone(changes.keep.remove(index)),
            None => blank.slice.clone(),
        };
        fill(&mut slice, &mut rest, blank.max);
        let list = if roomy.is_some() { &mut changes.update } else { &mut changes.create };
        list.push(slice);
    }
    changes
}

/// Takes out of a slice what should not be there, and brings what should to what it is now.
fn revise(
    slice: &Arc<EndpointSlice>,
    same: &[bool],
    desired: &mut Desired,
    blank: &Blank<'_>,
    changes: &mut Changes,
) {
    if same.iter().all(|same| *same) && !same.is_empty() && blank.has_labels_of(slice) {
        changes.keep.push(Arc::clone(slice));
        return;
    }
    let mut differs = false;
    let mut stay = Vec::new();
    for (endpoint, same) in endpoints(slice).iter().zip(same) {
        if *same {
            stay.push(Endpoint { hints: None, ..endpoint.clone() });
            continue;
        }
        let Some(wanted) = desired.take(endpoint) else { continue };
        differs |= !same_beyond_identity(&wanted, endpoint);
        stay.push(wanted);
    }
    let gone = endpoints(slice).len() - stay.len();
    changes.removed += gone;
    if (differs || gone > 0) && stay.is_empty() {
        changes.delete.push(Arc::clone(slice));
    } else if differs || gone > 0 {
        changes.update.push(blank.revised(slice, stay));
    } else if !blank.has_labels_of(slice) {
        changes.update.push(blank.revised(slice, endpoints(slice).to_vec()));
    } else {
        changes.keep.push(Arc::clone(slice));
    }
}

/// The slice that comes closest to being full with so many more, if any has room for them.
fn roomiest(slices: &[Arc<EndpointSlice>], more: usize, max: usize) -> Option<usize> {
    let room = |slice: &EndpointSlice| max.checked_sub(endpoints(slice).len() + more);
    let roomy = slices.iter().enumerate().filter_map(|(index, slice)| Some((room(slice)?, index)));
    roomy.filter(|(room, _)| *room < max).min().map(|(_, index)| index)
}

fn fill(slice: &mut EndpointSlice, rest: &mut VecDeque<Endpoint>, max: usize) {
    let endpoints = slice.endpoints.get_or_insert_default();
    let room = max.saturating_sub(endpoints.len()).min(rest.len());
    endpoints.extend(rest.drain(..room));
}

/// The endpoints of a slice.
pub(super) fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// The name of the Pod that an endpoint is of.
pub(super) fn pod_of(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.name.as_deref()
}
