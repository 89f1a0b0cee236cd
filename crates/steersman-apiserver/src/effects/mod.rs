//! The kinds whose writes mean something to the server itself, in one list, and those of them that
//! have no room of their own.

mod access;
mod admission_policy;
mod device_claim;
mod device_taint_rule;
mod limit_range;
mod resource_slice;
mod signing_request;
mod volume;
mod webhook_configuration;

use steersman_rules::resource::Effect;

use crate::state::effects::Registered;
use crate::{aggregation, allocate, crd};

/// What is registered when a server is assembled.
pub(crate) fn all() -> Registered {
    Registered::default()
        .with(Effect::AdmissionPolicy, admission_policy::Policies)
        .with(Effect::ApiService, aggregation::ApiServices)
        .with(Effect::Definition, crd::Definitions)
        .with(Effect::DeviceClaim, device_claim::Claims)
        .with(Effect::DeviceTaintRule, device_taint_rule::Rules)
        .with(Effect::Instance, crd::Instances)
        .with(Effect::Permission, access::Permissions)
        .with(Effect::LimitRange, limit_range::LimitRanges)
        .with(Effect::PersistentVolume, volume::Volumes)
        .with(Effect::ResourceSlice, resource_slice::Slices)
        .with(Effect::Service, allocate::Services)
        .with(Effect::SigningRequest, signing_request::SigningRequests)
        .with(Effect::WebhookConfiguration, webhook_configuration::Configurations)
}
