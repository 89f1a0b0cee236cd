//! What is handed out is handed out once.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use serde_json::json;

use super::addresses::{RANGE, Range};
use super::ports::held;
use crate::random::Random;
use crate::state::node_ports::{PortError, Ports};

#[test]
fn the_network_its_last_address_and_strangers_are_not_handed_out() {
    for (address, expected) in [
        ("10.96.0.0", false),
        ("10.96.0.1", true),
        ("10.111.255.254", true),
        ("10.111.255.255", false),
        ("10.112.0.1", false),
        ("10.95.255.255", false),
    ] {
        let address: Ipv4Addr = address.parse().unwrap();
        assert_eq!(RANGE.contains(address), expected, "{address}");
    }
}

#[test]
fn a_small_range_is_handed_out_to_its_last_address() {
    for (size, addresses) in [(4, 2), (16, 14), (32, 30)] {
        let range = Range { base: u32::from(Ipv4Addr::new(10, 0, 0, 0)), size };
        let mut taken = HashSet::new();
        while let Some(address) = range.search(7, |address| taken.contains(&address)) {
            taken.insert(address);
        }
        assert_eq!(taken.len(), addresses, "{size}");
    }
}

#[test]
fn the_server_picks_behind_the_addresses_that_are_left_to_others_until_those_are_gone() {
    let range = Range { base: u32::from(Ipv4Addr::new(10, 0, 0, 0)), size: 64 };
    let mut taken = HashSet::new();
    let first: Ipv4Addr = "10.0.0.16".parse().unwrap();
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
    assert_eq!(held(&spec), [30001, 31000]);
    let inside = json!({"type": "ClusterIP", "ports": [{"nodePort": 30001}]});
    assert!(held(&inside).is_empty());
}
