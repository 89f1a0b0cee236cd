//! Changing what is there: edit, patch, replace, label, annotate, set.

use std::os::unix::fs::PermissionsExt;

use crate::program::Program;

/// Makes `kubectl edit` run this `sed` script on what it shows.
fn editor(program: &Program, script: &str) {
    let path = program.file("editor", &format!("#!/bin/sh\nexec sed -i '{script}' \"$1\"\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn edit_changes_an_object_as_its_user_wrote_it() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create configmap settings --from-literal=colour=blue", &[]);
    program.says("create deployment web --image=nginx:1 --replicas=0", &[]);
    editor(&program, "s/colour: blue/colour: red/");
    program.says("edit configmap settings", &["configmap/settings edited"]);
    program.says_to("", "edit configmap settings", &["Edit cancelled, no changes made."]);
    program.says("get configmap settings -o yaml", &["colour: red"]);
    editor(&program, "s/nginx:1/nginx:2/");
    program.says("edit deployment web -o json", &["\"image\": \"nginx:2\""]);
    program.says("get deployment web -o wide", &["nginx:2"]);
    editor(&program, "s/replicas: 0/replicas: -1/");
    program
        .refuses("edit deployment web", &["deployments.apps \"web\" is invalid", "Edit cancelled"]);
    program.says("create service loadbalancer web --tcp=80", &[]);
    editor(&program, "s/loadBalancer: {}/loadBalancer: {ingress: [{ip: 192.0.2.1}]}/");
    program.says("edit service web --subresource=status", &["edited"]);
}

#[test]
fn each_type_of_patch_does_what_its_name_says() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create deployment web --image=nginx:1 --replicas=0", &[]);
    let images = "get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}'";
    let containers = |list: &str| {
        format!("'{{\"spec\":{{\"template\":{{\"spec\":{{\"containers\":{list}}}}}}}}}'")
    };
    let side = containers("[{\"name\":\"side\",\"image\":\"busybox\"}]");
    program.says(&format!("patch deployment web -p {side}"), &["deployment.apps/web patched"]);
    assert_eq!(program.says(images, &[]), "busybox nginx:1");
    program.says(&format!("patch deployment web -p {side}"), &["patched (no change)"]);
    let delete = containers("[{\"name\":\"side\",\"$patch\":\"delete\"}]");
    program.says(&format!("patch deployment web -p {delete}"), &["patched"]);
    assert_eq!(program.says(images, &[]), "nginx:1");
    program.says(&format!("patch deployment web --type=merge -p {side}"), &["patched"]);
    assert_eq!(program.says(images, &[]), "busybox");
    let json = "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":0},\
                {\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]";
    program.says(&format!("patch deployment web --type=json -p '{json}'"), &["patched"]);
    program.refuses(
        &format!("patch deployment web --type=json -p '{json}'"),
        &["The request is invalid"],
    );
    let file = program.file("patch.yaml", "spec: {paused: true}");
    program.says(&format!("patch deployment web --patch-file={file}"), &["patched"]);
    program.says("get deployment web -o jsonpath='{.spec.replicas}{.spec.paused}'", &["2true"]);

    let scale =
        "patch deployment web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":1}}'";
    program.says(scale, &["scale.autoscaling/web patched"]);
    program.refuses("patch deployment web -p '{\"spec\":{\"replicas\":\"many\"}}'", &["replicas"]);
    program.refuses("patch deployment web -p '{\"spec\":{\"selector\":null}}'", &["spec.selector"]);
    program.says_to(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: local}}",
        "patch -f - --local --type=merge -p '{\"data\":{\"a\":\"b\"}}' -o yaml",
        &["a: b"],
    );
}

