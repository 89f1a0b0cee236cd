//! Who one is and what one may do.

use crate::program::Program;

#[test]
fn whoami_and_can_i_answer_for_oneself() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("auth whoami", &["Username", "Groups"]);
    program.says("auth whoami -o yaml", &["kind: SelfSubjectReview", "system:authenticated"]);
    program.says("auth can-i create deployments", &["yes"]);
    program.says("auth can-i '*' '*' --all-namespaces", &["yes"]);
    program.says("auth can-i get /healthz", &["yes"]);
    program.says("auth can-i --list", &["Resources", "Verbs"]);
}

#[test]
fn access_reviews_and_certificates_pass_through_kubectl() {
    let program = Program::up(&["--nodes", "0"]);
    program.says_to(
        "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, \
         spec: {resourceAttributes: {verb: get, resource: pods}}}",
        "create -f - -o jsonpath='{.status.allowed}'",
        &["true"],
    );
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, \
                metadata: {name: reader}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}";
    program.says_to(role, "auth reconcile -f -", &["reconciled"]);
    program.says("get clusterrole reader -o yaml", &["- pods"]);
}
