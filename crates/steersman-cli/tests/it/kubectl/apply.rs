//! `kubectl apply`, client-side and server-side, `diff` and kustomizations.

use crate::program::Program;

/// A ConfigMap and a Deployment, with room for what changes.
fn manifest(colour: &str, image: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, labels: {{app: web}}}}
data: {{colour: {colour}, shape: round}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{app: web}}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: {image}, ports: [{{containerPort: 80}}]}}
"
    )
}

const COLOUR: &str = "get configmap settings -o jsonpath='{.data.colour}'";
const IMAGES: &str = "get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}'";

#[test]
fn diff_shows_what_apply_would_change() {
    let program = Program::up(&["--nodes", "0"]);
    program.refuses_to(&manifest("blue", "nginx:1"), "diff -f -", &["+  colour: blue"]);
    program.says_to(&manifest("blue", "nginx:1"), "apply -f -", &["configmap/settings created"]);
    program.says_to(&manifest("blue", "nginx:1"), "diff -f -", &[]);
    let changed = manifest("red", "nginx:2");
    let shown = ["-  colour: blue", "+  colour: red", "image: nginx:2"];
    program.refuses_to(&changed, "diff -f -", &shown);
    let by_another = "diff --server-side --force-conflicts --field-manager=other -f -";
    program.refuses_to(&changed, by_another, &shown);
    program.says(COLOUR, &["blue"]);
}

#[test]
fn apply_on_the_client_keeps_what_others_set_and_drops_what_it_no_longer_names() {
    let program = Program::up(&["--nodes", "0"]);
    program.says_to(&manifest("blue", "nginx:1"), "apply -f -", &["deployment.apps/web created"]);
    program.says_to(&manifest("blue", "nginx:1"), "apply -f -", &["configmap/settings unchanged"]);
    let last = program.says_to(&manifest("blue", "nginx:1"), "apply view-last-applied -f -", &[]);
    assert!(last.contains("colour: blue") && !last.contains("uid"), "{last}");

    program.says("patch configmap settings -p '{\"data\":{\"size\":\"big\"}}'", &["patched"]);
    program.says("scale deployment web --replicas=3", &["scaled"]);
    let without_shape = manifest("red", "nginx:2").replace(", shape: round", "");
    let without_replicas = without_shape.replace("  replicas: 0\n", "");
    let side = "      - {name: side, image: busybox}\n";
    program.says_to(&(without_replicas + side), "apply -f -", &["web configured"]);
    let data = program.says("get configmap settings -o jsonpath='{.data}'", &[]);
    assert_eq!(data, "{\"colour\":\"red\",\"size\":\"big\"}");
    program.says(IMAGES, &["nginx:2 busybox"]);

    program.says_to(&manifest("red", "nginx:3"), "apply -f -", &["web configured"]);
    assert_eq!(program.says(IMAGES, &[]), "nginx:3");

    // Pruning takes what was applied before and is no longer in the set.
    let only_map = manifest("red", "a").split("---").next().unwrap().to_owned();
    let prune = "apply --prune -l app=web --prune-allowlist=core/v1/ConfigMap \
                 --prune-allowlist=apps/v1/Deployment -f -";
    program.says_to(&only_map, prune, &["deployment.apps/web pruned"]);
    program.refuses("get deployment web", &["NotFound"]);
}

#[test]
fn apply_on_the_server_tells_conflicts_and_forces_them() {
    let program = Program::up(&["--nodes", "0"]);
    let ours = "apply --server-side --field-manager=ours -f -";
    let theirs = "apply --server-side --field-manager=theirs -f -";
    let first = manifest("blue", "nginx:1");
    program.says_to(&first, ours, &["configmap/settings serverside-applied"]);
    program.says_to(&first, theirs, &["deployment.apps/web serverside-applied"]);
    program.refuses_to(
        &manifest("red", "nginx:2"),
        theirs,
        &[
            "conflict with \"ours\": .data.colour",
            ".spec.template.spec.containers[name=\"web\"].image",
            "--force-conflicts",
        ],
    );
    program.says(COLOUR, &["blue"]);
    let force = "apply --server-side --field-manager=theirs --force-conflicts -f -";
    program.says_to(&manifest("red", "nginx:2"), force, &["serverside-applied"]);
    program.says(COLOUR, &["red"]);
    program.says(IMAGES, &["nginx:2"]);
    let fields = program.says("get configmap settings -o yaml --show-managed-fields", &[]);
    let (before, after) = fields.split_once("manager: ours").unwrap();
    assert!(before.contains("managedFields") && after.contains("manager: theirs"), "{fields}");

    // A label that its only manager leaves out goes.
    let bare = manifest("red", "nginx:2").replace(", labels: {app: web}}", "}");
    program.says_to(&bare, ours, &[]);
    program.says("get configmap settings --show-labels", &["app=web"]);
    program.says_to(&bare, theirs, &[]);
    program.says("get configmap settings --show-labels", &["<none>"]);
}

#[test]
fn apply_on_the_server_takes_over_from_the_client() {
    let program = Program::up(&["--nodes", "0"]);
    program.says_to(&manifest("blue", "nginx:1"), "apply -f -", &["created"]);
    let with_side = manifest("red", "nginx:2") + "      - {name: side, image: busybox}\n";
    program.says_to(&with_side, "apply --server-side -f -", &["serverside-applied"]);
    program.says(IMAGES, &["nginx:2 busybox"]);
    // The fields moved from the client's manager to the server-side one, so they can go.
    program.says_to(&manifest("red", "nginx:2"), "apply --server-side -f -", &[]);
    assert_eq!(program.says(IMAGES, &[]), "nginx:2");
    let managers = "get deployment web --show-managed-fields \
                    -o jsonpath='{.metadata.managedFields[*].manager}'";
    let managers = program.says(managers, &["kubectl"]);
    assert!(!managers.contains("kubectl-client-side-apply"), "{managers}");
    let last = "get deployment web -o jsonpath='{.metadata.annotations}'";
    program.says(last, &["last-applied-configuration", "nginx:2"]);
}

#[test]
fn kustomizations_are_built_and_applied() {
    let program = Program::up(&["--nodes", "0"]);
    let file = program.file("site/web.yaml", &manifest("blue", "nginx"));
    program.file(
        "site/kustomization.yaml",
        "namePrefix: my-
resources: [web.yaml]
images: [{name: nginx, newTag: \"1.29\"}]
configMapGenerator: [{name: extra, literals: [a=b]}]
labels: [{pairs: {team: blue}}]
",
    );
    let site = file.replace("/web.yaml", "");
    program.says(&format!("kustomize {site}"), &["name: my-web", "nginx:1.29"]);
    program.says(
        &format!("apply -k {site}"),
        &["configmap/my-extra-", "deployment.apps/my-web created"],
    );
    program.says("get all,cm -l team=blue -o name", &["configmap/my-settings", "my-extra-"]);
    program.says(&format!("delete -k {site}"), &["deleted"]);
}