#[test]
fn replace_puts_a_whole_object_in_place_of_another() {
    let program = Program::up(&["--nodes", "0"]);
    let settings = |data: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings}}, data: {data}}}")
    };
    program.refuses_to(&settings("{a: b}"), "replace -f -", &["NotFound"]);
    program.says_to(&settings("{a: b}"), "create -f -", &["created"]);
    let uid = "get configmap settings -o jsonpath='{.metadata.uid} {.data}'";
    let before = program.says(uid, &["{\"a\":\"b\"}"]);
    program.says_to(&settings("{c: d}"), "replace -f -", &["configmap/settings replaced"]);
    let after = program.says(uid, &["{\"c\":\"d\"}"]);
    assert_eq!(before.split(' ').next(), after.split(' ').next());
    program.says_to(&settings("{e: f}"), "replace --force -f -", &["deleted", "replaced"]);
    let anew = program.says(uid, &["{\"e\":\"f\"}"]);
    assert_ne!(before.split(' ').next(), anew.split(' ').next());
    let stale = program.says("get configmap settings -o json", &[]);
    program.says("annotate configmap settings newer=yes", &[]);
    program.refuses_to(&stale, "replace -f -", &["Conflict", "the object has been modified"]);
}

#[test]
fn labels_and_annotations_come_and_go() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create configmap one --from-literal=a=b", &[]);
    program.says("create configmap two --from-literal=a=b", &[]);
    program.says("label configmap one two tier=front", &["configmap/one labeled", "two labeled"]);
    program.refuses("label configmap one tier=back", &["already has a value (front)"]);
    program.says("label configmap one tier=back --overwrite", &["labeled"]);
    program.says("label configmap one tier=back --overwrite", &["not labeled"]);
    program.says("label cm -l tier=front extra=yes", &["configmap/two labeled"]);
    program.says("label configmap two tier-", &["unlabeled"]);
    program.says("label configmap one two --list", &["tier=back", "extra=yes"]);
    program.says("get cm -l '!tier,extra in (yes,no)' -o name", &["configmap/two\n"]);
    program.says("get cm -L tier", &["TIER", "back"]);
    program.refuses("label configmap one 'bad key=x'", &["bad key"]);
    program.refuses("label configmap one tier='-bad-' --overwrite", &["tier", "must"]);
    let stale = "label configmap one tier=new --overwrite --resource-version=1";
    program.refuses(stale, &["the object has been modified"]);

    program.says("annotate configmap one note='two words'", &["configmap/one annotated"]);
    program.says("annotate cm --all owner=me", &["one annotated", "two annotated"]);
    program.says("annotate configmap one --list", &["note=two words", "owner=me"]);
    program.says("annotate configmap one note-", &["annotated"]);
    let annotations = "get configmap one -o jsonpath='{.metadata.annotations}'";
    assert_eq!(program.says(annotations, &[]), "{\"owner\":\"me\"}");
}

#[test]
fn set_changes_the_parts_that_have_a_command_of_their_own() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create deployment web --image=nginx:1 --replicas=0", &[]);
    program.says("create configmap settings --from-literal=COLOUR=blue", &[]);
    program.says("create service clusterip web --tcp=80", &[]);
    program.says("create serviceaccount robot", &[]);
    program.says("create rolebinding readers --clusterrole=view --user=ada", &[]);
    program.says("set image deployment/web nginx=nginx:2", &["deployment.apps/web image updated"]);
    program.says("set env deployment/web LEVEL=debug", &["env updated"]);
    program.says("set env deployment/web --from=configmap/settings", &["env updated"]);
    program.says("set env deployment/web --list", &["LEVEL=debug", "configmap settings"]);
    program.says("set env deployment/web LEVEL-", &["env updated"]);
    program.says(
        "set resources deployment/web --limits=cpu=200m,memory=64Mi --requests=cpu=100m",
        &["resource requirements updated"],
    );
    program.refuses(
        "set resources deployment/web --limits=cpu=50m",
        &["must be less than or equal to cpu limit"],
    );
    program.says("set serviceaccount deployment/web robot", &["serviceaccount updated"]);
    program.says("set selector service/web tier=front", &["selector updated"]);
    program.says("set subject rolebinding/readers --user=ben", &["subjects updated"]);
    let spec = program.says("get deployment web -o jsonpath='{.spec.template.spec}'", &[]);
    for part in ["nginx:2", "\"memory\":\"64Mi\"", "\"serviceAccountName\":\"robot\"", "COLOUR"] {
        assert!(spec.contains(part), "{part} is not in {spec}");
    }
    assert!(!spec.contains("LEVEL"), "{spec}");
    program.says("get service web -o wide", &["tier=front"]);
    program.says("get rolebinding readers -o wide", &["ada, ben"]);
}
