use serde_json::{Value, json};

use super::*;
use crate::field::messages;

fn service(spec: Value) -> Value {
    let mut service = json!({"metadata": {"name": "web"}});
    service["spec"] = spec;
    RULES.fill_in(&mut service);
    within(&mut service, "spec", addresses);
    service
}

fn with(change: &Value) -> Value {
    let mut spec = json!({"ports": [{"port": 80}]});
    for (key, value) in change.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

#[test]
fn a_service_is_filled_in_as_kubernetes_does() {
    let cases = [
        (
            json!({"ports": [{"port": 80}]}),
            json!({
                "type": "ClusterIP", "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
            }),
        ),
        (
            json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP", "clusterIP": "fd00::1"}),
            json!({
                "type": "LoadBalancer", "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
                "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": true,
                "clusterIP": "fd00::1", "clusterIPs": ["fd00::1"],
            }),
        ),
        (
            json!({"type": "ExternalName", "externalName": "a.b"}),
            json!({"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"}),
        ),
        (
            json!({"externalIPs": ["10.1.1.1"], "clusterIP": "None"}),
            json!({
                "type": "ClusterIP", "externalIPs": ["10.1.1.1"], "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
                "clusterIP": "None", "clusterIPs": ["None"],
            }),
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(service(given.clone())["spec"], expected, "{given}");
    }
}

#[test]
fn what_a_service_does_not_look_at_is_said() {
    let warned = |spec: Value| (RULES.warn)(&service(spec), None);
    let headless = json!({"clusterIP": "None", "externalIPs": ["10.1.1.1"],
        "loadBalancerIP": "10.1.1.2", "sessionAffinity": "ClientIP"});
    let ignored = |field: &str| format!("spec.{field} is ignored for headless services");
    let expected = ["loadBalancerIP", "externalIPs", "SessionAffinity"].map(ignored);
    assert_eq!(warned(headless), expected);
    let deprecated =
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
    assert_eq!(warned(json!({"externalIPs": ["10.1.1.1"]})), [deprecated]);
    // A range with spaces around it is none where warnings look for one.
    let padded = json!({"type": "LoadBalancer", "loadBalancerSourceRanges": [" 010.0.0.0/8"]});
    assert_eq!(warned(padded), [""; 0]);
    let close = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
    assert_eq!(warned(json!({"trafficDistribution": "PreferClose"})), [close]);
}

#[test]
fn a_name_outside_has_no_address_even_none() {
    let named = json!({"type": "ExternalName", "externalName": "a.b", "clusterIP": "None"});
    let found = messages(&RULES.validate_create(&service(named)));
    assert_eq!(found, ["spec.clusterIPs: Forbidden: may not be set for ExternalName services"]);
}

#[test]
fn ports_are_checked() {
    for (spec, expected) in [
        (json!({}), "spec.ports: Required value"),
        (
            json!({"ports": [{"port": 0}]}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}),
            "spec.ports[1].name: Required value",
        ),
        (
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}),
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({"ports": [{"port": 1, "protocol": "QUIC"}]}),
            "spec.ports[0].protocol: Unsupported value: \"QUIC\": supported values: \
             \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (
            json!({"ports": [{"port": 1, "nodePort": 30000}]}),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            json!({"ports": [
                {"port": 1, "name": "a"}, {"port": 1, "name": "b"},
            ]}),
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\
             \"AppProtocol\":null,\"Port\":1,\"TargetPort\":0,\"NodePort\":0}",
        ),
        (
            json!({"type": "NodePort", "ports": [
                {"port": 1, "name": "a", "nodePort": 30000},
                {"port": 1, "name": "b", "nodePort": 30000},
            ]}),
            "spec.ports[1].nodePort: Duplicate value: 30000",
        ),
        (
            json!({"ports": [{"port": 1, "targetPort": "-"}]}),
            "spec.ports[0].targetPort: Invalid value: \"-\": must contain at least one letter \
             (a-z)",
        ),
    ] {
        let found = messages(&RULES.validate_create(&service(spec.clone())));
        assert!(found.contains(&expected.to_owned()), "{spec}: {found:?}");
    }
}

