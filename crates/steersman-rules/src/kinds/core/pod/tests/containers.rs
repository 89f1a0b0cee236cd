//! Mistakes in containers.

use serde_json::{Value, json};

use super::{RULES, check, messages, prepared};

#[test]
fn names_and_images() {
    check(&[
        ("containers/0/name", json!(""), &["spec.containers[0].name: Required value"]),
        (
            "containers/0/name",
            json!("a.b"),
            &["spec.containers[0].name: Invalid value: \"a.b\": must not contain dots"],
        ),
        ("containers/0/image", json!(""), &["spec.containers[0].image: Required value"]),
        (
            "containers/0/image",
            json!(" nginx"),
            &["spec.containers[0].image: Invalid value: \" nginx\": must not have leading or \
               trailing whitespace"],
        ),
        (
            "initContainers/0/name",
            json!("c"),
            &["spec.initContainers[0].name: Duplicate value: \"c\""],
        ),
        (
            "containers/0/terminationMessagePolicy",
            json!("Sometimes"),
            &["spec.containers[0].terminationMessagePolicy: Unsupported value: \"Sometimes\": \
               supported values: \"File\", \"FallbackToLogsOnError\""],
        ),
    ]);
}

#[test]
fn ports() {
    check(&[
        (
            "containers/0/ports/0/name",
            json!("HTTP"),
            &[
                "spec.containers[0].ports[0].name: Invalid value: \"HTTP\": must contain only \
               alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].ports[0].name: Invalid value: \"HTTP\": must contain at least \
               one letter (a-z)",
            ],
        ),
        (
            "containers/0/ports/1",
            json!({"name": "http", "containerPort": 81}),
            &["spec.containers[0].ports[1].name: Duplicate value: \"http\""],
        ),
        (
            "containers/0/ports/0/containerPort",
            json!(0),
            &["spec.containers[0].ports[0].containerPort: Required value"],
        ),
        (
            "containers/0/ports/0/hostPort",
            json!(70000),
            &["spec.containers[0].ports[0].hostPort: Invalid value: 70000: must be between 1 and \
               65535, inclusive"],
        ),
        (
            "containers/0/ports/0/protocol",
            json!("ICMP"),
            &["spec.containers[0].ports[0].protocol: Unsupported value: \"ICMP\": supported \
               values: \"SCTP\", \"TCP\", \"UDP\""],
        ),
        (
            "containers/0/ports",
            json!([
                {"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 8080},
            ]),
            &["spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//8080\""],
        ),
        ("containers/0/ports/0/hostPort", json!(81), &[]),
        (
            "initContainers/1",
            json!({"name": "j", "image": "i:1", "ports": [
                {"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5},
            ]}),
            &["spec.initContainers[0].ports[1].hostPort: Duplicate value: \"TCP//5\""],
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn variables() {
    check(&[
        ("containers/0/env/0/name", json!(""), &["spec.containers[0].env[0].name: Required value"]),
        (
            "containers/0/env/0/name",
            json!("A=B"),
            &["spec.containers[0].env[0].name: Invalid value: \"A=B\": a valid environment \
               variable name must consist only of printable ASCII characters other than '='"],
        ),
        ("containers/0/env/0/name", json!("1 strange.NAME"), &[]),
        (
            "containers/0/env/0/valueFrom",
            json!({"fieldRef": {"fieldPath": "metadata.name"}}),
            &["spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified \
               when `value` is not empty"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {}}),
            &["spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: \
               `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {
                "fieldRef": {"fieldPath": "metadata.name"},
                "secretKeyRef": {"name": "s", "key": "k"},
            }}),
            &["spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not have more than \
               one field specified at a time"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}),
            &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \
               \"spec.nope\": error converting fieldPath: field label not supported: spec.nope"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}),
            &[],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "['a']"}}}),
            &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"['a']\": \
               error converting fieldPath: field label not supported: ['a']"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}}),
            &[],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}),
            &["spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \
               \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \
               \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \
               \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\""],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"resourceFieldRef": {
                "resource": "limits.cpu", "divisor": "2",
            }}}),
            &["spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \
               \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a/b"}}}),
            &[
                "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a/b\": a \
               valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
               'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
               '[-._a-zA-Z0-9]+')",
            ],
        ),
        (
            "containers/0/env/0",
            json!({"name": "A", "valueFrom": {"fileKeyRef": {
                "key": "K", "volumeName": "other", "path": "f",
            }}}),
            &["spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"other\""],
        ),
        (
            "containers/0/envFrom",
            json!([{}]),
            &["spec.containers[0].envFrom: Invalid value: \"\": must specify one of: \
               `configMapRef` or `secretRef`"],
        ),
        (
            "containers/0/envFrom",
            json!([{"configMapRef": {"name": ""}}]),
            &["spec.containers[0].envFrom[0].configMapRef.name: Required value"],
        ),
        ("containers/0/envFrom", json!([{"configMapRef": {"name": "foo-"}}]), &[]),
    ]);
}

