//! What a claim asks for: requests, each for exactly one sort of device or for the first of several
//! that is available.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim,
};

use super::capacity::Amounts;
use super::constraint::For;

/// How many devices a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Exactly(usize),
    /// All that it selects.
    All,
}

/// A request, or an alternative of one, before its class is known.
pub(super) struct Asked<'c> {
    request: &'c str,
    alternative: Option<&'c str>,
    pub(super) class_name: &'c str,
    mode: Mode,
    selectors: &'c [DeviceSelector],
    tolerations: &'c [DeviceToleration],
    capacity: Option<&'c Amounts>,
    is_admin: bool,
}

/// A request, or an alternative of one.
#[derive(Clone)]
pub(super) struct Request<'c> {
    pub(super) request: &'c str,
    pub(super) alternative: Option<&'c str>,
    /// Its own name, without that of the request whose alternative it is.
    pub(super) name: &'c str,
    pub(super) class: Arc<DeviceClass>,
    pub(super) mode: Mode,
    pub(super) selectors: &'c [DeviceSelector],
    pub(super) tolerations: &'c [DeviceToleration],
    /// How much it wants of the capacities of each device.
    pub(super) capacity: Option<&'c Amounts>,
    /// Whether it may have devices that others have.
    pub(super) is_admin: bool,
    /// The places of all devices that it selects, if it wants all.
    pub(super) all: Vec<usize>,
}

impl<'c> Asked<'c> {
    pub(super) fn name(&self) -> &'c str {
        self.alternative.unwrap_or(self.request)
    }

    pub(super) fn is_alternative(&self) -> bool {
        self.alternative.is_some()
    }

    /// Its name, with that of the request whose alternative it is.
    pub(super) fn full_name(&self) -> String {
        full_name(self.request, self.alternative)
    }

    pub(super) fn of(self, class: Arc<DeviceClass>) -> Request<'c> {
        Request {
            request: self.request,
            alternative: self.alternative,
            name: self.name(),
            class,
            mode: self.mode,
            selectors: self.selectors,
            tolerations: self.tolerations,
            capacity: self.capacity,
            is_admin: self.is_admin,
            all: Vec::new(),
        }
    }
}

impl<'c> Request<'c> {
    pub(super) fn count(&self) -> usize {
        match self.mode {
            Mode::Exactly(count) => count,
            Mode::All => self.all.len(),
        }
    }

    /// Its name, with that of the request whose alternative it is.
    pub(super) fn full_name(&self) -> String {
        full_name(self.request, self.alternative)
    }

    pub(super) fn of_constraint(&self) -> For<'c> {
        For { request: self.request, alternative: self.alternative }
    }
}

/// The requests of a claim, each with its alternatives.
pub(super) fn requests(claim: &ResourceClaim) -> Vec<Vec<Asked<'_>>> {
    let requests = claim.spec.devices.iter().flat_map(|it| it.requests.iter().flatten());
    requests.map(alternatives).collect()
}

fn alternatives(request: &DeviceRequest) -> Vec<Asked<'_>> {
    if let Some(exactly) = &request.exactly {
        return vec![Asked {
            request: &request.name,
            alternative: None,
            class_name: &exactly.device_class_name,
            mode: mode(exactly.allocation_mode.as_deref(), exactly.count),
            selectors: exactly.selectors.as_deref().unwrap_or_default(),
            tolerations: exactly.tolerations.as_deref().unwrap_or_default(),
            capacity: exactly.capacity.as_ref().and_then(|it| it.requests.as_ref()),
            is_admin: exactly.admin_access.unwrap_or_default(),
        }];
    }
    let alternatives = request.first_available.iter().flatten().map(|sub| Asked {
        request: &request.name,
        alternative: Some(&sub.name),
        class_name: &sub.device_class_name,
        mode: mode(sub.allocation_mode.as_deref(), sub.count),
        selectors: sub.selectors.as_deref().unwrap_or_default(),
        tolerations: sub.tolerations.as_deref().unwrap_or_default(),
        capacity: sub.capacity.as_ref().and_then(|it| it.requests.as_ref()),
        is_admin: false,
    });
    alternatives.collect()
}

fn full_name(request: &str, alternative: Option<&str>) -> String {
    match alternative {
        Some(alternative) => format!("{request}/{alternative}"),
        None => request.to_owned(),
    }
}

fn mode(mode: Option<&str>, count: Option<i64>) -> Mode {
    match mode {
        Some("All") => Mode::All,
        _ => Mode::Exactly(usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX / 2)),
    }
}
