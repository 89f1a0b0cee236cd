//! What a client is told whose status has odd addresses in it, which are taken all the same.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::address;
use super::document::{items, text};

/// Of what balances the load of a Service or an Ingress.
pub(crate) fn of_load_balancer(object: &Value) -> Vec<String> {
    let points = &object["status"]["loadBalancer"]["ingress"];
    warnings(points, |i| format!("status.loadBalancer.ingress[{i}]")).collect()
}

/// Of a Pod and of its node.
pub(crate) fn of_pod(pod: &Value) -> Vec<String> {
    let status = &pod["status"];
    let own = warnings(&status["podIPs"], |i| format!("status.podIPs[{i}].ip"));
    own.chain(warnings(&status["hostIPs"], |i| format!("status.hostIPs[{i}].ip"))).collect()
}

fn warnings(list: &Value, path: impl Fn(usize) -> String) -> impl Iterator<Item = String> {
    let addresses = items(list).iter().map(|item| text(&item["ip"])).enumerate();
    // The status of a Pod is written often, and nearly always with addresses like these.
    let unusual = addresses.filter(|(_, ip)| ip.parse::<Ipv4Addr>().is_err());
    unusual.filter_map(move |(i, ip)| address::ip_warning(&path(i), ip))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{of_load_balancer, of_pod};

    #[test]
    fn addresses_that_are_not_as_they_should_be_written_are_told() {
        let long = "IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format \
                    (\"2001:db8::1\")";
        let zeros = "non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"";
        let mapped = "non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"";
        let pod = json!({"status": {
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "2001:DB8::1"}],
            "hostIPs": [{"ip": "010.0.0.1"}, {"ip": "2001:db8::1"}, {}],
        }});
        let of_pod = of_pod(&pod);
        let expected =
            [format!("status.podIPs[1].ip: {long}"), format!("status.hostIPs[0].ip: {zeros}")];
        assert_eq!(of_pod, expected);
        let service = json!({"status": {"loadBalancer": {"ingress": [
            {"hostname": "example.com"}, {"ip": "::ffff:1.2.3.4"},
        ]}}});
        let expected = [format!("status.loadBalancer.ingress[1]: {mapped}")];
        assert_eq!(of_load_balancer(&service), expected);
        assert!(of_load_balancer(&json!({})).is_empty());
    }
}