#[test]
fn mounts_and_devices() {
    check(&[
        (
            "containers/0/volumeMounts/0/name",
            json!("nope"),
            &["spec.containers[0].volumeMounts[0].name: Not found: \"nope\""],
        ),
        (
            "containers/0/volumeMounts/0/mountPath",
            json!(""),
            &["spec.containers[0].volumeMounts[0].mountPath: Required value"],
        ),
        (
            "containers/0/volumeMounts/1",
            json!({"name": "v", "mountPath": "/v"}),
            &["spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/v\": must be \
               unique"],
        ),
        (
            "containers/0/volumeMounts/0/subPath",
            json!("../x"),
            &[
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain \
               '..'",
            ],
        ),
        (
            "containers/0/volumeMounts/0/mountPropagation",
            json!("Bidirectional"),
            &["spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount \
               propagation is available only to privileged containers"],
        ),
        (
            "containers/0/volumeMounts/0/recursiveReadOnly",
            json!("Enabled"),
            &["spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be \
               specified when readOnly is true"],
        ),
        (
            "containers/0/volumeDevices",
            json!([{"name": "v", "devicePath": "/dev/x"}]),
            &[
                "spec.containers[0].volumeMounts[0].name: Invalid value: \"v\": must not already \
               exist in volumeDevices",
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use \
               volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": must not already \
               exist in volumeMounts",
            ],
        ),
    ]);
}

