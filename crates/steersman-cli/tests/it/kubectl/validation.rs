//! Trying without doing, and being told what is wrong.

use crate::program::Program;

#[test]
fn a_dry_run_says_everything_and_changes_nothing() {
    let program = Program::up(&["--nodes", "0"]);
    let generated =
        program.says("create deployment web --image=nginx --dry-run=client -o yaml", &[]);
    assert!(generated.contains("kind: Deployment") && !generated.contains("uid"), "{generated}");
    let made = program.says("create deployment web --image=nginx --dry-run=server -o yaml", &[]);
    for part in ["uid:", "terminationGracePeriodSeconds: 30", "revisionHistoryLimit: 10"] {
        assert!(made.contains(part), "{part} is not in:\n{made}");
    }
    program.refuses("get deployment web", &["NotFound"]);
    program.says_to(&generated, "apply --dry-run=server -f -", &["created (server dry run)"]);
    program.says_to(&generated, "apply --server-side --dry-run=server -f -", &["dry run"]);
    program.says_to(&generated, "apply -f -", &["web created"]);
    let before = program.says("get deployment web -o jsonpath='{.metadata.generation}'", &[]);
    for line in [
        "label deployment web a=b --dry-run=server",
        "annotate deployment web a=b --dry-run=server",
        "scale deployment web --replicas=9 --dry-run=server",
        "set image deployment/web nginx=other --dry-run=server",
        "delete deployment web --dry-run=server",
        "expose deployment web --port=80 --dry-run=server",
    ] {
        program.says(line, &["dry run"]);
    }
    // kubectl itself leaves the words out here.
    program.says(
        "patch deployment web -p '{\"spec\":{\"replicas\":7}}' --dry-run=server -o yaml",
        &["replicas: 7"],
    );
    let after = program.says("get deployment web -o jsonpath='{.metadata.generation}'", &[]);
    assert_eq!(before, after);
    program.refuses("get service web", &["NotFound"]);
}

#[test]
fn unknown_fields_are_refused_warned_of_or_ignored() {
    let program = Program::up(&["--nodes", "0"]);
    let typo = |name: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, dta: {{a: b}}}}")
    };
    program.refuses_to(
        &typo("one"),
        "create -f -",
        &["strict decoding error: unknown field \"dta\""],
    );
    program.refuses_to(&typo("one"), "apply --validate=strict -f -", &["unknown field \"dta\""]);
    program.says_to(
        &typo("two"),
        "create --validate=warn -f -",
        &["Warning: unknown field \"dta\"", "created"],
    );
    let ignored = program.says_to(&typo("three"), "create --validate=false -f -", &["created"]);
    assert!(!ignored.contains("Warning"), "{ignored}");
    program.refuses_to(&typo("four"), "apply --server-side -f -", &["dta"]);
    let deep = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replica: 1, \
                selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, \
                spec: {containers: [{name: c, image: i, imagePullPolic: Always}]}}}}";
    program.refuses_to(
        deep,
        "create -f -",
        &[
            "unknown field \"spec.replica\"",
            "unknown field \"spec.template.spec.containers[0].imagePullPolic\"",
        ],
    );
    let number = "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: 1}}";
    program.refuses_to(number, "create -f -", &["data"]);
    program.refuses_to(
        "{apiVersion: v2, kind: ConfigMap, metadata: {name: x}}",
        "create -f -",
        &["no matches for kind"],
    );
}

#[test]
fn invalid_objects_are_told_all_that_is_wrong() {
    let program = Program::up(&["--nodes", "0"]);
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: -1, \
         selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, \
         spec: {restartPolicy: Never, containers: [{name: C, image: i}]}}}}";
    program.refuses_to(
        deployment,
        "create -f -",
        &[
            "The Deployment \"web\" is invalid",
            "* spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "`selector` does not match template `labels`",
            "spec.template.spec.containers[0].name",
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ],
    );
    program.refuses_to(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}",
        "create -f -",
        &["spec.containers: Required value"],
    );
    program.refuses_to(
        "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 70000}]}}",
        "create -f -",
        &["spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    );
    program.says("create configmap fixed --from-literal=a=b", &[]);
    program.says("patch configmap fixed -p '{\"immutable\":true}'", &[]);
    let change = "patch configmap fixed -p '{\"data\":{\"a\":\"c\"}}'";
    program.refuses(change, &["field is immutable when `immutable` is set"]);
}

#[test]
fn custom_resources_are_validated_by_their_schema() {
    let program = Program::up(&["--nodes", "0"]);
    program.kubectl(&["apply", "-f", super::CRD]);
    program.says("wait crd/appservices.demo.steersman.dev --for=condition=Established", &[]);
    let shop = |spec: &str| {
        format!(
            "{{apiVersion: demo.steersman.dev/v1alpha1, kind: AppService, metadata: {{name: shop}}, spec: {spec}}}"
        )
    };
    program.refuses_to(
        &shop("{deploymentName: shop, replicas: many}"),
        "create -f -",
        &["spec.replicas", "integer"],
    );
    program.refuses_to(
        &shop("{deploymentName: shop, replicas: 1, colour: red}"),
        "create -f -",
        &["unknown field \"spec.colour\""],
    );
}

#[test]
fn duplicate_fields_are_refused_where_validation_is_strict() {
    let program = Program::up(&["--nodes", "0"]);
    program.refuses_to(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\",\"name\":\"y\"}}",
        "create --raw '/api/v1/namespaces/default/configmaps?fieldValidation=Strict' -f -",
        &["duplicate field \"metadata.name\""],
    );
}
