//! `kubectl get`: every output format, selectors, sorting and pages.

use crate::program::Program;

/// Three ConfigMaps of different sizes, and one in another namespace.
fn program() -> Program {
    let program = Program::up(&["--nodes", "0"]);
    let map = |name: &str, namespace: &str, data: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}, \
             labels: {{app: {name}, tier: {namespace}}}}}, data: {data}}}\n---\n"
        )
    };
    let all = [
        map("oak", "default", "{size: '3', kind: tree}"),
        map("fern", "default", "{size: '1'}"),
        map("rose", "default", "{size: '2', kind: bush, colour: red}"),
        map("kelp", "kube-public", "{size: '4'}"),
    ];
    program.says_to(&all.concat(), "create -f -", &["oak", "kelp"]);
    program
}

#[test]
fn get_prints_every_format() {
    let program = program();
    program.says("get configmap oak", &["NAME", "DATA", "AGE", "oak", "2"]);
    program.says("get configmap oak --no-headers -o wide", &["oak"]);
    program.says("get configmap oak -o yaml", &["kind: ConfigMap\n", "  size: \"3\"\n"]);
    program.says("get configmap oak -o json", &["\"kind\": \"ConfigMap\"", "\"size\": \"3\""]);
    assert_eq!(program.says("get cm oak fern -o name", &[]), "configmap/oak\nconfigmap/fern\n");
    assert_eq!(program.says("get cm oak -o jsonpath='{.data.kind}'", &[]), "tree");
    let kubernetes =
        "get cm -l app -o jsonpath='{range .items[?(@.data.kind==\"bush\")]}{.metadata.name}{end}'";
    assert_eq!(program.says(kubernetes, &[]), "rose");
    let file = program.file("path", "{.data.size}");
    assert_eq!(program.says(&format!("get cm oak -o jsonpath-file={file}"), &[]), "3");
    let template = "get cm oak -o go-template='{{range $k, $v := .data}}{{$k}}={{$v}};{{end}}'";
    assert_eq!(program.says(template, &[]), "kind=tree;size=3;");
    let file = program.file("template", "{{.data.kind}}");
    assert_eq!(program.says(&format!("get cm oak -o go-template-file={file}"), &[]), "tree");
    let columns = "get cm oak rose -o custom-columns=NAME:.metadata.name,SIZE:.data.size";
    let table = program.says(columns, &[]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows, [["NAME", "SIZE"], ["oak", "3"], ["rose", "2"]]);
    let file = program.file("columns", "NAME COLOUR\nmetadata.name data.colour\n");
    program.says(&format!("get cm oak -o custom-columns-file={file}"), &["COLOUR", "<none>"]);
    program.says("get cm oak -o kyaml --show-managed-fields=false", &["oak"]);
    let fields = program.says("get cm oak -o yaml", &[]);
    assert!(!fields.contains("managedFields"), "{fields}");
    program.says("get cm oak -o yaml --show-managed-fields", &["managedFields:", "f:data"]);
    program.refuses(
        "get cm absent",
        &["Error from server (NotFound): configmaps \"absent\" not found"],
    );
    assert_eq!(program.says("get cm absent --ignore-not-found", &[]), "");
    program.refuses("get unicorns", &["the server doesn't have a resource type \"unicorns\""]);
}

#[test]
fn get_selects_sorts_and_pages() {
    let program = program();
    let names = |line: &str| {
        let printed = program.says(line, &[]).replace("configmap/", "");
        printed
            .split_whitespace()
            .filter(|name| *name != "kube-root-ca.crt")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(names("get cm -l app -o name"), ["fern", "oak", "rose"]);
    assert_eq!(names("get cm -l app --sort-by=.data.size -o name"), ["fern", "rose", "oak"]);
    assert_eq!(names("get cm -l app!=oak,tier=default -o name"), ["fern", "rose"]);
    assert_eq!(names("get cm -l 'app notin (oak,fern),app' -o name"), ["rose"]);
    assert_eq!(names("get cm --field-selector=metadata.name=oak -o name"), ["oak"]);
    assert_eq!(names("get cm -A -l app --chunk-size=1 -o name"), ["fern", "oak", "rose", "kelp"]);
    let table = program.says("get cm -A -l app --chunk-size=2", &["NAMESPACE"]);
    assert_eq!(table.lines().count(), 5, "{table}");
    let elsewhere = "--field-selector=metadata.namespace!=default";
    assert_eq!(names(&format!("get cm -A -l app {elsewhere} -o name")), ["kelp"]);
    program.says("get cm oak --show-labels", &["LABELS", "app=oak,tier=default"]);
    program.says("get cm oak --show-kind", &["configmap/oak"]);
    program
        .says("get cm,sa,svc", &["configmap/oak", "serviceaccount/default", "service/kubernetes"]);
    program.says("get ns/default cm/oak", &["namespace/default", "configmap/oak"]);
    program.refuses("get cm -l 'app=('", &["unable to parse requirement"]);
    let last = program.says("get cm -A -l app --sort-by='{.metadata.creationTimestamp}'", &[]);
    assert_eq!(last.lines().count(), 5, "{last}");
}

#[test]
fn get_reads_subresources_and_raw_paths() {
    let program = program();
    program.says("create deployment web --image=nginx --replicas=3", &[]);
    program.says("get deployment web --subresource=status -o yaml", &["kind: Deployment"]);
    program.says("get deployment web --subresource=scale -o yaml", &["kind: Scale", "app=web"]);
    let raw = "get --raw /api/v1/namespaces/default/configmaps/oak";
    program.says(raw, &["\"kind\":\"ConfigMap\"", "\"size\":\"3\""]);
    program.says("get --raw /healthz", &["ok"]);
    program.says("get --raw '/readyz?verbose'", &["check passed"]);
    program.says("get --raw /version", &["gitVersion", "v1.36"]);
    program.says("get --raw /apis/apps/v1", &["\"APIResourceList\"", "deployments/scale"]);
    program.refuses("get --raw /no/such/path", &["NotFound"]);
    program.says_to(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"moss\"}}",
        "create --raw /api/v1/namespaces/default/configmaps -f -",
        &["\"uid\""],
    );
    program.says("delete --raw /api/v1/namespaces/default/configmaps/moss", &["\"Success\""]);
}

#[test]
fn a_scale_has_columns_of_its_own() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("create deployment web --image=nginx --replicas=3", &[]);
    program.says("get deployment web --subresource=scale", &["NAME", "DESIRED", "AVAILABLE", "3"]);
}

#[test]
fn a_field_that_selects_nothing_is_named() {
    let program = Program::up(&["--nodes", "0"]);
    program.refuses(
        "get cm --field-selector=data.size=1",
        &["\"data.size\" is not a known field selector"],
    );
}
