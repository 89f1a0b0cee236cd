//! Events on a real server: what of many is written, and when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use k8s_openapi::api::events::v1::Event;
use kube::api::DeleteParams;
use steersman::events::{NewEvent, Recorder};
use steersman::{Client, ListOptions, Metrics, Result};
use steersman_testkit::{Cluster, Fault, Faults};
use tokio_util::sync::CancellationToken;

use crate::reconcile::config_map;

/// A recorder at work, and what it counts.
struct Desk {
    recorder: Recorder,
    metrics: Metrics,
    shutdown: CancellationToken,
    broadcaster: tokio::task::JoinHandle<()>,
}

fn desk(client: kube::Client) -> Desk {
    let metrics = Metrics::default();
    let (recorder, broadcaster) = Recorder::new(Client::new(client, "test-controller"), &metrics);
    let shutdown = CancellationToken::new();
    let broadcaster = tokio::spawn(broadcaster.run(shutdown.clone()));
    Desk { recorder, metrics, shutdown, broadcaster }
}

impl Desk {
    fn say(&self, object: &ConfigMap, note: &str) {
        self.recorder.event(object, NewEvent::normal("Because").action("Act").note(note));
    }

    async fn stop(self) -> Metrics {
        self.shutdown.cancel();
        self.broadcaster.await.unwrap();
        self.metrics
    }
}

async fn events(client: &Client) -> Result<Vec<Event>> {
    let all: Vec<Event> = client.list(&ListOptions::default()).await?;
    let ours = Some("test-controller");
    Ok(all.into_iter().filter(|event| event.reporting_controller.as_deref() == ours).collect())
}

fn count(event: &Event) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

#[steersman::test]
async fn a_thousand_equal_events_are_one_object_with_a_count(cluster: Cluster) -> Result<()> {
    let desk = desk(cluster.client().kube().clone());
    let map = cluster.client().create(&config_map("a")).await?;
    for _ in 0..1000 {
        desk.say(&map, "up");
        cluster.advance(Duration::from_millis(100)).await;
    }
    let events = events(cluster.client()).await?;
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    let regarding = event.regarding.as_ref().unwrap();
    assert_eq!((&regarding.uid, regarding.kind.as_deref()), (&map.metadata.uid, Some("ConfigMap")));
    let metrics = desk.stop().await;
    let event = self::events(cluster.client()).await?.remove(0);
    assert_eq!(count(&event), 1000, "what was left was written at the end");
    let written = metrics.render();
    let line = written.lines().find(|line| line.starts_with("steersman_events_written_total"));
    let writes: u32 = line.unwrap().rsplit(' ').next().unwrap().parse()?;
    assert!(writes < 15, "{writes} writes");
    Ok(())
}

#[steersman::test]
async fn recording_never_waits_and_tells_what_it_lost(cluster: Cluster) -> Result<()> {
    let desk = desk(cluster.client().kube().clone());
    for n in 0..5000 {
        let mut map = config_map(&format!("map-{n}"));
        map.metadata.namespace = Some("default".into());
        desk.say(&map, "up"); // nothing else runs meanwhile
    }
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(events(cluster.client()).await?.len(), 4096);
    let metrics = desk.stop().await.render();
    assert!(metrics.contains(r#"steersman_events_dropped_total{reason="full"} 904"#), "{metrics}");
    Ok(())
}

#[steersman::test]
async fn what_happens_while_the_server_is_down_is_told_when_it_is_back(
    cluster: Cluster,
) -> Result<()> {
    let faults = Faults::seeded(3).with(Fault::ConnectionRefused, 0.5).with(Fault::ServerError, 1.);
    let desk = desk(cluster.client_with(&faults));
    let map = cluster.client().create(&config_map("a")).await?;
    for second in 0..120 {
        desk.say(&map, "up");
        if second % 60 == 0 {
            desk.say(&map, &format!("minute {second}"));
        }
        cluster.advance(Duration::from_secs(1)).await;
    }
    assert_eq!(events(cluster.client()).await?.len(), 0);
    faults.heal();
    cluster.advance(Duration::from_secs(60)).await;
    let mut told: Vec<(String, i32)> = events(cluster.client())
        .await?
        .iter()
        .map(|event| (event.note.clone().unwrap_or_default(), count(event)))
        .collect();
    told.sort();
    let expected = [("minute 0", 1), ("minute 60", 1), ("up", 120)];
    assert_eq!(told, expected.map(|(note, count)| (note.to_owned(), count)));
    Ok(())
}

#[steersman::test]
async fn an_event_that_was_deleted_comes_back_with_its_count(cluster: Cluster) -> Result<()> {
    let desk = desk(cluster.client().kube().clone());
    let map = cluster.client().create(&config_map("a")).await?;
    desk.say(&map, "up");
    cluster.advance(Duration::from_secs(1)).await;
    let event = events(cluster.client()).await?.remove(0);
    let key = steersman::ObjectKey::of(&event);
    cluster.client().delete::<Event>(&key, &DeleteParams::default()).await?;
    desk.say(&map, "up");
    cluster.advance(Duration::from_secs(1)).await;
    let events = events(cluster.client()).await?;
    assert_eq!(events.iter().map(count).collect::<Vec<_>>(), [2]);
    Ok(())
}

#[steersman::test]
async fn events_of_cluster_scoped_objects_are_in_the_default_namespace(
    cluster: Cluster,
) -> Result<()> {
    let desk = desk(cluster.client().kube().clone());
    cluster.eventually("node-1", |_: &Node| true).await?;
    let node: Node = cluster.client().get("node-1").await?.unwrap();
    let hot = NewEvent::warning("Hot").action("Measure").note("é".repeat(1000));
    desk.recorder.event(&node, hot);
    cluster.advance(Duration::from_secs(1)).await;
    let event = events(cluster.client()).await?.remove(0);
    assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
    assert_eq!((event.note.unwrap().len(), event.type_.as_deref()), (1024, Some("Warning")));
    Ok(())
}

#[steersman::test]
async fn a_namespace_that_goes_away_takes_its_events_with_it(cluster: Cluster) -> Result<()> {
    let desk = desk(cluster.client().kube().clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("going".into());
    namespace.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&namespace).await?;
    cluster.client().delete::<Namespace>("going", &DeleteParams::default()).await?;
    let mut map = config_map("a");
    map.metadata.namespace = Some("going".into());
    desk.say(&map, "up");
    map.metadata.namespace = Some("never-was".into());
    desk.say(&map, "up");
    cluster.advance(Duration::from_secs(600)).await;
    let metrics = desk.stop().await.render();
    assert!(metrics.contains(r#"dropped_total{reason="refused"} 2"#), "{metrics}");
    assert!(metrics.contains("steersman_events_written_total 0"), "{metrics}");
    Ok(())
}
