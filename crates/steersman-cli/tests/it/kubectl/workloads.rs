//! Commands that make one object from another, or look into pods.

use crate::program::Program;

#[test]
fn run_expose_scale_and_autoscale_work_together() {
    let program = Program::up(&["--load-balancer-pool", "10.200.0.0/24"]);
    program
        .says("run web --image=nginx --port=80 --labels=app=web --env=A=b", &["pod/web created"]);
    program.says("wait pod/web --for=condition=Ready --timeout=60s", &[]);
    program.says(
        "expose pod web --name=front --target-port=80 --port=8080",
        &["service/front exposed"],
    );
    program.says("get service front -o wide", &["8080/TCP", "app=web"]);
    program
        .says("expose pod web --name=out --port=80 --type=LoadBalancer", &["service/out exposed"]);
    program.says(
        "run other --image=nginx --expose --port=80",
        &["service/other created", "pod/other created"],
    );
    program
        .says("run gen --image=nginx --dry-run=client -o json", &["\"restartPolicy\": \"Always\""]);

    program.says("create deployment shop --image=nginx", &[]);
    program.says("expose deployment shop --port=80 --type=NodePort", &["service/shop exposed"]);
    program.says("scale deployment shop --replicas=2", &["deployment.apps/shop scaled"]);
    program.says("rollout status deployment/shop --timeout=60s", &[]);
    program.says("scale deployment shop --current-replicas=2 --replicas=3", &["scaled"]);
    program.refuses(
        "scale deployment shop --current-replicas=9 --replicas=1",
        &["Expected replicas to be 9, was 3"],
    );
    program.says("scale rs -l app=shop --replicas=3", &["scaled"]);
    program.says(
        "autoscale deployment shop --min=2 --max=5 --cpu-percent=70",
        &["horizontalpodautoscaler.autoscaling/shop autoscaled"],
    );
    program.says("get hpa", &["Deployment/shop", "<unknown>/70%", "2", "5"]);
    program.says("annotate pod web steersman.dev/cpu=250m steersman.dev/memory=64Mi", &[]);
    program.says("top pods -l app=web", &["CPU(cores)", "MEMORY(bytes)", "250m", "64Mi"]);
    program.says("top pod web --containers", &["POD", "NAME", "250m"]);
    program.says("top nodes", &["CPU(cores)", "node-0", "node-1", "node-2"]);
    program.says("get podmetrics web", &["CPU", "MEMORY", "WINDOW", "250m", "64Mi", "15s"]);
    program.says("explain podmetrics.containers", &["GROUP:      metrics.k8s.io", "usage"]);
    program.refuses("top pod none", &["pods \"none\" not found"]);
    program.says("get clusterrole view -o yaml", &["metrics.k8s.io"]);
    program.says("annotate service front steersman.dev/metric.hits=30", &[]);
    let served = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: \
                  v1beta2.custom.metrics.k8s.io}, spec: {group: custom.metrics.k8s.io, version: \
                  v1beta2, insecureSkipTLSVerify: true, groupPriorityMinimum: 100, \
                  versionPriority: 100, service: {name: scripted-metrics, namespace: kube-system}}}";
    program.says_to(served, "create -f -", &["created"]);
    let hits = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/services/front/hits";
    program.says(&format!("get --raw {hits}"), &["\"value\":\"30\""]);

    // All of this was long ago.
    let of_front = "-l kubernetes.io/service-name=front";
    program.says(&format!("get endpointslices {of_front}"), &["front-", "IPv4", " 80 ", "10.244."]);
    program
        .says(&format!("describe endpointslices {of_front}"), &["Ready:    true", "Pod/web", "80"]);
    program.says("get endpoints front", &["10.244.", ":80"]);
    program.says("describe service front", &["Endpoints:", "10.244.", ":80"]);
    program.says("get service out", &["LoadBalancer", "10.200.0.1", "80:3"]);
    program.says("describe service out", &["LoadBalancer Ingress:", "EnsuredLoadBalancer"]);
}