#[test]
fn each_field_is_held_to_its_type() {
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (json!({}), vec![]),
        (json!({"clusterIP": "None", "ports": []}), vec![]),
        (json!({"type": "ExternalName", "externalName": "example.com."}), vec![]),
        (json!({"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 "]}), vec![]),
        (
            json!({"type": "Magic"}),
            vec![
                "spec.type: Unsupported value: \"Magic\": supported values: \"ClusterIP\", \
                 \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (json!({"type": "ExternalName"}), vec!["spec.externalName: Required value"]),
        (
            json!({"type": "ExternalName", "externalName": "a", "clusterIPs": ["10.0.0.1"]}),
            vec!["spec.clusterIPs: Forbidden: may not be set for ExternalName services"],
        ),
        (
            json!({"type": "NodePort", "clusterIP": "None"}),
            vec![
                "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for \
                 NodePort services",
            ],
        ),
        (
            json!({"sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}}),
            vec![
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must \
                 be greater than 0 and less than 86400",
            ],
        ),
        (
            json!({"externalTrafficPolicy": "Local"}),
            vec![
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
                 externally-accessible services",
            ],
        ),
        (
            json!({"type": "LoadBalancer", "healthCheckNodePort": 30000}),
            vec![
                "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is \
                 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            ],
        ),
    ];
    for (change, expected) in cases {
        let found = messages(&RULES.validate_create(&service(with(&change))));
        assert_eq!(found, expected, "{change}");
    }
}

#[test]
fn what_is_for_traffic_from_outside_is_for_nothing_else() {
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (
            json!({"loadBalancerClass": "a.b/c", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "allocateLoadBalancerNodePorts": true}),
            vec![
                "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is \
                 'LoadBalancer'",
                "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is \
                 'LoadBalancer'",
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is \
                 'LoadBalancer'",
            ],
        ),
        (
            json!({"trafficDistribution": "Random", "internalTrafficPolicy": "None"}),
            vec![
                "spec.internalTrafficPolicy: Unsupported value: \"None\": supported values: \
                 \"Cluster\", \"Local\"",
                "spec.trafficDistribution: Unsupported value: \"Random\": supported values: \
                 \"PreferClose\", \"PreferSameZone\", \"PreferSameNode\"",
            ],
        ),
        (
            json!({"externalIPs": ["127.0.0.1", "01.2.3.4"]}),
            vec![
                "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback \
                 range (127.0.0.0/8, ::1/128)",
                "spec.externalIPs[1]: Invalid value: \"01.2.3.4\": must not have leading 0s",
            ],
        ),
    ];
    for (change, expected) in cases {
        let found = messages(&RULES.validate_create(&service(with(&change))));
        assert_eq!(found, expected, "{change}");
    }
}

#[test]
fn addresses_and_families_fit_together() {
    let cases = [
        (
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`",
        ),
        (
            json!({"clusterIPs": ["10.0.0.2"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: must be empty when `clusterIP` is \
             not specified",
        ),
        (
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more \
             than one IP for each IP family",
        ),
        (
            json!({"clusterIP": "fd00::1", "ipFamilies": ["IPv4"]}),
            "spec.clusterIPs[0]: Invalid value: \"fd00::1\": expected an IPv4 value as indicated \
             by `ipFamilies[0]`",
        ),
        (json!({"ipFamilies": ["IPv4", "IPv4"]}), "spec.ipFamilies[1]: Duplicate value: \"IPv4\""),
        (
            json!({"ipFamilyPolicy": "Both"}),
            "spec.ipFamilyPolicy: Unsupported value: \"Both\": supported values: \
             \"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"",
        ),
        (
            json!({"clusterIP": "x"}),
            "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. \
             10.9.8.7 or 2001:db8::ffff)",
        ),
    ];
    for (change, expected) in cases {
        let found = messages(&RULES.validate_create(&service(with(&change))));
        assert_eq!(found, [expected], "{change}");
    }
}

#[test]
fn an_update_keeps_what_was_allocated() {
    let old = service(json!({
        "type": "NodePort", "clusterIP": "10.0.0.1",
        "ports": [{"port": 80, "nodePort": 30080}],
    }));
    let mut new = json!({"metadata": {"name": "web"}, "spec": {
        "type": "NodePort", "ports": [{"port": 80}],
    }});
    RULES.prepare_update(&old, &mut new);
    RULES.fill_in(&mut new);
    assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
    assert_eq!(new["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    assert_eq!(new["spec"]["ports"][0]["nodePort"], 30080);
    assert!(RULES.validate_update(&old, &new).is_empty());
}

#[test]
fn node_ports_follow_the_names_of_ports_and_go_where_nobody_wants_them() {
    let updated = |kind: &str, old: Value, new: Value, allocates: bool| {
        let given = |ports: Value| json!({"type": kind, "ports": ports, "allocateLoadBalancerNodePorts": allocates});
        let old = service(given(old));
        let mut new = json!({"metadata": {"name": "web"}, "spec": given(new)});
        RULES.prepare_update(&old, &mut new);
        new["spec"]["ports"][0]["nodePort"].as_i64().unwrap_or(0)
    };
    let port =
        |name: &str, port: i64, at: i64| json!([{"name": name, "port": port, "nodePort": at}]);
    assert_eq!(updated("NodePort", port("a", 80, 30080), port("a", 81, 0), true), 30080);
    assert_eq!(updated("NodePort", port("a", 80, 30080), port("b", 80, 0), true), 0);
    assert_eq!(updated("LoadBalancer", port("a", 80, 30080), port("a", 80, 0), true), 30080);
    assert_eq!(updated("LoadBalancer", port("a", 80, 30080), port("a", 80, 0), false), 0);
}

#[test]
fn what_is_allocated_does_not_change() {
    let old = service(with(&json!({
        "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
    })));
    let cases = [
        (
            json!({"clusterIP": "10.0.0.2"}),
            vec!["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
        ),
        (
            json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
                "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}),
            vec![],
        ),
        (
            json!({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.1",
                "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack"}),
            vec![],
        ),
    ];
    for (change, expected) in cases {
        let mut new = json!({"metadata": {"name": "web"}, "spec": with(&change)});
        RULES.prepare_update(&old, &mut new);
        RULES.fill_in(&mut new);
        assert_eq!(messages(&RULES.validate_update(&old, &new)), expected, "{change}");
    }
    let dual = service(with(&json!({
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
        "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack",
    })));
    let mut single = dual.clone();
    single["spec"]["clusterIPs"] = json!(["10.0.0.1"]);
    assert_eq!(
        messages(&RULES.validate_update(&dual, &single)),
        ["spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to \
          release the secondary cluster IP"]
    );
    single["spec"]["ipFamilies"] = json!(["IPv4"]);
    assert_eq!(RULES.validate_update(&dual, &single).len(), 2, "the family, too");
    single["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    assert_eq!(messages(&RULES.validate_update(&dual, &single)), [""; 0]);
}

#[test]
fn families_that_change_are_told_by_the_first() {
    let dual = service(with(&json!({
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
        "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack",
    })));
    let mut turned = dual.clone();
    turned["spec"]["clusterIPs"] = json!(["10.0.0.1"]);
    turned["spec"]["ipFamilies"] = json!(["IPv6", "IPv4"]);
    turned["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    // Addresses that do not fit are told alone, as they are when the service is given its own.
    assert_eq!(
        messages(&RULES.validate_update(&dual, &turned)),
        [
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by \
          `ipFamilies[0]`"
        ]
    );
    turned["spec"]["clusterIP"] = json!("fd00::1");
    turned["spec"]["clusterIPs"] = json!(["fd00::1"]);
    let once = "may not change once set";
    assert_eq!(
        messages(&RULES.validate_update(&dual, &turned)),
        [
            format!("spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: {once}"),
            format!("spec.ipFamilies[0]: Invalid value: [\"IPv6\",\"IPv4\"]: {once}"),
            format!("spec.ipFamilies[0]: Invalid value: [\"IPv6\",\"IPv4\"]: {once}"),
        ]
    );
    turned["spec"]["ipFamilies"] = json!(["IPv6"]);
    assert_eq!(
        messages(&RULES.validate_update(&dual, &turned)),
        [
            format!("spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: {once}"),
            format!("spec.ipFamilies[0]: Invalid value: [\"fd00::1\"]: {once}"),
        ]
    );
}

#[test]
fn what_is_wrong_with_addresses_is_told_alone() {
    let both = service(json!({"clusterIP": "x", "sessionAffinity": "Odd", "ports": []}));
    let told = messages(&RULES.validate_create(&both));
    assert_eq!(
        told,
        [
            "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
          2001:db8::ffff)"
        ]
    );
}

#[test]
fn a_new_service_has_a_node_port_for_one_port_only_in_several_protocols() {
    let of = |number: i64, protocol: &str| {
        let other = json!({"name": "b", "port": number, "protocol": protocol, "nodePort": 30080});
        let port = json!({"name": "a", "port": 80, "nodePort": 30080});
        service(json!({"type": "NodePort", "ports": [port, other]}))
    };
    let taken =
        ["spec.ports[1].nodePort: Invalid value: 30080: provided port is already allocated"];
    assert_eq!(messages(&RULES.validate_create(&of(80, "UDP"))), [""; 0]);
    assert_eq!(messages(&RULES.validate_create(&of(81, "UDP"))), taken);
    assert_eq!(messages(&RULES.validate_create(&of(81, "TCP"))), taken);
    let old = of(80, "UDP");
    assert_eq!(messages(&RULES.validate_update(&old, &of(81, "UDP"))), [""; 0]);
}

#[test]
fn the_single_address_and_the_list_are_brought_together() {
    let updated = |kind: &str, single: Value, list: Value| {
        let old = json!({"spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"],
        }});
        let mut new = json!({"spec": {"type": kind, "clusterIP": single, "clusterIPs": list}});
        RULES.prepare_update(&old, &mut new);
        [new["spec"]["clusterIP"].clone(), new["spec"]["clusterIPs"].clone()]
    };
    let both = json!(["10.0.0.1", "fd00::1"]);
    let nothing = Value::Null;
    for (kind, single, list, expected) in [
        ("ClusterIP", &nothing, &nothing, [json!("10.0.0.1"), both.clone()]),
        ("ClusterIP", &nothing, &json!(["10.0.0.1"]), [json!("10.0.0.1"), json!(["10.0.0.1"])]),
        ("ClusterIP", &json!("10.0.0.1"), &nothing, [json!("10.0.0.1"), both.clone()]),
        ("ClusterIP", &json!("10.0.0.2"), &nothing, [json!("10.0.0.2"), json!(["10.0.0.2"])]),
        ("ClusterIP", &json!("None"), &both, [json!("None"), json!(["None"])]),
        ("ClusterIP", &json!("None"), &json!(["fd00::1"]), [json!("None"), json!(["fd00::1"])]),
        ("ExternalName", &json!("10.0.0.1"), &nothing, [Value::Null, Value::Null]),
        ("ExternalName", &nothing, &both, [Value::Null, Value::Null]),
        ("ExternalName", &json!("10.0.0.2"), &both, [json!("10.0.0.2"), json!(["10.0.0.2"])]),
    ] {
        assert_eq!(updated(kind, single.clone(), list.clone()), expected, "{kind} {single} {list}");
    }
}

#[test]
fn a_change_of_type_drops_what_the_new_type_has_no_use_for() {
    let old = service(json!({
        "type": "LoadBalancer", "clusterIP": "10.0.0.1", "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 31000, "loadBalancerClass": "a.b/c",
        "ports": [{"port": 80, "nodePort": 30080}],
    }));
    let mut new = old.clone();
    new["spec"]["type"] = json!("ClusterIP");
    RULES.prepare_update(&old, &mut new);
    RULES.fill_in(&mut new);
    assert_eq!(messages(&RULES.validate_update(&old, &new)), Vec::<String>::new());
    for gone in [
        "healthCheckNodePort",
        "loadBalancerClass",
        "externalTrafficPolicy",
        "allocateLoadBalancerNodePorts",
    ] {
        assert_eq!(new["spec"][gone], Value::Null, "{gone}");
    }
    assert_eq!(new["spec"]["ports"][0]["nodePort"], Value::Null);
}

#[test]
fn only_a_load_balancer_reports_addresses() {
    let mut old = service(with(&json!({"type": "LoadBalancer"})));
    old["status"] = json!({"loadBalancer": {}});
    let cases: Vec<(Value, Vec<&str>)> = vec![
        (json!([{"ip": "1.2.3.4"}]), vec![]),
        (json!([{"hostname": "a.b"}]), vec![]),
        (
            json!([{"ip": "1.2.3"}]),
            vec![
                "status.loadBalancer.ingress[0].ip: Invalid value: \"1.2.3\": must be a valid IP \
             address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            json!([{"hostname": "1.2.3.4"}]),
            vec![
                "status.loadBalancer.ingress[0].hostname: Invalid value: \"1.2.3.4\": must be a DNS \
             name, not an IP address",
            ],
        ),
        (
            json!([{"hostname": "a", "ipMode": "VIP"}]),
            vec![
                "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is \
             not set",
            ],
        ),
        (
            json!([{"ip": "1.2.3.4", "ipMode": "", "hostname": "A"}]),
            vec![
                "status.loadBalancer.ingress[0].ipMode: Unsupported value: \"\": supported values: \
                 \"Proxy\", \"VIP\"",
                "status.loadBalancer.ingress[0].hostname: Invalid value: \"A\": a lowercase RFC 1123 \
                 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
    ];
    for (ingress, expected) in cases {
        let mut new = old.clone();
        new["status"]["loadBalancer"]["ingress"] = ingress.clone();
        RULES.prepare_status_update(&old, &mut new);
        assert_eq!(messages(&RULES.validate_status_update(&old, &new)), expected, "{ingress}");
        new["spec"]["type"] = json!("ClusterIP");
        assert_eq!(
            messages(&RULES.validate_status_update(&old, &new)),
            ["status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is \
             'LoadBalancer'",]
        );
    }
}

#[test]
fn a_service_that_leaves_a_type_loses_what_only_that_type_had() {
    let old = json!({"spec": {
        "type": "LoadBalancer", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "healthCheckNodePort": 31000,
        "externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": true,
        "ports": [{"port": 80, "nodePort": 30001}],
    }, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
    let mut new = old.clone();
    new["spec"]["type"] = "ExternalName".into();
    RULES.prepare_update(&old, &mut new);
    assert_eq!(
        new,
        json!({
            "spec": {"type": "ExternalName", "ports": [{"port": 80}]}, "status": {"loadBalancer": {}},
        })
    );
    let mut changed = old.clone();
    changed["spec"]["type"] = "ClusterIP".into();
    changed["spec"]["ports"][0]["nodePort"] = 30002.into();
    RULES.prepare_update(&old, &mut changed);
    assert_eq!(changed["spec"]["ports"][0]["nodePort"], 30002);
    assert_eq!(changed["spec"]["clusterIP"], "10.96.0.9");
}