#[test]
fn probes_and_hooks() {
    check(&[
        (
            "containers/0/livenessProbe",
            json!({"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
            &[
                "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 \
               handler type",
            ],
        ),
        (
            "containers/0/livenessProbe",
            json!({"exec": {}, "successThreshold": 2, "periodSeconds": -1}),
            &[
                "spec.containers[0].livenessProbe.exec.command: Required value",
                "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater \
               than or equal to 0",
                "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            "containers/0/readinessProbe",
            json!({"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 3}),
            &[
                "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: \
               must not be set for readinessProbes",
            ],
        ),
        (
            "containers/0/startupProbe",
            json!({"httpGet": {"port": "no_port", "httpHeaders": [{"name": "a b", "value": ""}]}}),
            &[
                "spec.containers[0].startupProbe.httpGet.port: Invalid value: \"no_port\": must \
               contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].startupProbe.httpGet.httpHeaders: Invalid value: \"a b\": a \
               valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
               'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
            ],
        ),
        (
            "containers/0/lifecycle",
            json!({"preStop": {"sleep": {"seconds": 31}}}),
            &["spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be \
               non-negative and less than terminationGracePeriodSeconds (30)"],
        ),
        (
            "containers/0/lifecycle",
            json!({"stopSignal": "SIGTERM"}),
            &["spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers \
               with empty `spec.os.name`"],
        ),
        (
            "initContainers/0/livenessProbe",
            json!({"exec": {"command": ["a"]}}),
            &["spec.initContainers[0].livenessProbe: Forbidden: may not be set for init \
               containers without restartPolicy=Always"],
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn resources() {
    let of = "containers/0/resources";
    check(&[
        (
            of,
            json!({"limits": {"cpu": "-1"}}),
            &[
                "spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": must be greater \
               than or equal to 0",
                "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater \
               than or equal to 0",
            ],
        ),
        (
            of,
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "2Gi"}}),
            &["spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than \
               or equal to memory limit of 1Gi"],
        ),
        (
            of,
            json!({"requests": {"pods": "1"}}),
            &["spec.containers[0].resources.requests[pods]: Invalid value: \"pods\": must be a \
               standard resource for containers"],
        ),
        (
            of,
            json!({"requests": {"gpu": "1"}}),
            &[
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a \
               standard resource type or fully qualified",
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a \
               standard resource for containers",
            ],
        ),
        (
            of,
            json!({"requests": {"example.com/gpu": "1"}}),
            &["spec.containers[0].resources.limits: Required value: Limit must be set for non \
               overcommitable resources"],
        ),
        (
            of,
            json!({"limits": {"example.com/gpu": "1500m"}}),
            &[
                "spec.containers[0].resources.limits[example.com/gpu]: Invalid value: \"1500m\": \
               must be an integer",
                "spec.containers[0].resources.requests[example.com/gpu]: Invalid value: \"1500m\": \
               must be an integer",
            ],
        ),
        (
            of,
            json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            &["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            of,
            json!({"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}),
            &[
                "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is \
               not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi \
               is not positive integer multiple of hugepages-2Mi",
            ],
        ),
        (
            "resources",
            json!({"requests": {"gpu": "1"}}),
            &["spec.resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource \
               type or fully qualified"],
        ),
        (
            of,
            json!({"claims": [{"name": "gpu"}]}),
            &["spec.containers[0].resources.claims[0]: Not found: \"gpu\": must be one of the \
               names in pod.spec.resourceClaims which is empty"],
        ),
        (
            "resources",
            json!({"limits": {"cpu": "1"}, "requests": {"ephemeral-storage": "1"}}),
            &["spec.resources.requests[ephemeral-storage]: Unsupported value: \
               \"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", \"memory\""],
        ),
        (
            "overhead",
            json!({"cpu": "-1"}),
            &["spec.overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal \
               to 0"],
        ),
        (
            "resourceClaims",
            json!([{"name": "a"}]),
            &["spec.resourceClaims[0]: Invalid value: {\"Name\":\"a\",\"ResourceClaimName\":null,\
               \"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, \
               `resourceClaimTemplateName`"],
        ),
    ]);
}

#[test]
fn restarts() {
    check(&[
        (
            "containers/0/resizePolicy",
            json!([{"resourceName": "disk", "restartPolicy": "NotRequired"}]),
            &["spec.containers[0].resizePolicy: Unsupported value: \"disk\": supported values: \
               \"cpu\", \"memory\""],
        ),
        (
            "containers/0/restartPolicyRules",
            json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]),
            &["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when \
               restart rules are used"],
        ),
        (
            "initContainers/0/restartPolicyRules",
            json!([{"action": "Explode"}]),
            &["spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy \
               when restart rules are used"],
        ),
        (
            "containers/0/restartPolicy",
            json!("Maybe"),
            &["spec.containers[0].restartPolicy: Unsupported value: \"Maybe\": supported values: \
               \"Always\", \"Never\", \"OnFailure\""],
        ),
        (
            "initContainers/0/resizePolicy",
            json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
            &["spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: \
               \"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar \
               initContainers"],
        ),
        ("restartPolicy", json!("OnFailure"), &[]),
        (
            "ephemeralContainers",
            json!([{"name": "d", "image": "i:1", "targetContainerName": "x",
                    "ports": [{"containerPort": 1}]}]),
            &[
                "spec.ephemeralContainers[0].targetContainerName: Not found: \"x\"",
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral \
               Container",
                "spec.ephemeralContainers: Forbidden: cannot be set on create",
            ],
        ),
    ]);
}

#[test]
fn huge_pages_of_containers_fit_into_those_of_their_pod() {
    let with = |name: &str| {
        let limits = json!({"cpu": "1", "hugepages-2Mi": "2Mi"});
        json!({"name": name, "image": "i:1", "resources": {"limits": limits}})
    };
    let told = |pages: &str| {
        let limits = json!({"cpu": "2", "hugepages-2Mi": pages});
        let pod = prepared(json!({
            "resources": {"limits": limits}, "containers": [with("a"), with("b")],
        }));
        messages(&RULES.validate_create(&pod))
    };
    let why = "Invalid value: \"2Mi\": must be greater than or equal to aggregate container";
    assert_eq!(
        told("2Mi"),
        [
            format!("spec.resources.requests[hugepages-2Mi]: {why} requests of 4Mi"),
            format!("spec.resources.limits[hugepages-2Mi]: {why} limits of 4Mi"),
        ]
    );
    assert_eq!(told("4Mi"), [""; 0]);
}

#[test]
fn a_claim_is_used_once_or_by_its_requests() {
    let told = |claims: Value| {
        let mut container = json!({"name": "c", "image": "i:1"});
        container["resources"] = json!({"claims": claims});
        let known = json!([{"name": "a", "resourceClaimName": "a"}]);
        let pod = prepared(json!({"resourceClaims": known, "containers": [container]}));
        messages(&RULES.validate_create(&pod))
    };
    let of = |request: &str| json!({"name": "a", "request": request});
    let again = |i: usize, what: &str| {
        format!("spec.containers[0].resources.claims[{i}]: Duplicate value: \"{what}\"")
    };
    assert_eq!(told(json!([of("x"), of("y")])), [""; 0]);
    assert_eq!(told(json!([of("x"), of("x")])), [again(1, "a/x")]);
    // The whole overlaps with each of its parts, and has none besides it.
    assert_eq!(told(json!([of("x"), of("y"), of("")])), [again(2, "a"), again(2, "a")]);
    assert_eq!(told(json!([of(""), of("Not a name")])), [again(1, "a")]);
}

#[test]
fn a_mirror_of_a_static_pod_has_no_claims() {
    let claims = json!([{"name": "a", "resourceClaimName": "a"}]);
    let mut pod = prepared(json!({
        "nodeName": "n", "resourceClaims": claims, "containers": [{"name": "c", "image": "i:1"}],
    }));
    pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    assert_eq!(
        messages(&RULES.validate_create(&pod)),
        ["[]: Forbidden: static pods do not support resource claims"]
    );
}

#[test]
fn spaces_around_an_image_are_told_after_all_else() {
    let pod = prepared(json!({
        "hostname": "a.b", "containers": [{"name": "c", "image": "i:1 "}],
        "initContainers": [{"name": "i", "image": " i:1"}],
    }));
    let spaces = "must not have leading or trailing whitespace";
    assert_eq!(
        messages(&RULES.validate_create(&pod)),
        [
            "spec.hostname: Invalid value: \"a.b\": must not contain dots".to_owned(),
            format!("spec.containers[0].image: Invalid value: \"i:1 \": {spaces}"),
            format!("spec.initContainers[0].image: Invalid value: \" i:1\": {spaces}"),
        ]
    );
}

#[test]
fn what_starts_runs_beside_the_sidecars_before_it() {
    let asking = |name: &str, policy: Value| {
        let resources = json!({"requests": {"cpu": "1"}});
        json!({"name": name, "image": "i:1", "restartPolicy": policy, "resources": resources})
    };
    let pod = prepared(json!({
        "resources": {"limits": {"cpu": "4"}},
        "initContainers": [asking("s", json!("Always")), asking("i", Value::Null)],
        "containers": [{"name": "c", "image": "i:1"}],
    }));
    assert_eq!(pod["spec"]["resources"]["requests"]["cpu"], "2");
}
