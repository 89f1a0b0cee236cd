//! ClusterRoles that gather the rules of others.

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::DeleteParams;
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::objects::object;

/// Whether a role has rules about widgets.
fn knows_widgets(role: &ClusterRole) -> bool {
    let mut resources =
        role.rules.iter().flatten().flat_map(|rule| rule.resources.iter().flatten());
    resources.any(|resource| resource == "widgets")
}

fn widget_viewer() -> ClusterRole {
    object(json!({
        "metadata": {
            "name": "widget-viewer",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"},
        },
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}],
    }))
}

#[steersman::test]
async fn a_role_that_is_part_of_view_is_gathered_by_edit_and_admin_too(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&widget_viewer()).await?;
    for name in ["view", "edit", "admin"] {
        cluster.eventually(name, knows_widgets).await?;
    }
    let view: ClusterRole = cluster.client().get("view").await?.unwrap();
    let managers = view.metadata.managed_fields.unwrap_or_default();
    let manager = managers.iter().find(|entry| entry.operation.as_deref() == Some("Apply"));
    let manager = manager.and_then(|entry| entry.manager.as_deref());
    assert_eq!(manager, Some("clusterrole-aggregation-controller"));
    let viewer = "widget-viewer";
    cluster.client().delete::<ClusterRole>(viewer, &DeleteParams::default()).await?;
    for name in ["view", "edit", "admin"] {
        cluster.eventually(name, |role: &ClusterRole| !knows_widgets(role)).await?;
    }
    Ok(())
}

#[steersman::test]
async fn what_the_api_server_has_gathered_is_not_written_again(cluster: Cluster) -> Result<()> {
    let versions = async || -> Result<Vec<_>> {
        let roles = cluster.client().list::<ClusterRole>(&ListOptions::default()).await?;
        Ok(roles.into_iter().map(|role| role.metadata.resource_version.clone()).collect())
    };
    let before = versions().await?;
    cluster.advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(versions().await?, before);
    Ok(())
}
