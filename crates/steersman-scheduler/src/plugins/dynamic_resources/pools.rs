//! The devices that a node reaches, by pool.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSelector};
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use steersman::placement::matches;

/// All slices, found by the node that they are for.
#[derive(Debug)]
pub(super) struct Slices {
    all: Vec<Arc<ResourceSlice>>,
    /// Places of those that are for one node.
    of_node: HashMap<String, Vec<usize>>,
    /// Places of the others.
    others: Vec<usize>,
}

/// Devices of a driver that belong together.
#[derive(Debug)]
pub(super) struct Pool<'s> {
    pub(super) driver: &'s str,
    pub(super) name: &'s str,
    pub(super) state: PoolState,
    /// Those that have devices for the node.
    pub(super) slices: Vec<&'s ResourceSlice>,
    /// The others of a pool whose devices share something.
    pub(super) elsewhere: Vec<&'s ResourceSlice>,
    /// What they share.
    pub(super) counters: Vec<&'s CounterSet>,
}

/// Whether devices can be taken from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolState {
    Usable,
    /// Its driver has not published all of it.
    Incomplete,
    /// It contradicts itself.
    Invalid,
}

impl Slices {
    pub(super) fn new(mut all: Vec<Arc<ResourceSlice>>) -> Self {
        all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut of_node: HashMap<String, Vec<usize>> = HashMap::new();
        let mut others = Vec::new();
        for (place, slice) in all.iter().enumerate() {
            match &slice.spec.node_name {
                Some(node) if counter_sets(slice).is_empty() => {
                    of_node.entry(node.clone()).or_default().push(place);
                }
                _ => others.push(place),
            }
        }
        Self { all, of_node, others }
    }

    /// The slices that have something for a node, whatever else there is of their pools.
    pub(super) fn reaching(&self, node: &Node) -> impl Iterator<Item = &ResourceSlice> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let of_node = self.of_node.get(name).map_or(&[][..], Vec::as_slice);
        let slices = of_node.iter().chain(&self.others).map(|place| &*self.all[*place]);
        slices.filter(move |slice| reaches(slice, node))
    }

    /// The pools with devices for a node: in the order of their names, and those last whose devices
    /// have to be attached first.
    pub(super) fn pools(&self, node: &Node) -> Vec<Pool<'_>> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let of_node = self.of_node.get(name).map_or(&[][..], Vec::as_slice);
        let mut places: Vec<usize> = of_node.iter().chain(&self.others).copied().collect();
        places.sort_unstable();
        let mut found: BTreeMap<(&str, &str), Vec<&ResourceSlice>> = BTreeMap::new();
        for slice in places.into_iter().map(|place| &*self.all[place]) {
            if reaches(slice, node) {
                let of_pool = found.entry((&slice.spec.driver, &slice.spec.pool.name)).or_default();
                let known = of_pool.first().map(|first| first.spec.pool.generation);
                if known.is_some_and(|known| slice.spec.pool.generation < known) {
                    continue; // out of date
                }
                if known.is_some_and(|known| slice.spec.pool.generation > known) {
                    of_pool.clear();
                }
                of_pool.push(slice);
            }
        }
        let pools = found
            .into_iter()
            .filter_map(|((driver, name), slices)| self.pool(driver, name, slices));
        let (later, mut pools): (Vec<_>, Vec<_>) = pools.partition(has_binding_conditions);
        pools.extend(later);
        pools
    }

    /// A pool of which these slices are for the node; none if the driver is just replacing it.
    fn pool<'s>(
        &'s self,
        driver: &'s str,
        name: &'s str,
        slices: Vec<&'s ResourceSlice>,
    ) -> Option<Pool<'s>> {
        let mut pool = Pool {
            driver,
            name,
            state: PoolState::Usable,
            slices: Vec::new(),
            elsewhere: Vec::new(),
            counters: Vec::new(),
        };
        let (generation, count) = {
            let first = &slices.first()?.spec.pool;
            (first.generation, usize::try_from(first.resource_slice_count).unwrap_or_default())
        };
        if slices.len() != count {
            let of_pool = |slice: &&Arc<ResourceSlice>| {
                slice.spec.driver == driver && slice.spec.pool.name == name
            };
            let all: Vec<&'s ResourceSlice> =
                self.all.iter().filter(of_pool).map(|slice| &**slice).collect();
            if all.iter().any(|slice| slice.spec.pool.generation > generation) {
                return None;
            }
            let current = all.into_iter().filter(|it| it.spec.pool.generation == generation);
            let current: Vec<&'s ResourceSlice> = current.collect();
            if current.len() != count {
                pool.state = PoolState::Incomplete;
                return Some(pool);
            }
            let is_new =
                |it: &&ResourceSlice| !slices.iter().any(|known| std::ptr::eq(*known, *it));
            pool.elsewhere = current.into_iter().filter(is_new).collect();
        }
        let (shared, own): (Vec<_>, Vec<_>) =
            slices.into_iter().partition(|slice| !counter_sets(slice).is_empty());
        pool.counters = shared.iter().flat_map(|slice| counter_sets(slice)).collect();
        pool.slices = own;
        if !pool.is_sound() {
            pool.state = PoolState::Invalid;
        }
        Some(pool)
    }
}

impl Pool<'_> {
    /// Whether every device has a name of its own and takes from what there is.
    fn is_sound(&self) -> bool {
        let mut names = HashSet::new();
        let mut sets = HashSet::new();
        let has_counters = |device: &Device| {
            device.consumes_counters.iter().flatten().all(|taken| {
                let set = self.counters.iter().find(|set| set.name == taken.counter_set);
                set.is_some_and(|set| taken.counters.keys().all(|it| set.counters.contains_key(it)))
            })
        };
        let mut everywhere = self.slices.iter().chain(&self.elsewhere).flat_map(|it| devices(it));
        self.slices.iter().flat_map(|slice| devices(slice)).all(|it| names.insert(&it.name))
            && self.counters.iter().all(|set| sets.insert(&set.name))
            && everywhere.all(has_counters)
    }
}

fn has_binding_conditions(pool: &Pool<'_>) -> bool {
    let mut devices = pool.slices.iter().flat_map(|slice| devices(slice));
    devices.any(|device| device.binding_conditions.is_some())
}

/// The devices of a slice.
pub(super) fn devices(slice: &ResourceSlice) -> &[Device] {
    slice.spec.devices.as_deref().unwrap_or_default()
}

fn counter_sets(slice: &ResourceSlice) -> &[CounterSet] {
    slice.spec.shared_counters.as_deref().unwrap_or_default()
}

/// Whether a slice has something for a node. What devices share is for all.
fn reaches(slice: &ResourceSlice, node: &Node) -> bool {
    let spec = &slice.spec;
    if !counter_sets(slice).is_empty() {
        return true;
    }
    if spec.per_device_node_selection == Some(true) {
        return devices(slice).iter().any(|device| is_for(device, node));
    }
    is_on(node, spec.node_name.as_deref(), spec.all_nodes, spec.node_selector.as_ref())
}

/// Whether a node reaches a device that says so itself.
pub(super) fn is_for(device: &Device, node: &Node) -> bool {
    is_on(node, device.node_name.as_deref(), device.all_nodes, device.node_selector.as_ref())
}

fn is_on(
    node: &Node,
    name: Option<&str>,
    everywhere: Option<bool>,
    selector: Option<&NodeSelector>,
) -> bool {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => node.metadata.name.as_deref() == Some(name),
        None => {
            everywhere == Some(true) || selector.is_some_and(|selector| matches(selector, node))
        }
    }
}
