//! The devices that a node reaches, and which of them are taken for a claim.

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::pools::{Pool, devices};
use crate::plugins::allocations::{Holding, Taken as Devices};
use crate::plugins::consumed::Consumed;

/// A device that a node reaches.
pub(super) struct Candidate<'s> {
    pub(super) pool: usize,
    pub(super) slice: &'s ResourceSlice,
    pub(super) device: &'s Device,
    /// What others have of it.
    pub(super) held: Holding,
}

impl Candidate<'_> {
    /// Whether several claims can have a share of it at the same time.
    pub(super) fn can_be_shared(&self) -> bool {
        self.device.allow_multiple_allocations == Some(true)
    }
}

/// A device that was taken for a request.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) candidate: usize,
    pub(super) request: usize,
    pub(super) alternative: usize,
    /// How much of it, if others may have it as well.
    pub(super) share: Option<Consumed>,
    /// Whether counters were taken for it: who shares a device does that only once.
    pub(super) has_counters: bool,
}

/// All devices of these pools, with what others have `taken` of them.
pub(super) fn candidates<'s>(pools: &[Pool<'s>], taken: &Devices) -> Vec<Candidate<'s>> {
    let mut candidates = Vec::new();
    for (place, pool) in pools.iter().enumerate() {
        for slice in &pool.slices {
            candidates.extend(devices(slice).iter().map(|device| Candidate {
                pool: place,
                slice,
                device,
                held: taken.of([pool.driver, pool.name, &device.name]),
            }));
        }
    }
    candidates
}
