//! Kinds that are known only at run time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use steersman::kind::Scope;
use steersman::{Context, Controller, Deleted, Kind, ListOptions, Next, Result};
use steersman_testkit::Cluster;

fn kind(name: &str) -> Kind<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", name);
    Kind::dynamic(ApiResource::from_gvk(&kind), Scope::Namespaced)
}

/// Defines a kind with any spec and any status.
async fn define(cluster: &Cluster, kind: &Kind<DynamicObject>) -> Result<()> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": format!("{kind:?}")},
        "spec": {
            "group": kind.group(),
            "names": {"kind": kind.name(), "plural": kind.plural()},
            "scope": "Namespaced",
            "versions": [{
                "name": kind.version(), "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": any, "status": any},
                }},
                "subresources": {"status": {}},
            }],
        },
    }))?;
    cluster.client().create(&definition).await?;
    cluster.advance(Duration::from_secs(1)).await;
    Ok(())
}

fn object(kind: &Kind<DynamicObject>, name: &str, size: u32) -> DynamicObject {
    DynamicObject::new(name, &kind.api_resource()).data(json!({"spec": {"size": size}}))
}

/// Keeps one part per widget and reports its size.
fn widget_controller(widgets: &Kind<DynamicObject>, parts: &Kind<DynamicObject>) -> Controller {
    let of_parts = parts.clone();
    Controller::of_kind(widgets).owns_with(parts).reconcile(
        move |widget: Arc<DynamicObject>, ctx: Context<DynamicObject>| {
            let parts = of_parts.clone();
            async move {
                let name = widget.metadata.name.as_deref().unwrap_or_default();
                let mut part = object(&parts, name, 0);
                part.data = json!({"spec": widget.data["spec"]});
                part.types = None; // is filled in from the kind
                ctx.of_kind(&parts).apply(part).await?;
                let seen = ctx.of_kind(&parts).get(name)?;
                ctx.status(json!({"size": seen.map(|part| part.data["spec"]["size"].clone())}));
                Ok(Next::Settled)
            }
        },
    )
}

#[steersman::test]
async fn a_controller_of_a_kind_known_at_run_time_owns_others_and_reports(
    cluster: Cluster,
) -> Result<()> {
    let (widgets, parts) = (kind("Widget"), kind("Part"));
    define(&cluster, &widgets).await?;
    define(&cluster, &parts).await?;
    cluster.run(widget_controller(&widgets, &parts));
    let widget = cluster.client().of_kind(&widgets).create(&object(&widgets, "a", 3)).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let part = cluster.client().of_kind(&parts).get("a").await?.unwrap();
    let owner = &part.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("Widget", widget.metadata.uid.as_ref()));
    let widget = cluster.client().of_kind(&widgets).get("a").await?.unwrap();
    assert_eq!(widget.data["status"], json!({"size": 3}), "the part's event woke its owner");
    // Somebody changes the part: its owner mends it.
    cluster.client().of_kind(&parts).update(&DynamicObject { data: json!({}), ..part }).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let part = cluster.client().of_kind(&parts).get("a").await?.unwrap();
    assert_eq!(part.data["spec"]["size"], 3);
    Ok(())
}

#[steersman::test]
async fn the_client_lists_and_deletes_what_it_discovered(cluster: Cluster) -> Result<()> {
    define(&cluster, &kind("Widget")).await?;
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widgets = cluster.client().discover(&gvk).await?;
    assert!(widgets.is_namespaced());
    let client = cluster.client().of_kind(&widgets);
    client.create(&object(&widgets, "a", 1)).await?;
    client.apply(&object(&widgets, "b", 2)).await?;
    let sizes = async || -> Result<Vec<_>> {
        let all = client.list(&ListOptions::namespace("default")).await?;
        Ok(all.iter().map(|widget| widget.data["spec"]["size"].clone()).collect())
    };
    assert_eq!(sizes().await?, [1, 2]);
    assert_eq!(client.delete("a", &DeleteParams::default()).await?, Deleted::Gone);
    assert_eq!(sizes().await?, [2]);
    Ok(())
}

#[steersman::test]
async fn a_cached_read_of_an_undeclared_kind_of_the_same_type_is_refused(
    cluster: Cluster,
) -> Result<()> {
    let (widgets, parts) = (kind("Widget"), kind("Part"));
    define(&cluster, &widgets).await?;
    let mut records = cluster.reconciles();
    cluster.run(Controller::of_kind(&widgets).reconcile(
        move |_: Arc<DynamicObject>, ctx: Context<DynamicObject>| {
            let parts = parts.clone();
            async move { ctx.of_kind(&parts).get("a").map(|_| Next::Settled) }
        },
    ));
    cluster.client().of_kind(&widgets).create(&object(&widgets, "a", 3)).await?;
    let outcome = records.recv().await?.outcome.to_string();
    assert!(outcome.contains("reads Part objects"), "{outcome}");
    assert!(outcome.contains(".reads_with(&kind)"), "{outcome}");
    Ok(())
}

#[steersman::test]
async fn a_controller_waits_for_a_kind_that_is_not_served_yet(cluster: Cluster) -> Result<()> {
    let (widgets, parts) = (kind("Widget"), kind("Part"));
    define(&cluster, &widgets).await?;
    cluster.run(widget_controller(&widgets, &parts));
    cluster.client().of_kind(&widgets).create(&object(&widgets, "a", 3)).await?;
    cluster.advance(Duration::from_secs(300)).await;
    define(&cluster, &parts).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let widget = cluster.client().of_kind(&widgets).get("a").await?.unwrap();
    assert_eq!(widget.data["status"], json!({"size": 3}));
    Ok(())
}
