//! What there is: resources, versions, and what each field means.

use crate::program::Program;

#[test]
fn resources_and_versions_are_listed() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("api-resources", &["NAME", "SHORTNAMES", "po", "apps/v1", "Deployment"]);
    let wide = "api-resources --api-group=apps -o wide --sort-by=name";
    program.says(wide, &["create,delete,deletecollection,get,list,patch,update,watch", "all"]);
    program.says("api-resources --namespaced=false --verbs=list -o name", &["nodes", "namespaces"]);
    program.says("api-resources --categories=all --no-headers", &["services", "deployments"]);
    program.says("api-versions", &["apps/v1\n", "batch/v1\n", "\nv1\n", "policy/v1"]);
    program.says("version", &["Client Version", "Server Version: v1.36"]);
    program.says("version -o yaml", &["serverVersion:", "minor: \"36\""]);
    program
        .says("cluster-info", &["Kubernetes control plane", "is running at", "https://127.0.0.1"]);
    program
        .says("cluster-info dump --namespaces=default -o yaml", &["kind: PodList", "ServiceList"]);
    program.says("config view --minify", &["server: https://127.0.0.1"]);
    program.says("get componentstatuses", &[]);
}

#[test]
fn explain_describes_fields_of_built_in_kinds() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("explain pods", &["KIND:       Pod", "VERSION:    v1", "spec\t<PodSpec>"]);
    program.says("explain deployment.spec.strategy.rollingUpdate", &["maxSurge", "IntOrString"]);
    program.says(
        "explain pod.spec.containers.imagePullPolicy",
        &["FIELD: imagePullPolicy <string>", "ENUM:", "IfNotPresent"],
    );
    program.says("explain cronjob --recursive", &["jobTemplate", "schedule\t<string> -required-"]);
    program.says(
        "explain hpa --api-version=autoscaling/v1",
        &["GROUP:      autoscaling", "VERSION:    v1"],
    );
    program.says("explain service.spec.ports --output=plaintext-openapiv2", &["targetPort"]);
    program.refuses("explain pods.nonsense", &["field \"nonsense\" does not exist"]);
}

#[test]
fn explain_and_short_names_know_custom_resources() {
    let program = Program::up(&["--nodes", "0"]);
    program.kubectl(&["apply", "-f", super::CRD]);
    program.says("wait crd/appservices.demo.steersman.dev --for=condition=Established", &[]);
    // kubectl looks short names up in its cache, which this renews.
    program.says("api-resources --api-group=demo.steersman.dev", &["app", "AppService"]);
    program.says(
        "explain app.spec.replicas",
        &["GROUP:      demo.steersman.dev", "How many Pods it shall have."],
    );
    program.says("get crd appservices.demo.steersman.dev -o wide", &["CREATED AT"]);
    program.says("describe crd appservices.demo.steersman.dev", &["Established", "NamesAccepted"]);
}
