//! What a node may say of itself, and what of it may change.

use serde_json::{Value, json};

use super::RULES;
use crate::field::messages;

fn created(node: &Value) -> Vec<String> {
    messages(&RULES.validate_create(node))
}

#[test]
fn features_are_named_sorted_and_unique() {
    let told = |features: Value| created(&json!({"status": {"declaredFeatures": features}}));
    assert_eq!(told(json!(["A", "B/sub", "GuaranteedQoSPodCPUResize"])), [""; 0]);
    let form = "must start with an UpperCamelCase segment, with subsequent segments separated by \
                '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric \
                characters and slashes";
    let at = "status.declaredFeatures";
    assert_eq!(
        told(json!(["b", "A", "A"])),
        [
            format!("{at}[0]: Invalid value: \"b\": invalid feature name \"b\": {form}"),
            format!("{at}[1]: Invalid value: \"A\": list must be sorted alphabetically"),
            format!("{at}[2]: Duplicate value: \"A\""),
        ]
    );
    let long = "A".repeat(254);
    assert_eq!(
        told(json!([long])),
        [format!(
            "{at}[0]: Invalid value: \"{long}\": invalid feature name \"{long}\": must be no more \
             than 253 characters"
        )]
    );
    let old = json!({"status": {}});
    let new = json!({"status": {"declaredFeatures": ["A/"]}});
    assert_eq!(RULES.validate_status_update(&old, &new).len(), 1);
}

#[test]
fn annotations_of_old_must_be_sound() {
    let told = |key: &str, text: &str| {
        let key = format!("scheduler.alpha.kubernetes.io/{key}");
        created(&json!({"metadata": {"annotations": {key: text}}}))
    };
    assert_eq!(
        told("preferAvoidPods", "zz"),
        ["metadata.annotations.AvoidPods: Invalid value: \
          \"scheduler.alpha.kubernetes.io/preferAvoidPods\": invalid character 'z' looking for \
          beginning of value"]
    );
    assert_eq!(
        told("preferAvoidPods", r#"{"preferAvoidPods": [{}]}"#),
        ["metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: \
          Required value"]
    );
    assert_eq!(
        told("taints", "{}"),
        ["metadata.annotations: Invalid value: \"scheduler.alpha.kubernetes.io/taints\": json: \
          cannot unmarshal object into Go value of type []core.Taint"]
    );
    assert_eq!(
        told("taints", r#"[{"key": "a"}]"#),
        ["metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value"]
    );
    assert_eq!(told("taints", ""), [""; 0]);
}

#[test]
fn configuration_from_the_cluster_is_dropped_or_checked() {
    let mut node = json!({"spec": {"configSource": {}}, "status": {"config": {"active": {}}}});
    RULES.prepare_create(&mut node);
    assert_eq!(node, json!({"spec": {}, "status": {}}));
    let mut new = json!({"status": {"config": {"active": {}}}});
    RULES.prepare_status_update(&json!({"status": {}}), &mut new);
    assert_eq!(new, json!({"status": {}}));

    let map = json!({"uid": "1", "namespace": "kube-system", "name": "c"});
    let new = json!({"spec": {"configSource": {"configMap": map}}});
    assert_eq!(
        messages(&RULES.validate_update(&json!({}), &new)),
        [
            "spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
            "spec.configSource.configMap.kubeletConfigKey: Required value",
        ]
    );
}

#[test]
fn the_one_range_for_pods_is_the_first_of_all() {
    for (one, many, expected) in [
        (json!("10.0.0.0/24"), json!(null), json!(["10.0.0.0/24"])),
        (json!("10.0.0.0/24"), json!([]), json!(["10.0.0.0/24"])),
        (json!("10.0.0.0/24"), json!(["10.9.0.0/24", "fd00::/64"]), json!(["10.0.0.0/24"])),
        (json!("10.0.0.0/24"), json!(["10.0.0.0/24", "a"]), json!(["10.0.0.0/24", "a"])),
        (json!(""), json!(["10.0.0.0/24"]), json!(["10.0.0.0/24"])),
    ] {
        let mut node = json!({"spec": {"podCIDR": one, "podCIDRs": many}});
        RULES.fill_in(&mut node);
        let filled = json!({"podCIDR": "10.0.0.0/24", "podCIDRs": expected});
        assert_eq!(node["spec"], filled, "{one} {many}");
    }
    let old = json!({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}});
    let mut new = old.clone();
    new["spec"]["podCIDR"] = json!("10.9.0.0/24");
    RULES.fill_in(&mut new);
    assert_eq!(
        messages(&RULES.validate_update(&old, &new)),
        ["spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"]
    );
    let dual = |one: &str, other: &str| json!({"spec": {"podCIDRs": [one, other]}});
    let old = dual("10.0.0.0/24", "fd00::/64");
    assert_eq!(RULES.validate_update(&old, &dual("10.1.0.0/24", "fd01::/64")).len(), 2);
    new["spec"]["podCIDRs"] = json!(["FD00::/64"]);
    assert_eq!(
        RULES.warnings(&new, None),
        ["spec.podCIDRs[0]: IPv6 CIDR value \"FD00::/64\" should be in RFC 5952 canonical format \
          (\"fd00::/64\")"]
    );
}

#[test]
fn identities_and_swap_are_watched() {
    let old = json!({"spec": {"externalID": "a"}});
    let new = json!({"spec": {"externalID": "b"}});
    assert_eq!(
        messages(&RULES.validate_update(&old, &new)),
        ["spec.externalID: Forbidden: may not be updated"]
    );
    assert_eq!(
        created(&json!({"status": {"nodeInfo": {"swap": {"capacity": 0}}}})),
        ["metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero"]
    );
    let at = "spec.podCIDRs";
    assert_eq!(
        created(&json!({"spec": {"podCIDRs": ["zz", "10.0.0.0/24"]}})),
        [
            format!(
                "{at}[0]: Invalid value: \"zz\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or \
                 2001:db8::/64)"
            ),
            format!(
                "{at}: Internal error: invalid PodCIDRs. failed to check with dual stack with \
                 error:invalid CIDR[0]: <nil> (invalid CIDR address: zz)"
            ),
            format!(
                "{at}: Invalid value: [\"zz\",\"10.0.0.0/24\"]: may specify no more than one CIDR \
                 for each IP family"
            ),
        ]
    );
    let ranged = json!({"spec": {"podCIDR": "zz", "podCIDRs": ["zz"]}});
    assert_eq!(RULES.validate_update(&json!({}), &ranged)[0].field, "spec.podCIDRs[0]");
}

#[test]
fn what_a_node_says_twice_is_shown_as_kubernetes_reads_it() {
    let taint = json!({"key": "a", "effect": "NoSchedule"});
    assert_eq!(
        created(&json!({"spec": {"taints": [taint, taint]}})),
        ["metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"\",\"Effect\":\
          \"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair"]
    );
    let address = json!({"type": "InternalIP", "address": "10.0.0.1"});
    let new = json!({"status": {"addresses": [address, address]}});
    assert_eq!(
        messages(&RULES.validate_status_update(&json!({}), &new)),
        [
            "status.addresses[1]: Duplicate value: {\"Type\":\"InternalIP\",\"Address\":\"10.0.0.1\"}"
        ]
    );
}
