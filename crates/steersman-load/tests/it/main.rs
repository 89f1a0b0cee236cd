//! Scenarios on a cluster in this process, on virtual time: so the numbers of requests are exact.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use steersman::{ListOptions, Result};
use steersman_load::{Load, LoadError, Operation, Report, Scenario};
use steersman_testkit::Cluster;
use tokio_util::sync::CancellationToken;

fn scenario(text: &str) -> Scenario {
    text.parse().unwrap()
}

async fn run(cluster: &Cluster, text: &str) -> Report {
    let load = Load::new(cluster.client().clone(), scenario(text));
    load.run(&CancellationToken::new()).await.unwrap()
}

fn operation<'a>(report: &'a Report, name: &str) -> &'a Operation {
    report.operation(name).unwrap_or_else(|| panic!("no {name:?} in\n{}", report.table()))
}

/// How many of a sort succeeded and failed.
fn counts(report: &Report, name: &str) -> (u64, u64) {
    let operation = operation(report, name);
    (operation.count, operation.errors)
}

async fn namespaces_of_runs(cluster: &Cluster) -> usize {
    let options = ListOptions::default().labels("load.steersman.dev/run");
    cluster.client().list::<Namespace>(&options).await.unwrap().len()
}

#[steersman::test]
async fn all_that_a_scenario_says_is_done_and_nothing_is_left(cluster: Cluster) -> Result<()> {
    let report = run(
        &cluster,
        "
        namespaces: 2
        objects:
          - count: 1
            deployment: {replicas: 2}
          - count: 4
            configMap: {bytes: 100}
        load: {for: 10s, updates: 2, churn: 1, gets: 5, lists: 0.5, watchers: 3}
        ",
    )
    .await;
    let both = |verb: &str| {
        let [one, other] =
            ["deployments", "configmaps"].map(|sort| counts(&report, &format!("{verb} {sort}")));
        (one.0 + other.0, one.1 + other.1)
    };
    let churned = both("delete");
    assert_eq!((both("patch"), churned), ((20, 0), (10, 0)), "\n{}", report.table());
    assert_eq!(both("create"), (10 + 10, 0));
    assert_eq!((both("get"), both("list")), ((50, 0), (5, 0)));
    let ready = counts(&report, "deployments ready").0;
    let written = counts(&report, "create deployments").0 + counts(&report, "patch deployments").0;
    assert!(ready <= written && ready >= 2, "{ready} of {written}\n{}", report.table());
    let names: Vec<_> = report.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["prepare", "fill", "settle", "load", "settle", "clean"]);
    assert_eq!(report.phases[1].outcome.split(',').next(), Some("10 of 10 objects made"));
    assert_eq!(report.phases[4].outcome, "10 of 10 objects ready");
    assert_eq!(report.phases[5].outcome, "everything is gone");
    assert!((10.0..11.0).contains(&report.phases[3].seconds), "{:?}", report.phases[3]);
    assert_eq!(namespaces_of_runs(&cluster).await, 0);
    Ok(())
}

#[steersman::test]
async fn the_same_seed_meets_the_same_objects(cluster: Cluster) -> Result<()> {
    let text = "{objects: [{count: 20, configMap: {bytes: 1}}], load: {for: 5s, updates: 10}, clients: 1, seed: 7}";
    let mut touched = Vec::new();
    for _ in 0..2 {
        let load = Load::new(cluster.client().clone(), scenario(text)).keep();
        load.run(&CancellationToken::new()).await.unwrap();
        let options = ListOptions::namespace("load-0").labels("load.steersman.dev/run");
        let maps = cluster.client().list::<ConfigMap>(&options).await?;
        let updates = |map: ConfigMap| Some((map.metadata.name?, map.data?.get("update").cloned()));
        touched.push(maps.into_iter().filter_map(updates).collect::<Vec<_>>());
        cluster.client().delete::<Namespace>("load-0", &kube::api::DeleteParams::default()).await?;
        cluster.gone::<Namespace>("load-0").await?;
    }
    assert_eq!(touched[0], touched[1]);
    assert!(touched[0].iter().any(|(_, update)| update.is_some()));
    Ok(())
}

#[steersman::test]
async fn what_the_cluster_refuses_is_counted_and_told(cluster: Cluster) -> Result<()> {
    let report = run(
        &cluster,
        "
        objects:
          - {count: 2, template: {apiVersion: v1, kind: ConfigMap, data: {no key: x}}}
          - {count: 1, configMap: {}}
        load: {for: 2s, updates: 3}
        ",
    )
    .await;
    let created = operation(&report, "create configmaps");
    assert_eq!((created.count, created.errors), (1, 12), "each of the two is tried six times");
    let why = created.first_error.as_deref().unwrap();
    assert!(why.starts_with("422 Invalid: ConfigMap \"configmap-0-0-0\" is invalid"), "{why}");
    assert!(
        report.table().contains("12 failed, the first with: 422 Invalid"),
        "{}",
        report.table()
    );
    assert_eq!(report.phases[1].outcome.split(',').next(), Some("1 of 3 objects made"));
    let patched = counts(&report, "patch configmaps").0;
    assert_eq!(patched + report.without_object, 6, "what was not made is not updated");
    assert_eq!(report.phases.last().unwrap().outcome, "everything is gone");
    Ok(())
}

