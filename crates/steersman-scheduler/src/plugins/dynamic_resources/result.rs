//! What is written into a claim whose devices were found.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult,
    DeviceRequestAllocationResult, ResourceClaim,
};

use super::candidate::{Candidate, Taken};
use super::pools::Pool;
use super::request::Request;
use super::uuid::random_uuid;
use crate::plugins::consumed::Consumed;

/// What was found for a claim.
pub(super) struct Found<'a> {
    pub(super) node: &'a Node,
    pub(super) pools: &'a [Pool<'a>],
    pub(super) candidates: &'a [Candidate<'a>],
    pub(super) taken: &'a [Taken],
}

impl Found<'_> {
    pub(super) fn result(
        &self,
        claim: &ResourceClaim,
        requests: &[Vec<Request<'_>>],
    ) -> Result<AllocationResult, String> {
        let results = self.taken.iter().map(|taken| {
            let request = &requests[taken.request][taken.alternative];
            let candidate = &self.candidates[taken.candidate];
            let pool = &self.pools[candidate.pool];
            DeviceRequestAllocationResult {
                request: request.full_name(),
                driver: pool.driver.to_owned(),
                pool: pool.name.to_owned(),
                device: candidate.device.name.clone(),
                admin_access: request.is_admin.then_some(true),
                tolerations: (!request.tolerations.is_empty())
                    .then(|| request.tolerations.to_vec()),
                binding_conditions: candidate.device.binding_conditions.clone(),
                binding_failure_conditions: candidate.device.binding_failure_conditions.clone(),
                share_id: taken.share.as_ref().map(|_| random_uuid()),
                consumed_capacity: taken.share.as_ref().and_then(Consumed::written),
            }
        });
        let results: Vec<_> = results.collect();
        let config = self.configuration(claim, requests);
        let node_selector = self.node_selector().map_err(|why| {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            format!("create NodeSelector for claim {name}: {why}")
        })?;
        let devices = DeviceAllocationResult {
            config: (!config.is_empty()).then_some(config),
            results: (!results.is_empty()).then_some(results),
        };
        let devices = Some(devices);
        Ok(AllocationResult { devices, node_selector, ..AllocationResult::default() })
    }

    /// The alternative of each request that was taken.
    fn chosen<'r>(&self, requests: &'r [Vec<Request<'r>>]) -> Vec<Option<&'r Request<'r>>> {
        let alternative = |number: usize| {
            let taken = self.taken.iter().find(|taken| taken.request == number);
            taken.map_or(0, |taken| taken.alternative)
        };
        let numbered = requests.iter().enumerate();
        numbered.map(|(number, alternatives)| alternatives.get(alternative(number))).collect()
    }

    /// What drivers are told: by classes, each once, and then by the claim.
    fn configuration(
        &self,
        claim: &ResourceClaim,
        requests: &[Vec<Request<'_>>],
    ) -> Vec<DeviceAllocationConfiguration> {
        let mut told: Vec<DeviceAllocationConfiguration> = Vec::new();
        let mut of_class: HashMap<&str, std::ops::Range<usize>> = HashMap::new();
        let chosen = self.chosen(requests);
        for request in chosen.iter().flatten() {
            let class = request.class.metadata.name.as_deref().unwrap_or_default();
            if let Some(range) = of_class.get(class) {
                for config in &mut told[range.clone()] {
                    config.requests.get_or_insert_default().push(request.full_name());
                }
                continue;
            }
            let start = told.len();
            told.extend(request.class.spec.config.iter().flatten().map(|config| {
                DeviceAllocationConfiguration {
                    source: "FromClass".to_owned(),
                    requests: Some(vec![request.full_name()]),
                    opaque: config.opaque.clone(),
                }
            }));
            of_class.insert(class, start..told.len());
        }
        let of_claim = claim.spec.devices.iter().flat_map(|it| it.config.iter().flatten());
        for config in of_claim {
            let wanted = config.requests.as_deref().unwrap_or_default();
            let is_meant = |request: &&&Request<'_>| {
                let full_name = request.full_name();
                wanted.iter().any(|it| it == request.request || *it == full_name)
            };
            let count = match wanted.is_empty() {
                true => 1,
                false => chosen.iter().flatten().filter(is_meant).count(),
            };
            let config = DeviceAllocationConfiguration {
                source: "FromClaim".to_owned(),
                requests: config.requests.clone(),
                opaque: config.opaque.clone(),
            };
            told.extend(std::iter::repeat_n(config, count));
        }
        told
    }

    /// From which nodes all devices are reached; none if from all.
    fn node_selector(&self) -> Result<Option<NodeSelector>, String> {
        let mut term = NodeSelectorTerm::default();
        for taken in self.taken {
            let Candidate { slice, device, .. } = &self.candidates[taken.candidate];
            let (node_name, selector) = match slice.spec.per_device_node_selection {
                Some(true) => (&device.node_name, &device.node_selector),
                _ => (&slice.spec.node_name, &slice.spec.node_selector),
            };
            if node_name.is_some() || device.binds_to_node == Some(true) {
                return Ok(Some(only(self.node)));
            }
            match selector.as_ref().map(|it| it.node_selector_terms.as_slice()) {
                None | Some([]) => {}
                Some([one]) => {
                    add(&mut term.match_fields, one.match_fields.as_deref());
                    add(&mut term.match_expressions, one.match_expressions.as_deref());
                }
                Some(more) => {
                    let count = more.len();
                    return Err(format!(
                        "unsupported ResourceSlice.NodeSelector with {count} terms"
                    ));
                }
            }
        }
        let is_limited = term != NodeSelectorTerm::default();
        Ok(is_limited.then(|| NodeSelector { node_selector_terms: vec![term] }))
    }
}

fn only(node: &Node) -> NodeSelector {
    let field = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(node.metadata.name.iter().cloned().collect()),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![field]), ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}

/// Adds what is not there yet.
fn add(to: &mut Option<Vec<NodeSelectorRequirement>>, from: Option<&[NodeSelectorRequirement]>) {
    for requirement in from.unwrap_or_default() {
        let known = to.get_or_insert_default();
        if !known.contains(requirement) {
            known.push(requirement.clone());
        }
    }
}
