//! How many devices of a class there are on a node, and how many of them are taken.
//!
//! Nodes that give out an extended resource as devices are compared by these, as others are by what
//! they have of it. As in Kubernetes that counts all devices that are published, also those that
//! nobody could be given now.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, DeviceClass, ResourceSlice};

use super::pools::{Slices, devices, is_for};
use crate::framework::{ClassResources, Cycle};
use crate::plugins::allocations::Taken;
use crate::plugins::device_selectors::{Selectors, is_true};
use crate::plugins::handle::Handle;

/// The devices that a Pod may get as extended resources, as one attempt sees them.
#[derive(Clone)]
pub(crate) struct DeviceTotals(Arc<Seen>);

struct Seen {
    slices: Slices,
    /// Those that somebody has.
    taken: Taken,
    /// By the resource that stands for one of their devices.
    classes: HashMap<String, Arc<DeviceClass>>,
    selectors: Arc<Selectors>,
}

/// How many devices there are.
pub(crate) struct Total {
    pub(crate) all: i64,
    pub(crate) taken: i64,
}

impl DeviceTotals {
    /// Of the classes that stand for what the Pod asks for.
    pub(crate) fn of(cycle: &Cycle<'_>, handle: &Handle) -> Self {
        let known = |(resource, class): (&str, &str)| {
            Some((resource.to_owned(), cycle.lister.device_class(class)?))
        };
        let classes = cycle.state.get::<ClassResources>();
        Self(Arc::new(Seen {
            slices: Slices::new(cycle.lister.resource_slices()),
            taken: handle.allocations.devices(|| cycle.lister.resource_claims()),
            classes: classes.into_iter().flat_map(ClassResources::iter).filter_map(known).collect(),
            selectors: Arc::clone(&handle.selectors),
        }))
    }

    /// How many devices a node has for a resource; nothing if it has none, or if that cannot be said.
    pub(crate) fn on(&self, node: &Node, resource: &str) -> Option<Total> {
        let Self(seen) = self;
        let class = seen.classes.get(resource)?;
        let mut total = Total { all: 0, taken: 0 };
        for slice in seen.slices.reaching(node) {
            let asks_devices = slice.spec.per_device_node_selection == Some(true);
            let (driver, pool) = (&*slice.spec.driver, &*slice.spec.pool.name);
            for device in devices(slice).iter().filter(|it| !asks_devices || is_for(it, node)) {
                if seen.is_of(class, slice, device)? {
                    total.all += 1;
                    let is_free = seen.taken.of([driver, pool, &device.name]).is_free();
                    total.taken += i64::from(!is_free);
                }
            }
        }
        (total.all > 0).then_some(total)
    }
}

impl Seen {
    /// Whether a device is of a class; nothing if an expression is wrong.
    fn is_of(&self, class: &DeviceClass, slice: &ResourceSlice, device: &Device) -> Option<bool> {
        let selectors = class.spec.selectors.iter().flatten();
        for cel in selectors.filter_map(|selector| selector.cel.as_ref()) {
            let compiled = self.selectors.get(&cel.expression);
            let program = compiled.as_ref().as_ref().ok()?;
            if !is_true(program, &slice.spec.driver, device).ok()? {
                return Some(false);
            }
        }
        Some(true)
    }
}
