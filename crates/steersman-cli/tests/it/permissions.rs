//! Permissions as kubectl shows and grants them.

use crate::program::Program;

/// Who may what: the roles that people are given, from the weakest to the strongest.
const ROLES: [&str; 4] = ["view", "edit", "admin", "cluster-admin"];

/// What may be done in the namespace of a binding, and from which role on; `None` by nobody.
const TABLE: [(&str, Option<&str>); 24] = [
    ("get pods", Some("view")),
    ("list configmaps", Some("view")),
    ("watch deployments.apps", Some("view")),
    ("get pods --subresource=log", Some("view")),
    ("list persistentvolumeclaims", Some("view")),
    ("get secrets", Some("edit")),
    ("create pods", Some("edit")),
    ("create pods --subresource=exec", Some("edit")),
    ("deletecollection jobs.batch", Some("edit")),
    ("patch deployments.apps --subresource=scale", Some("edit")),
    ("create serviceaccounts --subresource=token", Some("edit")),
    ("impersonate serviceaccounts", Some("edit")),
    ("create leases.coordination.k8s.io", Some("edit")),
    ("get roles.rbac.authorization.k8s.io", Some("admin")),
    ("create rolebindings.rbac.authorization.k8s.io", Some("admin")),
    ("create localsubjectaccessreviews.authorization.k8s.io", Some("admin")),
    ("update resourcequotas", Some("cluster-admin")),
    ("get resourcequotas", Some("view")),
    ("get namespaces", Some("view")),
    ("delete namespaces", Some("cluster-admin")),
    ("create clusterroles.rbac.authorization.k8s.io", Some("cluster-admin")),
    ("get nodes", Some("cluster-admin")),
    ("escalate roles.rbac.authorization.k8s.io", Some("cluster-admin")),
    ("create endpointslices.discovery.k8s.io", Some("cluster-admin")),
];

#[test]
fn the_roles_of_people_allow_what_they_do_in_kubernetes() {
    let program = Program::up(&["--nodes", "0"]);
    program.kubectl(&["create", "namespace", "team"]);
    for role in ROLES {
        program.says(
            &format!("create rolebinding {role} --clusterrole={role} --user=of-{role} -n team"),
            &[],
        );
    }
    for (asked, from) in TABLE {
        let from = from.map_or(ROLES.len(), |from| ROLES.iter().position(|r| *r == from).unwrap());
        for (rank, role) in ROLES.iter().enumerate() {
            let line = format!("auth can-i {asked} -n team --as=of-{role}");
            let (allowed, said) = program.run("", &line);
            assert_eq!(allowed, rank >= from, "{line}: {said}");
        }
        // Nowhere else.
        let (allowed, said) = program.run("", &format!("auth can-i {asked} --as=of-cluster-admin"));
        assert!(!allowed, "{asked}: {said}");
    }
}

#[test]
fn kubectl_lists_reconciles_and_tells_permissions() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("auth can-i --list", &["*.*", "[*]"]);
    program.says(
        "auth can-i --list --as=jane",
        &["selfsubjectaccessreviews.authorization.k8s.io", "/version", "[create]"],
    );
    program.says("auth whoami", &["kubernetes-admin", "system:masters"]);
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n\
                rules:\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n";
    program.says_to(role, "auth reconcile -f -", &["clusterrole.rbac.authorization.k8s.io/r"]);
    let wider = role.replace("[get]", "[list]");
    program.says_to(&wider, "auth reconcile -f -", &["reconciled"]);
    program.says("get clusterrole r -o jsonpath={.rules[*].verbs}", &["get", "list"]);

    program.says("create clusterrolebinding b --clusterrole=r --user=jane", &[]);
    assert!(program.run("", "get pods --as=jane").0);
    let (allowed, said) = program.run("", "get secrets --as=jane");
    assert!(!allowed);
    let refusal = "secrets is forbidden: User \"jane\" cannot list resource \"secrets\" in API group \
                   \"\" in the namespace \"default\"";
    assert!(said.contains(refusal), "{said}");
}

#[test]
fn a_token_of_the_default_account_reads_nothing() {
    let program = Program::up(&["--nodes", "0"]);
    program.says("wait --for=create serviceaccount/default --timeout=60s", &[]);
    let token = program.kubectl(&["create", "token", "default"]);
    let bearing = program.bearing(&token);
    let with = |line: &str| program.run("", &format!("{bearing} {line}"));
    let (known, said) = with("auth whoami");
    assert!(known && said.contains("system:serviceaccount:default:default"), "{said}");
    for line in ["get secrets", "get pods -A", "get nodes", "create configmap a", "get ns default"]
    {
        let (allowed, said) = with(line);
        assert!(!allowed && said.contains("cannot"), "{line}: {said}");
    }
    let (found, said) = with("api-resources");
    assert!(found, "{said}");
}
