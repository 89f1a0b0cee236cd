//! What a node may say of its pods.

use serde_json::{Value, json};

use super::{RULES, messages, rich};

fn written(old: &Value, status: Value) -> (Value, Vec<String>) {
    let mut new = old.clone();
    new["status"] = status;
    RULES.prepare_status_update(old, &mut new);
    let errors = messages(&RULES.validate_status_update(old, &new));
    (new, errors)
}

fn ended(policy: &str, code: i64) -> Value {
    let mut pod = rich();
    pod["spec"]["restartPolicy"] = json!(policy);
    pod["status"]["containerStatuses"] =
        json!([{"name": "c", "state": {"terminated": {"exitCode": code}}}]);
    pod
}

#[test]
fn what_the_writer_does_not_know_stays() {
    let mut old = rich();
    old["status"]["observedGeneration"] = json!(3);
    let (new, errors) = written(&old, json!({"phase": "Running", "podIP": "10.0.0.1"}));
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(new["status"]["qosClass"], "BestEffort");
    assert_eq!(new["status"]["observedGeneration"], 3);
    assert_eq!(new["status"]["podIPs"], json!([{"ip": "10.0.0.1"}]));
}

#[test]
fn a_container_that_ended_starts_again_only_if_it_may() {
    let refused = "status.containerStatuses[0].state: Forbidden: may not be transitioned to \
                   non-terminated state";
    let waiting = json!({"containerStatuses": [{"name": "c", "state": {"waiting": {}}}]});
    for (policy, code, expected) in [
        ("Always", 0, vec![]),
        ("OnFailure", 1, vec![]),
        ("OnFailure", 0, vec![refused]),
        ("Never", 1, vec![refused]),
    ] {
        let (_, errors) = written(&ended(policy, code), waiting.clone());
        assert_eq!(errors, expected, "{policy} {code}");
    }
}

#[test]
fn a_container_that_nobody_knows_does_not_start_again() {
    let mut pod = rich();
    pod["status"]["containerStatuses"] =
        json!([{"name": "x", "state": {"terminated": {"exitCode": 1}}}]);
    let waiting = json!({"containerStatuses": [{"name": "x", "state": {"waiting": {}}}]});
    let refused = "status.containerStatuses[0].state: Forbidden: may not be transitioned to \
                   non-terminated state";
    assert_eq!(written(&pod, waiting).1, [refused]);
}

#[test]
fn what_is_said_of_claims_may_be_taken_back() {
    let mut pod = rich();
    pod["status"]["resourceClaimStatuses"] = json!([{"name": "gpu"}]);
    pod["status"]["extendedResourceClaimStatus"] = json!({"resourceClaimName": "c"});
    let (new, errors) = written(&pod, json!({"qosClass": ""}));
    assert_eq!(errors, [""; 0]);
    assert_eq!(new["status"], json!({"qosClass": "BestEffort"}));
}

#[test]
fn mistakes_in_a_status() {
    let cases: &[(Value, &[&str])] = &[
        (
            json!({"qosClass": "Guaranteed"}),
            &["status.qosClass: Invalid value: \"Guaranteed\": field is immutable"],
        ),
        (
            json!({"observedGeneration": -1}),
            &["status.observedGeneration: Invalid value: -1: must be a non-negative integer"],
        ),
        (
            json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}),
            &["status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.2\"}]: may \
               specify no more than one IP for each IP family"],
        ),
        (
            json!({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]}),
            &["status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`"],
        ),
        (
            json!({"resourceClaimStatuses": [{"name": "x"}]}),
            &[
                "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of \
               an entry in `spec.resourceClaims`",
            ],
        ),
        (
            json!({"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]}),
            &["status.resourceClaimStatuses[1].name: Duplicate value: \"gpu\""],
        ),
        (json!({"conditions": [{"type": "example.com/gate", "status": "True"}]}), &[]),
    ];
    for (status, expected) in cases {
        let mut pod = rich();
        pod["spec"]["resourceClaims"] = json!([{"name": "gpu"}]);
        assert_eq!(written(&pod, status.clone()).1, *expected, "{status}");
    }
}

