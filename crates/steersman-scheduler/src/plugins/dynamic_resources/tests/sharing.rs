//! Devices of which several claims have a share.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceSlice};
use serde_json::{Value, json};

use super::{Case, DRIVER, exactly, one, slice};

/// A card of 40Gi, given out in gibibytes; who says nothing gets 10Gi.
fn card(name: &str) -> Value {
    let policy = json!({"default": "10Gi", "validRange": {"min": "1Gi", "step": "1Gi"}});
    let memory = json!({"value": "40Gi", "requestPolicy": policy});
    json!({"name": name, "allowMultipleAllocations": true, "capacity": {"memory": memory}})
}

fn cards(names: &[&str]) -> Arc<ResourceSlice> {
    let cards: Vec<Value> = names.iter().map(|name| card(name)).collect();
    slice("s", &json!(cards), &json!({}))
}

/// A request for so many devices with this much memory.
fn wants(name: &str, count: i64, memory: &str) -> Value {
    let capacity = json!({"requests": {"memory": memory}});
    exactly(name, &json!({"deviceClassName": "any", "count": count, "capacity": capacity}))
}

/// A share that somebody else has.
fn share(device: &str, memory: &str) -> Value {
    json!({"device": device, "shareID": memory, "consumedCapacity": {"memory": memory}})
}

fn results(case: &Case, claim: &Value) -> Vec<DeviceRequestAllocationResult> {
    let found = case.allocate(std::slice::from_ref(claim)).unwrap().unwrap();
    found[0].devices.as_ref().unwrap().results.clone().unwrap()
}

#[test]
fn claims_share_a_device_as_long_as_there_is_enough_of_it() {
    let claim = |memory: &str| one(&wants("r", 1, memory));
    for (shares, wanted, expected) in [
        (vec![], vec![claim("30Gi"), claim("10Gi")], Some("r=a r=a")),
        (vec![], vec![claim("30Gi"), claim("11Gi")], Some("r=a r=b")),
        (vec![share("a", "30Gi")], vec![claim("10Gi")], Some("r=a")),
        (vec![share("a", "30Gi")], vec![claim("10.5Gi")], Some("r=b")),
        (vec![share("a", "40Gi"), share("b", "31Gi")], vec![claim("10Gi")], None),
        (vec![share("a", "20Gi"), share("a", "20Gi")], vec![claim("1")], Some("r=b")),
        (vec![], vec![claim("41Gi")], None),
        // Somebody has it for himself.
        (vec![json!({"device": "a"})], vec![claim("1Gi")], Some("r=b")),
    ] {
        let mut case = Case::new(vec![cards(&["a", "b"])]);
        case.shared.clone_from(&shares);
        assert_eq!(case.devices(&wanted).as_deref(), expected, "{wanted:?} {shares:?}");
    }
}

#[test]
fn requests_of_a_claim_share_a_device_and_one_request_gets_different_ones() {
    let case = Case::new(vec![cards(&["a", "b"])]);
    let two = json!({"requests": [wants("x", 1, "1Gi"), wants("y", 1, "1Gi")]});
    assert_eq!(case.devices(&[two]).as_deref(), Some("x=a y=a"));
    assert_eq!(case.devices(&[one(&wants("r", 2, "1Gi"))]).as_deref(), Some("r=a r=b"));
    assert_eq!(case.devices(&[one(&wants("r", 3, "1Gi"))]), None);
    let of = |requests: Value| {
        let attribute = format!("{DRIVER}/board");
        let constraints = json!([{"distinctAttribute": attribute}]);
        json!({"requests": requests, "constraints": constraints})
    };
    let board = |name: &str, board: i64| {
        let mut card = card(name);
        card["attributes"] = json!({"board": {"int": board}});
        card
    };
    let boards = json!([board("a", 0), board("b", 0), board("c", 1)]);
    let case = Case::new(vec![slice("s", &boards, &json!({}))]);
    let different = of(json!([wants("x", 1, "1Gi"), wants("y", 1, "1Gi")]));
    assert_eq!(case.devices(&[different]).as_deref(), Some("x=a y=c"));
}

#[test]
fn a_share_says_how_much_it_is_and_is_told_from_others() {
    let case = Case::new(vec![cards(&["a"])]);
    let claim = json!({"requests": [
        wants("x", 1, "1500Mi"), exactly("y", &json!({"deviceClassName": "any"})),
    ]});
    let found = results(&case, &claim);
    let memory = |result: &DeviceRequestAllocationResult| {
        result.consumed_capacity.as_ref().map(|it| it["memory"].0.clone())
    };
    let memory: Vec<Option<String>> = found.iter().map(memory).collect();
    assert_eq!(memory, [Some("2Gi".to_owned()), Some("10Gi".to_owned())]);
    let ids: Vec<&str> = found.iter().filter_map(|it| it.share_id.as_deref()).collect();
    assert!(ids[0] != ids[1] && ids.iter().all(|id| id.len() == 36), "{ids:?}");

    // One that is for a claim alone has neither.
    let own = json!([{"name": "a", "capacity": {"memory": {"value": "40Gi"}}}]);
    let case = Case::new(vec![slice("s", &own, &json!({}))]);
    let result = results(&case, &one(&wants("r", 1, "1Gi"))).remove(0);
    assert_eq!((result.share_id, result.consumed_capacity), (None, None));
    assert_eq!(case.devices(&[one(&wants("r", 1, "41Gi"))]), None, "it is too small");
    let cores = exactly(
        "r",
        &json!({"deviceClassName": "any",
                                     "capacity": {"requests": {"cores": "1"}}}),
    );
    assert_eq!(case.devices(&[one(&cores)]), None, "it has none");
}

#[test]
fn who_wants_a_share_of_all_gets_it_of_those_that_have_as_much() {
    let all = |memory: &str| {
        let capacity = json!({"requests": {"memory": memory}});
        one(&exactly(
            "r",
            &json!({"deviceClassName": "any", "allocationMode": "All",
                                  "capacity": capacity}),
        ))
    };
    let mut case = Case::new(vec![cards(&["a", "b", "c"])]);
    case.shared = vec![share("b", "35Gi")];
    assert_eq!(case.devices(&[all("5Gi")]).as_deref(), Some("r=a r=b r=c"));
    assert_eq!(case.devices(&[all("6Gi")]).as_deref(), Some("r=a r=c"));
    assert_eq!(case.devices(&[all("6Gi"), all("35Gi")]), None, "the first has too much of it");
}

#[test]
fn a_device_takes_from_what_it_has_in_common_with_others_once() {
    let part = |name: &str| {
        let counters = json!({"slots": {"value": "2"}});
        let mut part = card(name);
        part["consumesCounters"] = json!([{"counterSet": "board", "counters": counters}]);
        part
    };
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let counters = json!({"slots": {"value": "3"}});
    let common = json!({"pool": pool, "sharedCounters": [{"name": "board", "counters": counters}]});
    let case = || {
        let parts = slice("parts", &json!([part("a"), part("b")]), &json!({"pool": pool}));
        Case::new(vec![parts, slice("board", &json!(null), &common)])
    };
    let claim = |memory: &str| one(&wants("r", 1, memory));
    assert_eq!(case().devices(&[claim("20Gi"), claim("20Gi")]).as_deref(), Some("r=a r=a"));
    assert_eq!(case().devices(&[claim("20Gi"), claim("21Gi")]), None);
    let mut used = case();
    used.shared = vec![share("b", "30Gi")];
    assert_eq!(used.devices(&[claim("10Gi")]).as_deref(), Some("r=b"));
    assert_eq!(used.devices(&[claim("11Gi")]), None);
}
