//! A runtime whose network is down.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Scene;
use super::liar::Manner;

/// How soon a Pod runs again that failed for long. Who is woken does not wait for so long.
const RETRY: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn who_needs_a_network_waits_until_there_is_one() {
    let scene = Scene::start("network").await;
    scene.run_with("dies", json!({"name": "mortal"})).await;
    scene.until("one runs before", async || scene.runs("dies").await).await;
    scene.liar.behave(Manner::NoNetwork);
    let why = "container runtime network not ready: NetworkReady=false \
               reason:NetworkPluginNotReady message:no network";
    let down = async || scene.not_ready().await.as_deref() == Some(why);
    scene.until("the node says so", down).await;
    scene.run("waits").await;
    scene.run_whole("on-host", json!({"hostNetwork": true}), json!({})).await;
    scene.until("the one on the host runs", async || scene.runs("on-host").await).await;
    let said = format!("NetworkNotReady: network is not ready: {why}");
    let told = async || scene.events("waits").await.contains(&said);
    scene.until("people hear why the other does not", told).await;
    scene.liar.crash("mortal");
    let unready = async || !scene.runs("dies").await;
    scene.until("people hear of what has ended meanwhile", unready).await;
    assert_eq!(scene.liar.ready_sandboxes(), 2, "nobody has tried");
    assert_eq!(scene.liar.running(), 1);
    scene.liar.behave(Manner::Honest);
    let honest = Instant::now();
    for name in ["waits", "dies"] {
        scene.until(&format!("{name} runs"), async || scene.runs(name).await).await;
    }
    assert!(honest.elapsed() < RETRY, "{:?}", honest.elapsed());
    // Nobody answers names in this cluster.
    let missing = async |name: &str| {
        let events = scene.events(name).await;
        events.iter().any(|event| event.starts_with(&format!("MissingClusterDNS: pod: \"{name}_")))
    };
    scene.until("people hear whom it asks for names", async || missing("waits").await).await;
    assert!(!missing("on-host").await, "it asks whom its machine asks");
    scene.end().await;
}
