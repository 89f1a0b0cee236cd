//! The disk of images fills up, which is not that of the node.

use std::process::Command;

use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::Scene;
use crate::containerd;
use crate::machine::phase;

const DISK: u64 = 1 << 20;

async fn is_pressed(scene: &Scene) -> bool {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let node = nodes.get("lied-to").await.expect("the server answers");
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.iter().any(|it| it.type_ == "DiskPressure" && it.status == "True")
}

#[tokio::test(start_paused = true)]
async fn who_wrote_most_on_a_full_disk_of_images_goes() {
    let scene = Scene::start_kept("images", |keep| {
        keep.eviction_hard = [("imagefs.available".into(), "50%".into())].into();
    })
    .await;
    let images = scene.directory.join("images");
    std::fs::create_dir_all(&images).expect("a directory of our own");
    containerd::mount_memory(&images, DISK);
    scene.liar.keep_images(images.clone());
    // They write as much as their names are long.
    for (pod, name) in [("small", "s"), ("large", "large-container")] {
        scene.run_with(pod, json!({"name": name})).await;
        scene.until("it runs", async || scene.runs(pod).await).await;
    }
    assert!(!is_pressed(&scene).await);
    std::fs::write(images.join("file"), vec![1; 600 << 10]).expect("there is room");
    let failed = async |name: &str| scene.pod(name).await.filter(|pod| phase(pod) == "Failed");
    scene.until("one is evicted", async || failed("large").await.is_some()).await;
    let status = failed("large").await.and_then(|pod| pod.status).expect("a status");
    let low = "The node was low on resource: ephemeral-storage. Threshold quantity: 512Ki, ";
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    assert!(status.message.as_ref().is_some_and(|text| text.starts_with(low)), "{status:?}");
    scene.until("the Node says so", async || is_pressed(&scene).await).await;
    let told = async || annotated(&scene, "large").await.is_some();
    scene.until("people hear of it", told).await;
    let told = annotated(&scene, "large").await.expect("it was there");
    assert_eq!(told["starved_resource"], "ephemeral-storage");
    assert_eq!(told["offending_containers"], "large-container");
    assert!(told["offending_containers_usage"].ends_with("Ki"), "{told:?}");
    let unmounted = Command::new("umount").arg(&images).status().expect("umount");
    assert!(unmounted.success());
    scene.end().await;
}

/// What the Event of an eviction says to programs.
async fn annotated(scene: &Scene, pod: &str) -> Option<std::collections::BTreeMap<String, String>> {
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
    let events = events.list(&about).await.expect("the server answers");
    let evicted = events.items.into_iter().find(|it| it.reason.as_deref() == Some("Evicted"))?;
    evicted.metadata.annotations
}
