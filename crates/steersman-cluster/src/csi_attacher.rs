//! What stands for the drivers of volumes may say that volumes are attached, and nothing else.
//! Drivers bring their roles along, so Kubernetes has none for them.

use serde_json::json;

use crate::missing::create_missing;

/// Its name, and that of its service account.
pub(crate) const NAME: &str = "simulated-csi-attacher";

const ROLE: &str = "steersman:simulated-csi-attacher";
const GROUP: &str = "rbac.authorization.k8s.io";

/// Makes its role, and gives it that, unless they are there.
pub(crate) async fn grant(client: &kube::Client) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": ROLE},
        "rules": [
            {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"],
             "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments/status"],
             "verbs": ["patch", "update"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": NAME}],
    });
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/{GROUP}/v1/{plural}");
        if let Err(error) = create_missing(client, &path, &object).await {
            tracing::warn!(%error, "volumes of drivers will not be attached: no role for that");
        }
    }
}