#[test]
fn addresses_are_written_without_ambiguities_but_for_those_that_were_there() {
    let told = |old: Value, ip: &str| {
        let mut pod = rich();
        pod["status"]["podIPs"] = old;
        written(&pod, json!({"podIP": ip, "podIPs": [{"ip": ip}]})).1
    };
    for (ip, why) in [
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:10.0.0.1", "must not be an IPv4-mapped IPv6 address"),
        ("a", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    ] {
        let expected = format!("status.podIPs[0]: Invalid value: \"{ip}\": {why}");
        assert_eq!(told(Value::Null, ip), [expected]);
        assert_eq!(told(json!([{"ip": ip}]), ip), [""; 0]);
    }
    let both = json!({"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]});
    assert_eq!(written(&rich(), both).1, [""; 0]);
}

#[test]
fn of_several_addresses_one_that_cannot_be_read_is_told_in_three_ways() {
    let status = json!({"podIP": "a", "podIPs": [{"ip": "a"}, {"ip": "10.0.0.1"}]});
    assert_eq!(
        written(&rich(), status).1,
        [
            "status.podIPs[0]: Invalid value: \"a\": must be a valid IP address, (e.g. 10.9.8.7 or \
             2001:db8::ffff)",
            "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[0]: \
             a",
            "status.podIPs: Invalid value: [{\"IP\":\"a\"},{\"IP\":\"10.0.0.1\"}]: may specify no \
             more than one IP for each IP family",
        ]
    );
    let nothing = json!({"podIPs": [{"ip": ""}]});
    assert_eq!(
        written(&rich(), nothing).1,
        ["status.podIPs[0]: Invalid value: \"\": must be a valid IP address, (e.g. 10.9.8.7 or \
          2001:db8::ffff)"]
    );
}

#[test]
fn annotations_that_come_with_a_status_are_looked_at() {
    let old = rich();
    let mut new = old.clone();
    let key = "controller.kubernetes.io/pod-deletion-cost";
    new["metadata"]["annotations"] = json!({key: "x"});
    assert_eq!(
        messages(&RULES.validate_status_update(&old, &new)),
        [format!("metadata.annotations[{key}]: Invalid value: \"x\": must be a 32bit integer")]
    );
}

#[test]
fn containers_get_extended_resources_that_they_ask_for_by_requests_of_a_claim() {
    let mapping = |container: &str, resource: &str, request: &str| -> Value {
        json!({"containerName": container, "resourceName": resource, "requestName": request})
    };
    let at = "status.extendedResourceClaimStatus";
    let good = mapping("c", "example.com/gpu", "container-0-request-0");
    for (mappings, claim, expected) in [
        (json!([good]), "web-x", vec![]),
        (
            json!([]),
            "",
            vec![
                format!(
                    "{at}.requestMappings: Required value: at least one request mapping is required"
                ),
                format!("{at}.resourceClaimName: Required value"),
            ],
        ),
        (
            json!([mapping("x", "example.com/gpu", "r"), mapping("c", "example.com/x", "r")]),
            "web-x",
            vec![
                format!(
                    "{at}.requestMappings[0].containerName: Invalid value: \"x\": must match the name \
                     of an entry in spec.initContainers.name or spec.containers.name"
                ),
                format!(
                    "{at}.requestMappings[1].resourceName: Invalid value: \"example.com/x\": must \
                     match the extended resource name of an entry in \
                     spec.initContainers.resources.requests or spec.containers.resources.requests"
                ),
            ],
        ),
        (
            json!([good, good]),
            "web-x",
            vec![
                format!("{at}.requestMappings[1].containerName: Duplicate value: \"c\""),
                format!(
                    "{at}.requestMappings[1].resourceName: Duplicate value: \"example.com/gpu\""
                ),
                format!(
                    "{at}.requestMappings[1].requestName: Duplicate value: \
                     \"container-0-request-0\""
                ),
            ],
        ),
    ] {
        let mut pod = rich();
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"example.com/gpu": "1"}});
        let told = json!({"resourceClaimName": claim, "requestMappings": mappings});
        let (_, errors) = written(&pod, json!({"extendedResourceClaimStatus": told}));
        assert_eq!(errors, expected, "{told}");
    }
}

