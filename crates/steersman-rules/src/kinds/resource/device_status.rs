//! What drivers say of the devices that a claim was given.

use std::collections::HashSet;

use serde_json::Value;

use super::capacity::check_share;
use super::device::{at_most, data, named, pool_name, unique};
use crate::field::{FieldError, FieldErrorKind, shown_as_json};
use crate::kinds::core::persistent_volume::driver_name;
use crate::names;
use crate::rules::address::{Cidr, canonical};
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::rules::document::{items, text};

const CONDITIONS_MAX: usize = 8;
const INTERFACE_MAX: usize = 256;
const HARDWARE_ADDRESS_MAX: usize = 128;
const IPS_MAX: usize = 16;

/// What tells a device, or the share of one, from others: driver, pool, device and share.
type Id<'a> = [&'a str; 4];

/// The device that an entry is about.
pub(super) fn id(entry: &Value) -> Id<'_> {
    ["driver", "pool", "device", "shareID"].map(|field| text(&entry[field]))
}

/// The devices that a claim has by its status.
pub(super) fn allocated(status: &Value) -> HashSet<Id<'_>> {
    items(&status["allocation"]["devices"]["results"]).iter().map(id).collect()
}

/// The mistakes in what is said of devices.
pub(super) fn check(status: &At<'_, '_>, errors: &mut Errors) {
    let devices = status.at("devices");
    if devices.is_empty() {
        return;
    }
    let allocated = allocated(status.value);
    for device in devices.items() {
        check_device(&device, &allocated, errors);
    }
    let mut seen = HashSet::new();
    for device in devices.items() {
        let id = id(device.value);
        if !seen.insert(id) {
            let text = format!("Duplicate value: {}", shown(id));
            let kind = FieldErrorKind::Duplicate;
            errors.push(FieldError { kind, field: device.path(), text });
        }
    }
}

fn check_device(device: &At<'_, '_>, allocated: &HashSet<Id<'_>>, errors: &mut Errors) {
    driver_name(&device.at("driver"), errors);
    pool_name(&device.at("pool"), errors);
    named(&device.at("device"), names::dns1123_label, errors);
    check_share(device, errors);
    let id = id(device.value);
    if !allocated.contains(&id) {
        let why = "must be an allocated device in the claim";
        let text = format!("Invalid value: {}: {why}", shown(id));
        let kind = FieldErrorKind::Invalid;
        errors.push(FieldError { kind, field: device.path(), text });
    }
    let list = device.at("conditions");
    at_most(&list, CONDITIONS_MAX, errors);
    conditions(&list, errors);
    let said = device.at("data");
    if said.is_set() {
        data(&said, false, errors);
    }
    check_network(&device.at("networkData"), errors);
}

fn check_network(network: &At<'_, '_>, errors: &mut Errors) {
    for (field, max) in
        [("interfaceName", INTERFACE_MAX), ("hardwareAddress", HARDWARE_ADDRESS_MAX)]
    {
        let field = network.at(field);
        if field.text().len() > max {
            errors.push(field.too_long(max));
        }
    }
    let ips = network.at("ips");
    if at_most(&ips, IPS_MAX, errors) {
        ips.items().for_each(|ip| check_address(&ip, errors));
        unique(&ips, text, errors);
    }
}

/// The mistakes in the address of an interface, with the length of its network's prefix.
fn check_address(address: &At<'_, '_>, errors: &mut Errors) {
    let Some(Cidr { ip, prefix }) = Cidr::parse(address.text()) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        errors.push(address.invalid_value(address.text(), why));
        return;
    };
    // Of an IPv4 address that is dressed as IPv6, the prefix may be as well.
    let is_longer = ip.to_canonical().is_ipv4() && prefix > 32;
    let prefix = i64::from(prefix) - if is_longer { 96 } else { 0 };
    let form = format!("{}/{prefix}", canonical(ip));
    if form != address.text() {
        errors.push(address.invalid(&format!("must be in canonical form ({form:?})")));
    }
}

