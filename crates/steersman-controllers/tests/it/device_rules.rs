//! Rules that taint devices, whoever offers them: what they do to Pods, and what their status says.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Result, clock};
use steersman_testkit::{Cluster, Restarts, Settings};

use crate::devices::{runs, slice};
use crate::events::told;
use crate::objects::{all, is_ready, object};
use crate::restarts::{built_in_serving_all, small};

const ASKED: &str = "resource.k8s.io/v1beta2=true";
const BY: &str = "device-taint-eviction-controller Normal DeviceTaintManagerEviction";

fn rule(name: &str, effect: &str) -> DeviceTaintRule {
    object(json!({
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": {"driver": "gpu.example.com"},
                 "taint": {"key": "broken", "effect": effect}},
    }))
}

/// What the condition of a rule says of the rule as it is.
fn says(rule: &DeviceTaintRule) -> String {
    let status = rule.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let of_now = |it: &&Condition| it.observed_generation == rule.metadata.generation;
    let line = |it: &Condition| format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message);
    conditions.iter().filter(of_now).map(line).collect::<Vec<_>>().join("; ")
}

/// Waits until the condition of a rule says this.
async fn comes_to_say(cluster: &Cluster, name: &str, text: &str) -> Result<()> {
    cluster.eventually(name, |rule: &DeviceTaintRule| says(rule) == text).await
}

fn tolerates_for(seconds: i64) -> Value {
    json!([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}])
}

#[steersman::test(nodes = 1, runtime_config = ASKED)]
async fn a_rule_says_what_it_would_do_does_it_and_says_so(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    client.create(&slice(&json!([]))).await?;
    runs(&cluster, "none", &json!([])).await?;
    runs(&cluster, "minute", &tolerates_for(60)).await?;
    runs(&cluster, "always", &json!([{"operator": "Exists", "effect": "NoExecute"}])).await?;

    let begun = clock::now();
    let made = client.create(&rule("broken", "None")).await?;
    let since = made.spec.taint.time_added.expect("the server says when").0;
    assert_eq!(since.as_second(), begun.as_second());
    let supposed = "EvictionInProgress=False NoEffect: 1 published device selected. 3 allocated devices \
                    selected. 2 pods would be evicted in 1 namespace if the effect was NoExecute. This \
                    information will not be updated again. Recreate the DeviceTaintRule to trigger an \
                    update.";
    comes_to_say(&cluster, "broken", supposed).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 3);

    // The time is that of the effect, not that of the rule.
    let again = clock::now();
    let evict = Patch::Merge(json!({"spec": {"taint": {"effect": "NoExecute"}}}));
    let changed = client.patch::<DeviceTaintRule, _>("broken", &evict).await?;
    let since = changed.spec.taint.time_added.expect("the server says when").0;
    assert_eq!(since.as_second(), again.as_second());
    cluster.gone::<Pod>("none").await?;
    let marked = format!("{BY}: Marking for deletion");
    assert_eq!(told(&cluster, "Pod").await?.iter().filter(|line| **line == marked).count(), 1);
    let pending = "EvictionInProgress=True PodsPendingEviction: 1 pod needs to be evicted in 1 \
                   namespace. 1 pod evicted since starting the controller.";
    comes_to_say(&cluster, "broken", pending).await?;
    let waited = clock::now().duration_since(again).as_secs();
    assert!((9..=12).contains(&waited), "{waited}: not more often than every ten seconds");

    cluster.gone::<Pod>("minute").await?;
    let waited = clock::now().duration_since(again).as_secs();
    assert!((59..=62).contains(&waited), "{waited}");
    let done = "EvictionInProgress=False Completed: 2 pods evicted since starting the controller.";
    comes_to_say(&cluster, "broken", done).await?;
    cluster.advance(Duration::from_secs(600)).await;
    assert!(client.get::<Pod>("always").await?.is_some_and(|pod| is_ready(&pod)));
    let entries = client.get::<DeviceTaintRule>("broken").await?.unwrap().metadata.managed_fields;
    let ours = entries.unwrap_or_default().into_iter().find(|it| it.subresource.is_some());
    let ours = ours.expect("the status is somebody's");
    assert_eq!(ours.manager.as_deref(), Some("device-taint-eviction-controller"));
    Ok(())
}

#[steersman::test(nodes = 1, runtime_config = ASKED)]
async fn who_was_to_go_because_of_a_rule_stays_when_it_is_gone(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    runs(&cluster, "minute", &tolerates_for(60)).await?;
    client.create(&rule("broken", "NoExecute")).await?;
    let pending = "EvictionInProgress=True PodsPendingEviction: 1 pod needs to be evicted in 1 \
                   namespace.";
    comes_to_say(&cluster, "broken", pending).await?;
    cluster.advance(Duration::from_secs(1)).await; // the Pod's turn has come as well
    client.delete::<DeviceTaintRule>("broken", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(90)).await;
    assert!(client.get::<Pod>("minute").await?.is_some_and(|pod| is_ready(&pod)));
    let told = told(&cluster, "Pod").await?;
    let ours: Vec<&String> = told.iter().filter(|line| line.starts_with(BY)).collect();
    assert_eq!(ours, [&format!("{BY}: Cancelling deletion")]);
    let other = rule("other", "NoSchedule");
    client.create(&other).await?;
    let other =
        "EvictionInProgress=False OtherEffect: Eviction only happens for the NoExecute effect.";
    comes_to_say(&cluster, "other", other).await
}

#[steersman::test(nodes = 0)]
async fn rules_are_served_only_where_they_are_asked_for(cluster: Cluster) -> Result<()> {
    let refused = cluster.client().create(&rule("broken", "NoExecute")).await.unwrap_err();
    assert!(refused.is_not_found(), "{refused}");
    let discovered = cluster.client().kube().list_api_groups().await?;
    let group = discovered.groups.iter().find(|group| group.name == "resource.k8s.io").unwrap();
    let versions: Vec<&str> = group.versions.iter().map(|it| it.version.as_str()).collect();
    assert_eq!(versions, ["v1"]);
    Ok(())
}

#[test]
fn a_rule_sends_a_pod_away_whenever_the_controller_is_restarted() {
    // What rules have done is counted since the start, so that their status is another then.
    let evictor = Restarts::of(built_in_serving_all("device-taint-eviction-controller"));
    let settings = Settings { runtime_config: ASKED, ..small() };
    evictor.settings(settings).events(3).check(async |cluster| {
        runs(cluster, "web", &tolerates_for(10)).await?;
        cluster.client().create(&rule("broken", "NoExecute")).await?;
        cluster.gone::<Pod>("web").await
    });
}
