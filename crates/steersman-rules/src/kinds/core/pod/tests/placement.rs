//! Mistakes in where a pod runs, and by which names.

use serde_json::json;

use super::{check, complaints};

#[test]
fn policies_and_names() {
    check(&[
        (
            "dnsPolicy",
            json!("Never"),
            &["spec.dnsPolicy: Unsupported value: \"Never\": supported values: \
               \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\""],
        ),
        (
            "activeDeadlineSeconds",
            json!(0),
            &["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, \
               inclusive"],
        ),
        (
            "hostname",
            json!("a.b"),
            &["spec.hostname: Invalid value: \"a.b\": must not contain dots"],
        ),
        (
            "preemptionPolicy",
            json!("Always"),
            &["spec.preemptionPolicy: Unsupported value: \"Always\": supported values: \
               \"PreemptLowerPriority\", \"Never\""],
        ),
        (
            "nodeSelector",
            json!({"a": "-"}),
            &["spec.nodeSelector: Invalid value: \"-\": a valid label must be an empty string or \
               consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
               an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
               for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"],
        ),
        ("schedulingGates", json!([{"name": "a.b/c"}]), &[]),
        (
            "schedulingGates",
            json!([{"name": "g"}, {"name": "g"}]),
            &["spec.schedulingGates[1]: Duplicate value: \"g\""],
        ),
        (
            "readinessGates",
            json!([{"conditionType": ""}]),
            &[
                "spec.readinessGates[0].conditionType: Invalid value: \"\": name part must be \
               non-empty",
                "spec.readinessGates[0].conditionType: Invalid value: \"\": name part must consist \
               of alphanumeric characters, '-', '_' or '.', and must start and end with an \
               alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
               for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
    ]);
}

#[test]
fn name_resolution() {
    check(&[
        (
            "dnsPolicy",
            json!("None"),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            "dnsConfig",
            json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3", "x"]}),
            &[
                "spec.dnsConfig.nameservers: Invalid value: \
               [\"1.1.1.1\",\"2.2.2.2\",\"3.3.3.3\",\"x\"]: must not have more than 3 nameservers",
                "spec.dnsConfig.nameservers[3]: Invalid value: \"x\": must be a valid IP address, \
               (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        ("dnsConfig", json!({"searches": [".", "a_b.example.com."]}), &[]),
        (
            "dnsConfig",
            json!({"searches": ["a_b-"]}),
            &[
                "spec.dnsConfig.searches[0]: Invalid value: \"a_b-\": a lowercase RFC 1123 subdomain \
               must consist of lower case alphanumeric characters, '_', '-' or '.', and must start \
               and end with an alphanumeric character (e.g. 'example.com', regex used for \
               validation is '[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\\.[a-z0-9_]([-_a-z0-9]*\
               [a-z0-9_])?)*')",
            ],
        ),
        (
            "dnsConfig",
            json!({"options": [{"value": "1"}]}),
            &["spec.dnsConfig.options[0]: Required value: must not be empty"],
        ),
        (
            "dnsConfig",
            json!({"nameservers": ["01.1.1.1"]}),
            &[
                "spec.dnsConfig.nameservers[0]: Invalid value: \"01.1.1.1\": must not have leading 0s",
            ],
        ),
        (
            "hostAliases",
            json!([{"ip": "::ffff:1.1.1.1", "hostnames": ["a"]}]),
            &[
                "spec.hostAliases[0].ip: Invalid value: \"::ffff:1.1.1.1\": must not be an IPv4-mapped \
               IPv6 address",
            ],
        ),
        (
            "hostAliases",
            json!([{"ip": "nope", "hostnames": ["a"]}]),
            &[
                "spec.hostAliases[0].ip: Invalid value: \"nope\": must be a valid IP address, (e.g. \
               10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
    ]);
}

#[test]
fn a_search_path_that_is_too_long_is_otherwise_fine() {
    let long = "a".repeat(254);
    let told = complaints("dnsConfig", &json!({"searches": [long]}));
    let place = format!("spec.dnsConfig.searches[0]: Invalid value: \"{long}\"");
    assert_eq!(told, [format!("{place}: must be no more than 253 characters")]);
}

#[test]
fn tolerations() {
    let at = "tolerations/2";
    check(&[
        (
            at,
            json!({"operator": "Equal", "value": "a"}),
            &["spec.tolerations[2].operator: Invalid value: \"Equal\": operator must be Exists \
               when `key` is empty, which means \"match all values and all keys\""],
        ),
        (
            at,
            json!({"key": "a", "operator": "Exists", "value": "b"}),
            &["spec.tolerations[2].operator: Invalid value: \"b\": value must be empty when \
               `operator` is 'Exists'"],
        ),
        (
            at,
            json!({"key": "a", "operator": "Near"}),
            &["spec.tolerations[2].operator: Unsupported value: \"Near\": supported values: \
               \"Equal\", \"Exists\""],
        ),
        (
            at,
            json!({"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"}),
            &["spec.tolerations[2].effect: Invalid value: \"NoSchedule\": effect must be \
               'NoExecute' when `tolerationSeconds` is set"],
        ),
        (
            at,
            json!({"key": "a", "effect": "Go"}),
            &["spec.tolerations[2].effect: Unsupported value: \"Go\": supported values: \
               \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""],
        ),
    ]);
}

#[test]
fn affinity() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let nodes = |term: serde_json::Value| json!({"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}});
    check(&[
        (
            "affinity",
            json!({"nodeAffinity": {required: {"nodeSelectorTerms": []}}}),
            &["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
               .nodeSelectorTerms: Required value: must have at least one node selector term"],
        ),
        (
            "affinity",
            nodes(json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]})),
            &["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
               .nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be \
               specified single value when `operator` is 'Lt' or 'Gt'"],
        ),
        (
            "affinity",
            nodes(json!({"matchFields": [
                {"key": "metadata.uid", "operator": "In", "values": ["a"]},
            ]})),
            &["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
               .nodeSelectorTerms[0].matchFields[0].key: Invalid value: \"metadata.uid\": not a \
               valid field selector key"],
        ),
        (
            "affinity",
            json!({"nodeAffinity": {preferred: [{"weight": 101, "preference": {}}]}}),
            &["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]\
               .weight: Invalid value: 101: must be in the range 1-100"],
        ),
        (
            "affinity",
            json!({"podAffinity": {required: [{"labelSelector": {}, "topologyKey": "zone",
                                               "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}]}}),
            &["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]\
               .matchLabelKeys[0]: Invalid value: \"a\": exists in both matchLabelKeys and \
               mismatchLabelKeys"],
        ),
        (
            "affinity",
            json!({"podAffinity": {required: [{
                "labelSelector": {
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "a", "operator": "Exists"}],
                },
                "topologyKey": "zone", "matchLabelKeys": ["a", "a"],
            }]}}),
            &["spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0][1]: \
               Invalid value: \"a\": exists in both matchLabelKeys and labelSelector"],
        ),
        (
            "affinity",
            json!({"podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": {
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
                "topologyKey": "zone",
            }}]}}),
            &["spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]\
               .podAffinityTerm.labelSelector.matchExpressions[0].operator: Invalid value: \
               \"Is\": not a valid selector operator"],
        ),
    ]);
}

#[test]
fn spreading() {
    let one = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
    let changed = |key: &str, value: serde_json::Value| {
        let mut constraint = one.clone();
        constraint[key] = value;
        json!([constraint])
    };
    let at = "topologySpreadConstraints";
    check(&[
        (at, json!([one]), &[]),
        (
            at,
            changed("maxSkew", json!(0)),
            &["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than \
               zero"],
        ),
        (
            at,
            changed("topologyKey", json!("")),
            &["spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"],
        ),
        (
            at,
            changed("whenUnsatisfiable", json!("Panic")),
            &["spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \
               \"Panic\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""],
        ),
        (
            at,
            json!([one, one]),
            &["spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate \
               value: \"{zone, DoNotSchedule}\""],
        ),
        (
            at,
            json!([one, {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
            &[],
        ),
        (
            at,
            changed("minDomains", json!(0)),
            &["spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater \
               than zero"],
        ),
        (
            at,
            changed("matchLabelKeys", json!(["a"])),
            &[
                "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified \
               when labelSelector is not set",
            ],
        ),
        (
            at,
            changed("nodeTaintsPolicy", json!("Maybe")),
            &["spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: \"Maybe\": \
               supported values: \"Honor\", \"Ignore\""],
        ),
    ]);
}