#[test]
fn every_scalable_kind_is_scaled() {
    let program = Program::up(&["--nodes", "0"]);
    let template =
        "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}";
    let kinds = [
        ("v1", "ReplicationController", "selector: {a: b}"),
        ("apps/v1", "ReplicaSet", "selector: {matchLabels: {a: b}}"),
        ("apps/v1", "StatefulSet", "serviceName: s, selector: {matchLabels: {a: b}}"),
        ("apps/v1", "Deployment", "selector: {matchLabels: {a: b}}"),
    ];
    let all = kinds.map(|(version, kind, selector)| {
        format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: s}}, spec: {{replicas: 0, {selector}, {template}}}}}\n---\n")
    });
    program.says_to(&all.concat(), "create -f -", &[]);
    let scaled = program.says_to(&all.concat(), "scale --replicas=2 -f -", &[]);
    assert_eq!(scaled.matches(" scaled").count(), 4, "{scaled}");
    let replicas = "get -f - -o jsonpath='{.items[*].spec.replicas}'";
    assert_eq!(program.says_to(&all.concat(), replicas, &[]), "2 2 2 2");
}

#[test]
fn debug_adds_an_ephemeral_container_or_a_copy() {
    let program = Program::up(&["--nodes", "1"]);
    program.says("run web --image=nginx", &[]);
    program.says("wait pod/web --for=condition=Ready --timeout=60s", &[]);
    program.says("debug web --image=busybox --container=look --target=web --profile=general", &[]);
    program.says("get pod web -o jsonpath='{.spec.ephemeralContainers[*].name}'", &["look"]);
    program.says("describe pod web", &["Ephemeral Containers:", "look:"]);
    program
        .says("debug web --image=busybox --copy-to=copy --container=look --profile=general", &[]);
    program.says("get pod copy -o jsonpath='{.spec.containers[*].name}'", &["web look"]);
    program.says("debug node/node-0 --image=busybox --profile=general", &["node-debugger-node-0-"]);
    let patch = "patch pod web --subresource=resize -p \
        '{\"spec\":{\"containers\":[{\"name\":\"web\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]}}'";
    program.refuses(patch, &["Pod QOS Class may not change as a result of resizing"]);
}

#[test]
fn certificates_are_asked_for_approved_and_denied() {
    let program = Program::up(&["--nodes", "0"]);
    for name in ["good", "bad"] {
        let request = format!(
            "{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {{name: {name}}}, \
             spec: {{request: {REQUEST}, signerName: example.com/signer, usages: [client auth]}}}}"
        );
        program.says_to(&request, "create -f -", &["created"]);
    }
    program.says(
        "certificate approve good",
        &["certificatesigningrequest.certificates.k8s.io/good approved"],
    );
    program.says("certificate deny bad", &["bad denied"]);
    program.says("get csr", &["Approved", "Denied", "example.com/signer"]);
    program.refuses("certificate deny good", &["good"]);
}

#[test]
fn an_autoscaler_is_read_in_both_of_its_versions() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create deployment shop --image=nginx", &[]);
    program.says("autoscale deployment shop --min=2 --max=5 --cpu-percent=70", &[]);
    // By its long name: kubectl takes a short one to the version that the group prefers.
    let wanted = "get horizontalpodautoscalers.v1.autoscaling shop -o yaml";
    program.says(wanted, &["targetCPUUtilizationPercentage: 70"]);
}

/// A certificate request for `CN=ada`, PEM in base64.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISU1IQUNBUUF3RGpFTU1Bb0dBMVVFQXd3RFlXUmhNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFWUhiaVJLSkpBaUFXL2tUTGZuZ0FzanBCVzRpa2ZTSEdmZTRGWjJNT2RJVXJkR1RoVjJzM2dQWjlVZzNlCmlhS2ZhWXQ1SHViemUybHh3OGwzNlZ5Q1Q2QUFNQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUNJUUN0TjNzeUJXV0oKVkxISkpvQXZtUUcySzRGeE5XczhaSzZQZ2M2MDRpaitEZ0lnYkRtYVo0NUIxN2dFUjNYbFRIaUhPNFZyMmh3QwpHVlEzWi9HOTFmWUttdTQ9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";
