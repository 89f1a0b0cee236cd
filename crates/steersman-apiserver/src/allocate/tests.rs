//! What is handed out is handed out once.

use std::collections::HashSet;
use std::net::IpAddr;

use serde_json::json;

use super::holdings;
use crate::random::Random;
use crate::state::node_ports::{PortError, Ports};
use crate::state::service_ranges::{NotServiceRanges, Range, ServiceRanges};

#[test]
fn the_network_its_last_address_and_strangers_are_not_handed_out() {
    let ranges: ServiceRanges = "10.96.0.0/12".parse().unwrap();
    for (address, expected) in [
        ("10.96.0.0", false),
        ("10.96.0.1", true),
        ("10.111.255.254", true),
        ("10.111.255.255", false),
        ("10.112.0.1", false),
        ("10.95.255.255", false),
        ("fd00::1", false),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(ranges.primary().contains(address), expected, "{address}");
    }
    let sixth = Range::parse("fd00:10:96::/112").unwrap();
    for (address, expected) in [
        ("fd00:10:96::", false),
        ("fd00:10:96::1", true),
        ("fd00:10:96::ffff", true),
        ("fd00:10:96::1:0", false),
        ("10.96.0.1", false),
    ] {
        assert_eq!(sixth.contains(address.parse().unwrap()), expected, "{address}");
    }
    assert!(sixth.contains(sixth.guess(u64::MAX)));
    let huge = Range::parse("fd00::/48").unwrap();
    assert!(huge.contains(huge.guess(u64::MAX)));
}

#[test]
fn a_small_range_is_handed_out_to_its_last_address() {
    for (cidr, addresses) in [
        ("10.0.0.0/30", 2),
        ("10.0.0.0/28", 14),
        ("10.0.0.0/27", 30),
        ("fd00::/126", 3), // no address of IPv6 stands for all
        ("fd00::/124", 15),
    ] {
        let range = Range::parse(cidr).unwrap();
        let mut taken = HashSet::new();
        while let Some(address) = range.search(7, |address| taken.contains(&address)) {
            taken.insert(address);
        }
        assert_eq!(taken.len(), addresses, "{cidr}");
    }
}

#[test]
fn the_server_picks_behind_the_addresses_that_are_left_to_others_until_those_are_gone() {
    let range = Range::parse("10.0.0.0/26").unwrap();
    let mut taken = HashSet::new();
    let first: IpAddr = "10.0.0.16".parse().unwrap();
    for round in 0..47_u64 {
        let address = range.search(round * 31, |address| taken.contains(&address)).unwrap();
        assert!(address >= first && range.contains(address));
        assert!(taken.insert(address));
    }
    for round in 0..15_u64 {
        let address = range.search(round * 31, |address| taken.contains(&address)).unwrap();
        assert!(address < first && range.contains(address));
        assert!(taken.insert(address));
    }
    assert_eq!(range.search(7, |address| taken.contains(&address)), None);
}

#[test]
fn ranges_are_one_of_each_family_at_most() {
    for text in ["10.96.0.0/12", "fd00::/112", "10.96.0.0/12, fd00::/112", "fd00::/112,10.0.0.0/24"]
    {
        let ranges: ServiceRanges = text.parse().unwrap();
        assert_eq!(ranges.are_dual_stack(), text.contains(','), "{text}");
        assert_eq!(ranges.prefer_ipv6(), text.starts_with("fd00"), "{text}");
    }
    for (text, why) in [
        ("", NotServiceRanges::Invalid(String::new())),
        ("10.96.0.0", NotServiceRanges::Invalid("10.96.0.0".into())),
        ("10.96.0.0/31", NotServiceRanges::Invalid("10.96.0.0/31".into())),
        ("10.96.0.0/12,10.0.0.0/24", NotServiceRanges::SameFamily),
        ("10.96.0.0/12,fd00::/112,10.0.0.0/24", NotServiceRanges::Many),
    ] {
        assert_eq!(text.parse::<ServiceRanges>(), Err(why), "{text}");
    }
}

#[test]
fn every_node_port_is_had_once_and_again_when_it_is_back() {
    let mut ports = Ports::default();
    let random = Random::new(1);
    let mut seen = HashSet::new();
    while let Some(port) = ports.take_any(&random) {
        assert!((30000..=32767).contains(&port) && seen.insert(port));
    }
    assert_eq!(seen.len(), 2768);
    assert_eq!(ports.take(30500), Err(PortError::Allocated));
    ports.give_back(30500);
    assert_eq!(ports.take(30500), Ok(30500));
    assert!(ports.take(80).unwrap_err().to_string().ends_with("is 30000-32767"));
    assert!(ports.take(-1).is_err());
}

#[test]
fn a_service_holds_its_node_ports_and_its_health_check_once_each() {
    let spec = json!({
        "type": "LoadBalancer", "healthCheckNodePort": 31000,
        "ports": [{"nodePort": 30001}, {"nodePort": 30001}, {"nodePort": 0}, {}],
    });
    assert_eq!(holdings::ports(&spec), [30001, 31000]);
    let inside = json!({"type": "ClusterIP", "ports": [{"nodePort": 30001}]});
    assert!(holdings::ports(&inside).is_empty());
}
