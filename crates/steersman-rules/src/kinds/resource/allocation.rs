//! What a claim was given: devices, each for one of its requests, what their drivers are told, and
//! from where they are reached.

use std::collections::HashSet;

use serde_json::Value;

use super::capacity::check_share;
use super::claim_spec::{reference, references};
use super::device::{LIST_MAX, at_most, binding_conditions, configuration, named, pool_name};
use super::taint::fill_tolerations;
use crate::kinds::core::persistent_volume::driver_name;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, within_existing};
use crate::rules::label_selector::node_selector;

/// Those of classes and those of the claim.
const CONFIGS_MAX: usize = 2 * LIST_MAX;

/// Fills in how what was tolerated compares.
pub(super) fn defaults(allocation: &mut Value) {
    within_existing(allocation, "devices", |devices| each(devices, "results", fill_tolerations));
}

/// The mistakes in what a claim is given, which has requests of these names.
pub(super) fn check(allocation: &At<'_, '_>, requests: &HashSet<String>, errors: &mut Errors) {
    let devices = allocation.at("devices");
    let (results, configs) = (devices.at("results"), devices.at("config"));
    if at_most(&results, LIST_MAX, errors) {
        results.items().for_each(|result| check_result(&result, requests, errors));
    }
    if at_most(&configs, CONFIGS_MAX, errors) {
        for config in configs.items() {
            config.at("source").requires_one_of(&["FromClaim", "FromClass"], errors);
            references(&config, requests, errors);
            configuration(&config, false, errors);
        }
    }
    let selector = allocation.at("nodeSelector");
    if selector.is_set() {
        node_selector(&selector, errors);
    }
}

fn check_result(result: &At<'_, '_>, requests: &HashSet<String>, errors: &mut Errors) {
    reference(&result.at("request"), requests, errors);
    driver_name(&result.at("driver"), errors);
    pool_name(&result.at("pool"), errors);
    named(&result.at("device"), names::dns1123_label, errors);
    binding_conditions(result, errors);
    check_share(result, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::resource::resource_claim::status_mistakes;

    fn told(devices: &Value) -> Vec<String> {
        status_mistakes(&json!({}), &json!({"allocation": {"devices": devices}}))
    }

    #[test]
    fn devices_are_given_for_the_requests_of_a_claim() {
        let at = "status.allocation.devices.results";
        let good = json!({"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "a"});
        let with = |field: &str, value: &str| {
            let mut result = good.clone();
            result[field] = value.into();
            told(&json!({"results": [result]}))
        };
        assert!(told(&json!({"results": [good]})).is_empty());
        let unknown = "must be the name of a request in the claim or the name of a request and a \
                       subrequest separated by '/'";
        assert_eq!(
            with("request", "other"),
            [format!("{at}[0].request: Invalid value: \"other\": {unknown}")]
        );
        for field in ["driver", "pool"] {
            assert_eq!(with(field, ""), [format!("{at}[0].{field}: Required value")]);
        }
        let no_device = with("device", "a.b");
        let why = "Invalid value: \"a.b\": must not contain dots";
        assert_eq!(no_device, [format!("{at}[0].device: {why}")]);
        let many = vec![json!({}); 33];
        let too_many = format!("{at}: Too many: 33: must have at most 32 items");
        assert_eq!(told(&json!({"results": many})), [too_many]);
    }

    #[test]
    fn what_drivers_are_told_has_a_source() {
        let at = "status.allocation.devices.config";
        let opaque = json!({"driver": "d.example.com", "parameters": {}});
        let of = |source: &str| {
            told(&json!({"config": [{"source": source, "requests": ["gpu"], "opaque": opaque}]}))
        };
        assert!(of("FromClaim").is_empty() && of("FromClass").is_empty());
        assert_eq!(of(""), [format!("{at}[0].source: Required value")]);
        let why = "Unsupported value: \"Else\": supported values: \"FromClaim\", \"FromClass\"";
        assert_eq!(of("Else"), [format!("{at}[0].source: {why}")]);
        let twice = json!({"source": "FromClaim", "requests": ["gpu", "gpu"]});
        let expected = [
            format!("{at}[0].requests[1]: Duplicate value: \"gpu\""),
            format!("{at}[0].opaque: Required value"),
        ];
        assert_eq!(told(&json!({"config": [twice]})), expected);
        let many = vec![json!({}); 65];
        let too_many = format!("{at}: Too many: 65: must have at most 64 items");
        assert_eq!(told(&json!({"config": many})), [too_many]);
    }

    #[test]
    fn devices_are_reached_from_nodes() {
        let allocation = json!({"nodeSelector": {"nodeSelectorTerms": []}});
        let expected = "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have \
                        at least one node selector term";
        assert_eq!(status_mistakes(&json!({}), &json!({"allocation": allocation})), [expected]);
    }
}