#[steersman::test]
async fn a_run_that_is_told_to_stop_cleans_up(cluster: Cluster) -> Result<()> {
    let stop = CancellationToken::new();
    let load = Load::new(
        cluster.client().clone(),
        scenario("{objects: [{count: 4, configMap: {}}], load: {for: 1h, updates: 10}}"),
    );
    let later = async {
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(load.progress().phase, "load");
        assert!(load.progress().table().contains("patch configmaps"));
        stop.cancel();
    };
    let (report, ()) = tokio::join!(load.run(&stop), later);
    let report = report.unwrap();
    let patched = counts(&report, "patch configmaps").0;
    assert!((290..=310).contains(&patched), "{patched}");
    assert_eq!(report.unsent, 36_000 - patched);
    assert_eq!(namespaces_of_runs(&cluster).await, 0);
    Ok(())
}

#[steersman::test]
async fn a_run_takes_nobody_elses_namespace(cluster: Cluster) -> Result<()> {
    let mut taken = Namespace::default();
    taken.metadata.name = Some("load-1".into());
    cluster.client().create(&taken).await?;
    let text = "{namespaces: 3, objects: [{count: 1, configMap: {}}]}";
    let load = Load::new(cluster.client().clone(), scenario(text));
    let refused = load.run(&CancellationToken::new()).await.unwrap_err();
    assert!(
        matches!(&refused, LoadError::Occupied { namespace } if namespace == "load-1"),
        "{refused}"
    );
    cluster.gone::<Namespace>("load-0").await?;
    assert!(cluster.client().get::<Namespace>("load-1").await?.is_some());
    Ok(())
}

#[steersman::test]
async fn a_kind_that_is_not_served_is_named(cluster: Cluster) -> Result<()> {
    let text = "{objects: [{count: 1, template: {apiVersion: shop.dev/v1, kind: Shop}}]}";
    let load = Load::new(cluster.client().clone(), scenario(text));
    let refused = load.run(&CancellationToken::new()).await.unwrap_err();
    assert!(matches!(refused, LoadError::NotServed { .. }), "{refused}");
    assert!(refused.to_string().starts_with("Shop (shop.dev/v1) is not served"), "{refused}");
    assert_eq!(namespaces_of_runs(&cluster).await, 0);
    Ok(())
}

#[steersman::test]
async fn any_object_can_be_a_template_also_one_of_the_cluster(cluster: Cluster) -> Result<()> {
    let report = run(
        &cluster,
        "
        namespaces: 2
        objects:
          - count: 2
            template:
              apiVersion: batch/v1
              kind: Job
              spec:
                template:
                  metadata: {annotations: {steersman.dev/exit-code: '0'}}
                  spec: {restartPolicy: Never, containers: [{name: '{{name}}', image: busybox}]}
            ready: {condition: Complete}
          - count: 1
            template:
              apiVersion: rbac.authorization.k8s.io/v1
              kind: ClusterRole
              rules: []
        ",
    )
    .await;
    assert_eq!(counts(&report, "create clusterroles"), (2, 0));
    assert_eq!(counts(&report, "create jobs"), (4, 0), "{}", report.table());
    assert_eq!(counts(&report, "delete clusterroles"), (2, 0));
    assert_eq!(counts(&report, "clusterroles seen"), (2, 0));
    Ok(())
}

#[steersman::test]
async fn a_report_is_a_page_beside_another_one(cluster: Cluster) -> Result<()> {
    let text = "{name: web, objects: [{count: 3, configMap: {}}], load: {for: 5s, gets: 3}}";
    let one = run(&cluster, text).await;
    let other = run(&cluster, text).await;
    let read: Report = serde_json::from_str(&serde_json::to_string(&other).unwrap()).unwrap();
    let page = one.html(Some(&read));
    for part in [
        "<h1>web</h1>",
        "create configmaps",
        "Requests a second",
        "stroke-dasharray",
        "<polyline",
        "everything is gone",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!one.html(None).contains("stroke-dasharray"));
    Ok(())
}

#[test]
fn the_scenarios_of_the_guide_are_scenarios() {
    let page = include_str!("../../../../docs/guide/load.md");
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    let sizes = blocks.iter().map(|block| scenario(block).size());
    assert_eq!(sizes.collect::<Vec<_>>(), [700, 500]);
}
