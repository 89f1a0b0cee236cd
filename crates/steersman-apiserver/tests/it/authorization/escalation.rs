//! Nobody gets by writing roles what they do not have.

use serde_json::{Value, json};

use super::{RBAC, bind, binding, bindings, role, rule};
use crate::api::Api;

const APPLY: &str = "application/apply-patch+yaml";
const ALL: [&str; 6] = ["get", "create", "update", "patch", "delete", "list"];

/// Jane may write everything about roles, and read Pods; nothing else.
async fn jane(api: &Api) -> Api {
    let rules = [
        rule(
            &ALL,
            &["rbac.authorization.k8s.io"],
            &["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
        ),
        rule(&["get"], &[""], &["pods"]),
    ];
    role(api, "", "rbac-writer", &rules).await;
    bind(api, "", "ClusterRole", "rbac-writer", "jane").await;
    api.acting_as("jane", &["dev"])
}

fn secrets() -> Value {
    json!([rule(&["get", "list"], &[""], &["secrets"])])
}

#[tokio::test(start_paused = true)]
async fn a_role_grants_only_what_its_writer_has() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    let path = format!("{RBAC}/namespaces/default/roles");
    let refused = jane
        .post(&path, &json!({"metadata": {"name": "r"}, "rules": secrets()}))
        .await
        .refused(403);
    assert_eq!(
        refused["message"],
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"jane\" (groups=[\"dev\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"list\"]}"
    );
    let pods = json!([rule(&["get"], &[""], &["pods"])]);
    jane.post(&path, &json!({"metadata": {"name": "r"}, "rules": pods})).await.ok();
    let one = format!("{path}/r");
    jane.put(&one, &json!({"metadata": {"name": "r"}, "rules": secrets()})).await.refused(403);
    jane.merge(&one, &json!({"rules": secrets()})).await.refused(403);
    let applied = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r"}, "rules": secrets(),
    });
    jane.patch(&format!("{one}?fieldManager=j&force=true"), APPLY, &applied).await.refused(403);
    // An update that creates, and the version in JSON of the same.
    jane.put(&format!("{path}/new"), &json!({"metadata": {"name": "new"}, "rules": secrets()}))
        .await
        .refused(403);
    let cluster = format!("{RBAC}/clusterroles");
    jane.post(&cluster, &json!({"metadata": {"name": "c"}, "rules": secrets()})).await.refused(403);
    for unreachable in ["pods/*", "*", "*/log"] {
        let rules = json!([rule(&["get"], &[""], &[unreachable])]);
        jane.post(&path, &json!({"metadata": {"name": "x"}, "rules": rules})).await.refused(403);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_in_one_namespace_is_not_granted_in_another() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    role(&api, "default", "secrets", &[rule(&["get", "list"], &[""], &["secrets"])]).await;
    bind(&api, "default", "Role", "secrets", "jane").await;
    let role = json!({"metadata": {"name": "r"}, "rules": secrets()});
    jane.post(&format!("{RBAC}/namespaces/default/roles"), &role).await.ok();
    jane.post(&format!("{RBAC}/namespaces/kube-system/roles"), &role).await.refused(403);
    jane.post(&format!("{RBAC}/clusterroles"), &role).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn a_role_is_bound_only_by_whom_has_it() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    role(&api, "", "secrets", &[rule(&["get"], &[""], &["secrets"])]).await;
    role(&api, "", "pods", &[rule(&["get"], &[""], &["pods"])]).await;
    for namespace in ["default", ""] {
        let path = bindings(namespace);
        jane.post(&path, &binding("b", "ClusterRole", "secrets", "jane")).await.refused(403);
        jane.put(&format!("{path}/b"), &binding("b", "ClusterRole", "secrets", "jane"))
            .await
            .refused(403);
        let refused =
            jane.post(&path, &binding("b", "ClusterRole", "none", "jane")).await.refused(404);
        let missing = "clusterrole.rbac.authorization.k8s.io \"none\" not found";
        assert_eq!(refused["message"], missing);
        let refused = jane.post(&path, &binding("b", "Group", "pods", "jane")).await.refused(500);
        assert_eq!(refused["message"], "unsupported role reference kind: \"Group\"");
        jane.post(&path, &binding("b", "ClusterRole", "pods", "bob")).await.ok();
        // Who may change the subjects of a binding hands out its role.
        api.post(&path, &binding("s", "ClusterRole", "secrets", "bob")).await.ok();
        let subjects = &binding("s", "ClusterRole", "secrets", "jane")["subjects"];
        jane.merge(&format!("{path}/s"), &json!({"subjects": subjects})).await.refused(403);
        // What gets rid of it does not.
        let finalizers = json!({"metadata": {"finalizers": ["acme.com/x"]}});
        jane.merge(&format!("{path}/s"), &finalizers).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn the_verbs_escalate_and_bind_allow_it_for_what_they_name() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    role(&api, "", "secrets", &[rule(&["get"], &[""], &["secrets"])]).await;
    role(&api, "", "nodes", &[rule(&["get"], &[""], &["nodes"])]).await;
    let mut binder = rule(&["bind"], &["rbac.authorization.k8s.io"], &["clusterroles"]);
    binder["resourceNames"] = json!(["secrets"]);
    role(&api, "default", "binder", &[binder]).await;
    bind(&api, "default", "Role", "binder", "jane").await;
    let path = bindings("default");
    jane.post(&path, &binding("b", "ClusterRole", "secrets", "jane")).await.ok();
    jane.post(&path, &binding("c", "ClusterRole", "nodes", "jane")).await.refused(403);
    jane.post(&bindings(""), &binding("b", "ClusterRole", "secrets", "jane")).await.refused(403);

    let escalate = rule(&["escalate"], &["rbac.authorization.k8s.io"], &["roles"]);
    role(&api, "default", "escalator", &[escalate]).await;
    bind(&api, "default", "Role", "escalator", "jane").await;
    let all = json!({"metadata": {"name": "r"}, "rules": [rule(&["*"], &["*"], &["*"])]});
    jane.post(&format!("{RBAC}/namespaces/default/roles"), &all).await.ok();
    jane.post(&format!("{RBAC}/namespaces/kube-system/roles"), &all).await.refused(403);
    jane.post(&format!("{RBAC}/clusterroles"), &all).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn only_an_administrator_gathers_roles_by_label() {
    let api = Api::start().await;
    let jane = jane(&api).await;
    let gathering = json!({
        "metadata": {"name": "g"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let refused = jane.post(&format!("{RBAC}/clusterroles"), &gathering).await.refused(403);
    assert_eq!(
        refused["message"],
        "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin \
         privileges to use the aggregationRule"
    );
    let all = [rule(&["*"], &["*"], &["*"]), json!({"verbs": ["*"], "nonResourceURLs": ["*"]})];
    role(&api, "", "all", &all).await;
    bind(&api, "", "ClusterRole", "all", "jane").await;
    jane.post(&format!("{RBAC}/clusterroles"), &gathering).await.ok();
}
