//! Who may read metrics: whoever may look at a namespace, by the role that the manifests of
//! metrics-server add to `view`, `edit` and `admin`.

use serde_json::json;

use crate::missing::create_missing;

/// Makes the role unless it is there.
pub(crate) async fn grant(client: &kube::Client) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "system:aggregated-metrics-reader",
            "labels": {
                "k8s-app": "metrics-server",
                "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                "rbac.authorization.k8s.io/aggregate-to-edit": "true",
                "rbac.authorization.k8s.io/aggregate-to-view": "true",
            },
        },
        "rules": [{
            "apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"],
            "verbs": ["get", "list", "watch"],
        }],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    if let Err(error) = create_missing(client, path, &role).await {
        tracing::warn!(%error, "cannot make the role of those who read metrics");
    }
}
