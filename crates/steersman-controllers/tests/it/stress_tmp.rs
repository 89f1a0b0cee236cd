use k8s_openapi::api::apps::v1::Deployment;
use kube::api::DeleteParams;
use steersman::Result;
use steersman_testkit::{Cluster, Settings};
use crate::objects::{deployment, all_become};
#[test]
fn stress_tmp() -> Result<()> {
    steersman_testkit::run_with(Settings { nodes: 20, seed: 1 }, |cluster: Cluster| async move {
    let t = std::time::Instant::now();
    cluster.client().create(&deployment("web", 300, "nginx")).await?;
    cluster.eventually("web", |d: &Deployment| d.status.as_ref().is_some_and(|s| s.available_replicas == Some(300))).await?;
    println!("up {:?}", t.elapsed());
    let t = std::time::Instant::now();
    cluster.client().delete::<Deployment>("web", &DeleteParams::foreground()).await?;
    cluster.gone::<Deployment>("web").await?;
    println!("gone {:?}", t.elapsed());
    all_become(&cluster, |p: &[k8s_openapi::api::core::v1::Pod]| p.is_empty()).await?;
    println!("empty {:?}", t.elapsed());
    Ok(())
    })
}