/// A device as Kubernetes shows it.
fn shown(id: Id<'_>) -> String {
    let [driver, pool, device, share] = id.map(|part| shown_as_json(&Value::from(part)));
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device},\"ShareID\":{share}}}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::resource::resource_claim::status_mistakes;

    /// What is wrong if this is said of devices of a claim that has `a`.
    fn told(devices: &Value) -> Vec<String> {
        let result =
            json!({"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "a"});
        let allocation = json!({"devices": {"results": [result]}});
        let status = |devices: &Value| json!({"allocation": allocation, "devices": devices});
        status_mistakes(&status(&json!([])), &status(devices))
    }

    fn of(device: &str, said: &Value) -> Value {
        let mut entry = said.clone();
        for (field, value) in [("driver", "d.example.com"), ("pool", "p"), ("device", device)] {
            entry[field] = value.into();
        }
        entry
    }

    #[test]
    fn only_of_the_devices_of_a_claim_something_is_said() {
        let shown = |device: &str| {
            format!(
                "{{\"Driver\":\"d.example.com\",\"Pool\":\"p\",\"Device\":\"{device}\",\
                 \"ShareID\":\"\"}}"
            )
        };
        let plain = |device: &str| of(device, &json!({}));
        let at = "status.devices";
        for (devices, expected) in [
            (json!([]), vec![]),
            (json!([plain("a")]), vec![]),
            (
                json!([plain("b")]),
                vec![format!(
                    "{at}[0]: Invalid value: {}: must be an allocated device in the claim",
                    shown("b")
                )],
            ),
            (
                json!([plain("a"), plain("a")]),
                vec![format!("{at}[1]: Duplicate value: {}", shown("a"))],
            ),
        ] {
            assert_eq!(told(&devices), expected, "{devices}");
        }
        let nothing = told(&json!([{}]));
        let required = nothing.iter().filter(|it| it.ends_with("Required value")).count();
        assert_eq!(required, 2, "a driver and a pool: {nothing:?}");
    }

    #[test]
    fn what_is_said_is_not_too_long() {
        let at = "status.devices[0]";
        let too_long = |field: &str, max: usize| {
            format!("{at}.{field}: Too long: may not be more than {max} bytes")
        };
        let no_object = "Invalid value: \"<value omitted>\": must be a valid JSON object";
        let x = |count: usize| "x".repeat(count);
        let condition = |number: usize| {
            json!({"type": format!("c{number}"), "status": "True", "reason": "R", "message": "",
                   "lastTransitionTime": "2030-01-01T00:00:00Z"})
        };
        let conditions = |count: usize| (0..count).map(condition).collect::<Vec<_>>();
        let network = |data: Value| json!({"networkData": data});
        for (said, expected) in [
            (json!({"conditions": conditions(8), "data": {"a": 1}}), vec![]),
            (network(json!({"interfaceName": x(256), "hardwareAddress": x(128)})), vec![]),
            (
                json!({"conditions": conditions(9)}),
                vec![format!("{at}.conditions: Too many: 9: must have at most 8 items")],
            ),
            (json!({"data": [1]}), vec![format!("{at}.data: {no_object}")]),
            (json!({"data": {"a": x(10 * 1024)}}), vec![too_long("data", 10 * 1024)]),
            (
                network(json!({"interfaceName": x(257), "hardwareAddress": x(129)})),
                vec![
                    too_long("networkData.interfaceName", 256),
                    too_long("networkData.hardwareAddress", 128),
                ],
            ),
        ] {
            assert_eq!(told(&json!([of("a", &said)])), expected);
        }
    }

    #[test]
    fn addresses_of_interfaces_are_in_one_form() {
        let at = "status.devices[0].networkData.ips";
        let with = |ips: &[&str]| told(&json!([of("a", &json!({"networkData": {"ips": ips}}))]));
        for ip in ["10.9.8.7/24", "2001:db8::1/64", "10.0.0.0/8"] {
            assert!(with(&[ip]).is_empty(), "{ip}");
        }
        for (ip, form) in [
            ("010.9.8.7/24", "10.9.8.7/24"),
            ("10.9.8.7/024", "10.9.8.7/24"),
            ("2001:DB8::1/64", "2001:db8::1/64"),
            ("::ffff:10.9.8.7/120", "10.9.8.7/24"),
            ("::ffff:10.9.8.7/64", "10.9.8.7/-32"),
        ] {
            let why = format!("must be in canonical form ({form:?})");
            assert_eq!(with(&[ip]), [format!("{at}[0]: Invalid value: {ip:?}: {why}")]);
        }
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        assert_eq!(with(&["10.9.8.7"]), [format!("{at}[0]: Invalid value: \"10.9.8.7\": {why}")]);
        let twice = with(&["10.9.8.7/24", "10.9.8.7/24"]);
        assert_eq!(twice, [format!("{at}[1]: Duplicate value: \"10.9.8.7/24\"")]);
        let too_many = format!("{at}: Too many: 17: must have at most 16 items");
        assert_eq!(with(&[""; 17]), [too_many]);
    }
}
