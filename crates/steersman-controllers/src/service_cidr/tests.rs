//! When a range may go.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use serde_json::json;

use super::plan::may_go;

fn range(name: &str, cidrs: &[&str]) -> Arc<ServiceCIDR> {
    let range = json!({"metadata": {"name": name}, "spec": {"cidrs": cidrs}});
    Arc::new(serde_json::from_value(range).unwrap())
}

fn address(ip: &str, manager: &str) -> Arc<IPAddress> {
    let labels = json!({"ipaddress.kubernetes.io/managed-by": manager});
    let parent = json!({"resource": "services", "name": "web"});
    let address =
        json!({"metadata": {"name": ip, "labels": labels}, "spec": {"parentRef": parent}});
    Arc::new(serde_json::from_value(address).unwrap())
}

#[test]
fn a_range_may_go_once_no_service_has_an_address_of_it_that_no_other_range_has() {
    let ours = |ip| address(ip, "ipallocator.k8s.io");
    let old = ["10.1.0.0/24"];
    for (own, others, addresses, may) in [
        (&old[..], vec![], vec![], true),
        (&old, vec![], vec![ours("10.1.0.1")], false),
        (&old, vec![], vec![ours("10.2.0.1")], true),
        (&old, vec![], vec![address("10.1.0.1", "somebody")], true),
        (&old, vec![range("b", &["10.1.0.0/16"])], vec![ours("10.1.0.1")], true),
        (&old, vec![range("b", &["10.1.0.0/30"])], vec![ours("10.1.0.1")], true),
        (&old, vec![range("b", &["10.1.0.0/30"])], vec![ours("10.1.0.9")], false),
        (&old, vec![range("b", &["10.1.0.8/30"])], vec![ours("10.1.0.8")], false),
        (&old, vec![], vec![ours("10.1.0.0"), ours("10.1.0.255")], true),
        (&["10.1.0.0/24", "fd00::/120"], vec![range("b", &old)], vec![ours("fd00::1")], false),
        (&["fd00::/120"], vec![], vec![ours("fd00::")], true),
        (&["fd00::/120"], vec![], vec![ours("fd00::ff")], false),
    ] {
        let range = range("a", own);
        let all: Vec<_> = others.iter().cloned().chain([Arc::clone(&range)]).collect();
        assert_eq!(may_go(&range, &all, &addresses), may, "{own:?} {others:?} {addresses:?}");
    }
}