#[test]
fn conditions_of_one_type_keep_their_generations_in_order() {
    let mut old = rich();
    let condition = |generation: i64| json!({"type": "Ready", "observedGeneration": generation});
    old["status"]["conditions"] = json!([condition(1), condition(2)]);
    let bare = json!({"type": "Ready"});
    let (new, _) = written(&old, json!({"conditions": [bare, bare, bare]}));
    assert_eq!(new["status"]["conditions"], json!([condition(1), condition(2), bare]));
}

#[test]
fn users_of_containers_have_ids_that_there_are() {
    let status = |user: Value| json!({"initContainerStatuses": [{"name": "i", "user": user}]});
    let linux =
        json!({"linux": {"uid": -1, "gid": 0, "supplementalGroups": [1, 2_147_483_648_i64]}});
    let at = "status.initContainerStatuses[0].user.linux";
    let range = "must be between 0 and 2147483647, inclusive";
    assert_eq!(
        written(&rich(), status(linux.clone())).1,
        [
            format!("{at}.uid: Invalid value: -1: {range}"),
            format!("{at}.supplementalGroups[1]: Invalid value: 2147483648: {range}"),
        ]
    );
    let mut windows = rich();
    windows["spec"]["os"] = json!({"name": "windows"});
    assert_eq!(
        written(&windows, status(linux)).1,
        [format!("{at}: Forbidden: cannot be set for a windows pod")]
    );
}

#[test]
fn devices_are_those_of_the_container() {
    let mut pod = rich();
    pod["spec"]["containers"][0]["resources"] = json!({
        "requests": {"a.b/c": "1"}, "claims": [{"name": "gpu", "request": "one"}],
    });
    let told = |list: &str, name: &str, resources: Value| {
        let allocated = json!([{"name": name, "resources": resources}]);
        let container = json!({"name": "c", "allocatedResourcesStatus": allocated});
        written(&pod, json!({list: [container]})).1
    };
    let list = "containerStatuses";
    let at = "status.containerStatuses[0].allocatedResourcesStatus[0]";
    let healthy = |id: &str| json!({"resourceID": id, "health": "Healthy"});
    assert_eq!(told(list, "a.b/c", json!([healthy("1"), healthy("2")])), [""; 0]);
    assert_eq!(told(list, "claim:gpu/one", json!([])), [""; 0]);
    assert_eq!(
        told(list, "claim:gpu", json!([])),
        [format!(
            "{at}.name: Invalid value: \"claim:gpu\": must match one of the container's resource \
             claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request \
             is empty"
        )]
    );
    assert_eq!(
        told(list, "cpu", json!([])),
        [format!(
            "{at}.name: Invalid value: \"cpu\": must match one of the container's resource requests"
        )]
    );
    let odd = json!({"resourceID": "1", "health": "X", "message": ""});
    assert_eq!(
        told(list, "a.b/c", json!([healthy("1"), odd])),
        [
            format!(
                "{at}.resources[1].health: Unsupported value: \"X\": supported values: \
                 \"Healthy\", \"Unhealthy\", \"Unknown\""
            ),
            format!("{at}.resources[1].message: Required value: must be non-empty if specified"),
            format!("{at}.resources[1].resourceID: Duplicate value: \"1\""),
        ]
    );
    assert_eq!(
        told("ephemeralContainerStatuses", "cpu", json!([])),
        ["status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be \
          specified in container status"]
    );
}
