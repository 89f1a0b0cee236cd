//! Pods that live and end: how they complete, fail, restart, wait and become ready.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{is_ready, pod};

const SECOND: Duration = Duration::from_secs(1);

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The status of the container `main`, once there is one.
fn main_of(pod: &Pod) -> Option<&ContainerStatus> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == "main")
}

fn waiting(pod: &Pod) -> Option<&str> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses[0].state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

async fn get(cluster: &Cluster, name: &str) -> Result<Pod> {
    Ok(cluster.client().get(name).await?.unwrap_or_default())
}

fn once(name: &str, image: &str) -> Pod {
    let containers = json!([{"name": "main", "image": image}]);
    pod(name, &json!({"restartPolicy": "Never", "containers": containers}))
}

#[steersman::test]
async fn a_pod_ends_as_its_rule_annotation_or_image_says(cluster: Cluster) -> Result<()> {
    cluster.pods().named("by-rule").exits(3).after(60 * SECOND);
    let mut annotated = once("by-annotation", "nginx");
    let annotations = json!({"steersman.dev/exit-code": "3", "steersman.dev/runs-for": "1m"});
    annotated.metadata.annotations = serde_json::from_value(annotations)?;
    cluster.client().create(&once("by-rule", "nginx")).await?;
    cluster.client().create(&annotated).await?;
    cluster.client().create(&once("by-image", "steersman.dev/exit:3-after-1m")).await?;
    cluster.client().create(&once("for-ever", "nginx")).await?;
    for name in ["by-rule", "by-annotation", "by-image", "for-ever"] {
        cluster.eventually(name, is_ready).await?;
    }
    cluster.advance(59 * SECOND).await;
    assert_eq!(phase(&get(&cluster, "by-rule").await?), "Running");
    cluster.advance(2 * SECOND).await;
    for name in ["by-rule", "by-annotation", "by-image"] {
        let ended = get(&cluster, name).await?;
        assert_eq!(phase(&ended), "Failed", "{name}");
        let state = main_of(&ended).unwrap().state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert_eq!((state.exit_code, state.reason.as_deref()), (3, Some("Error")), "{name}");
        assert!(!is_ready(&ended));
    }
    cluster.advance(Duration::from_secs(86_400)).await;
    assert_eq!(phase(&get(&cluster, "for-ever").await?), "Running");
    Ok(())
}

#[steersman::test]
async fn a_pod_that_runs_already_ends_when_a_rule_says_so(cluster: Cluster) -> Result<()> {
    let mut web = once("web", "nginx");
    web.metadata.labels = serde_json::from_value(json!({"app": "web"}))?;
    cluster.client().create(&web).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.advance(60 * SECOND).await;
    cluster.pods().labelled("app", "web").exits(0);
    cluster.settle().await;
    assert_eq!(phase(&get(&cluster, "web").await?), "Succeeded");
    Ok(())
}

#[steersman::test]
async fn a_container_that_keeps_failing_is_restarted_ever_later(cluster: Cluster) -> Result<()> {
    cluster.pods().named("web").exits(1).after(5 * SECOND);
    cluster.client().create(&pod("web", &json!({}))).await?;
    cluster.eventually("web", |pod: &Pod| waiting(pod) == Some("CrashLoopBackOff")).await?;
    let crashed = get(&cluster, "web").await?;
    let uid = crashed.metadata.uid.clone().unwrap();
    let main = main_of(&crashed).unwrap();
    assert_eq!((main.restart_count, main.ready), (1, false));
    assert_eq!(phase(&crashed), "Running");
    let message = main.state.as_ref().unwrap().waiting.as_ref().unwrap().message.clone();
    let expected = format!("back-off 10s restarting failed container=main pod=web_default({uid})");
    assert_eq!(message, Some(expected));
    let last = main.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (1, Some("Error")));
    // It runs for 5 seconds each time, and waits for 10, 20, 40, 80, 160 and then 300.
    cluster.advance(Duration::from_secs(10 + 5 + 20 + 5 + 40 + 5 + 80 + 5 + 160 + 5 + 1)).await;
    let crashed = get(&cluster, "web").await?;
    assert_eq!(
        (main_of(&crashed).unwrap().restart_count, waiting(&crashed)),
        (6, Some("CrashLoopBackOff"))
    );
    let note = format!(
        "kubelet Warning BackOff: Back-off restarting failed container main in pod web_default({uid})"
    );
    assert!(told(&cluster, "Pod").await?.contains(&note));
    cluster.pods().named("web").run_for_ever();
    cluster.eventually("web", is_ready).await?;
    Ok(())
}

#[steersman::test]
async fn a_restart_policy_of_on_failure_ends_with_a_success(cluster: Cluster) -> Result<()> {
    cluster.pods().named("try").exits_in_turn([1, 1, 0]).after(SECOND);
    cluster.client().create(&pod("try", &json!({"restartPolicy": "OnFailure"}))).await?;
    cluster.eventually("try", |pod: &Pod| phase(pod) == "Succeeded").await?;
    let done = get(&cluster, "try").await?;
    assert_eq!(main_of(&done).unwrap().restart_count, 2);
    let state = main_of(&done).unwrap().state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!((state.exit_code, state.reason.as_deref()), (0, Some("Completed")));
    Ok(())
}

#[steersman::test]
async fn init_containers_run_in_order_and_companions_end_last(cluster: Cluster) -> Result<()> {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "first", "image": "steersman.dev/exit:0-after-10s"},
            {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
            {"name": "second", "image": "steersman.dev/exit:0-after-10s"},
        ],
        "containers": [{"name": "main", "image": "steersman.dev/exit:0-after-10s"}],
    });
    cluster.client().create(&pod("web", &spec)).await?;
    cluster.advance(5 * SECOND).await;
    let states = |pod: &Pod| -> Vec<&str> {
        let status = pod.status.as_ref().unwrap();
        let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
        let state = |status: &ContainerStatus| match status.state.as_ref().unwrap() {
            state if state.running.is_some() => "running",
            state if state.terminated.is_some() => "ended",
            _ => "waiting",
        };
        all.map(state).collect()
    };
    for expected in [
        ["running", "waiting", "waiting", "waiting"],
        ["ended", "running", "running", "waiting"],
        ["ended", "running", "ended", "running"],
        ["ended", "ended", "ended", "ended"],
    ] {
        assert_eq!(states(&get(&cluster, "web").await?), expected);
        cluster.advance(10 * SECOND).await;
    }
    assert_eq!(phase(&get(&cluster, "web").await?), "Succeeded");
    Ok(())
}

#[steersman::test]
async fn an_image_that_cannot_be_pulled_keeps_a_pod_waiting_until_it_can(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&once("web", "steersman.dev/unpullable")).await?;
    cluster.eventually("web", |pod: &Pod| waiting(pod) == Some("ErrImagePull")).await?;
    cluster.eventually("web", |pod: &Pod| waiting(pod) == Some("ImagePullBackOff")).await?;
    assert_eq!(phase(&get(&cluster, "web").await?), "Pending");
    let lines = told(&cluster, "Pod").await?;
    for line in [
        "kubelet Normal Pulling: Pulling image \"steersman.dev/unpullable\"",
        "kubelet Warning Failed: Error: ErrImagePull",
        "kubelet Normal BackOff: Back-off pulling image \"steersman.dev/unpullable\"",
        "kubelet Warning Failed: Error: ImagePullBackOff",
    ] {
        assert!(lines.iter().any(|told| told == line), "{line} {lines:?}");
    }
    cluster.pods().named("web").pullable();
    cluster.eventually("web", is_ready).await
}

#[steersman::test]
async fn a_pod_can_be_ready_late_or_never(cluster: Cluster) -> Result<()> {
    cluster.pods().named("late").ready_after(30 * SECOND);
    cluster.pods().named("never").never_ready();
    for name in ["late", "never"] {
        cluster.client().create(&pod(name, &json!({}))).await?;
        cluster.eventually(name, |pod: &Pod| phase(pod) == "Running").await?;
    }
    cluster.advance(29 * SECOND).await;
    assert!(!is_ready(&get(&cluster, "late").await?));
    cluster.advance(2 * SECOND).await;
    assert!(is_ready(&get(&cluster, "late").await?));
    let never = get(&cluster, "never").await?;
    let conditions = never.status.as_ref().unwrap().conditions.clone().unwrap();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.reason.as_deref(), Some("ContainersNotReady"));
    let message = "containers with unready status: [main]";
    assert_eq!(ready.message.as_deref(), Some(message));
    Ok(())
}

#[steersman::test]
async fn what_a_container_does_before_it_stops_takes_its_time(cluster: Cluster) -> Result<()> {
    let hook: Value = json!({"preStop": {"sleep": {"seconds": 5}}});
    let containers = json!([{"name": "main", "image": "nginx", "lifecycle": hook}]);
    cluster.client().create(&pod("web", &json!({"containers": containers}))).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_millis(4900)).await;
    assert!(cluster.client().get::<Pod>("web").await?.is_some());
    cluster.advance(Duration::from_millis(200)).await;
    assert!(cluster.client().get::<Pod>("web").await?.is_none());
    Ok(())
}

#[steersman::test]
async fn a_fork_goes_on_with_the_pods_and_their_rules(cluster: Cluster) -> Result<()> {
    cluster.pods().named("work").exits(0).after(60 * SECOND);
    cluster.client().create(&once("work", "nginx")).await?;
    cluster.eventually("work", is_ready).await?;
    cluster.advance(30 * SECOND).await;
    let fork = cluster.fork().await?;
    fork.pods().named("work").run_for_ever();
    cluster.advance(40 * SECOND).await;
    assert_eq!(phase(&get(&cluster, "work").await?), "Succeeded");
    assert_eq!(phase(&get(&fork, "work").await?), "Running");
    Ok(())
}

#[steersman::test]
async fn a_container_of_another_image_is_started_again(cluster: Cluster) -> Result<()> {
    cluster.client().create(&once("web", "nginx:1")).await?;
    cluster.eventually("web", is_ready).await?;
    let mut web = get(&cluster, "web").await?;
    web.spec.as_mut().unwrap().containers[0].image = Some("nginx:2".into());
    cluster.client().update(&web).await?;
    let again = |pod: &Pod| is_ready(pod) && main_of(pod).is_some_and(|it| it.restart_count == 1);
    cluster.eventually("web", again).await?;
    let web = get(&cluster, "web").await?;
    assert_eq!(main_of(&web).unwrap().image, "nginx:2");
    let last = main_of(&web).unwrap().last_state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!(last.exit_code, 0);
    let note = "kubelet Normal Killing: Container main definition changed, will be restarted";
    assert!(told(&cluster, "Pod").await?.iter().any(|line| line == note));
    Ok(())
}

#[steersman::test]
async fn that_the_time_of_a_pod_is_up_is_told_before_it_has_ended(cluster: Cluster) -> Result<()> {
    cluster.pods().named("web").terminate_after(20 * SECOND);
    cluster.client().create(&pod("web", &json!({"activeDeadlineSeconds": 30}))).await?;
    cluster.eventually("web", is_ready).await?;
    cluster.advance(35 * SECOND).await;
    assert_eq!(phase(&get(&cluster, "web").await?), "Running");
    let message = "Pod was active on the node longer than the specified deadline";
    let line = format!("kubelet Normal DeadlineExceeded: {message}");
    assert!(told(&cluster, "Pod").await?.contains(&line));
    cluster.advance(20 * SECOND).await;
    assert_eq!(phase(&get(&cluster, "web").await?), "Failed");
    Ok(())
}

#[steersman::test]
async fn a_container_takes_all_others_with_it_if_its_rule_says_so(cluster: Cluster) -> Result<()> {
    let rule = json!({"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}});
    let main = json!({"name": "main", "image": "nginx", "restartPolicy": "Never",
        "restartPolicyRules": [rule]});
    let proxy = json!({"name": "proxy", "image": "envoy", "restartPolicy": "Always"});
    let mut web = pod(
        "web",
        &json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "setup", "image": "setup"}, proxy],
            "containers": [main, {"name": "other", "image": "nginx"}],
        }),
    );
    // Twice all begin anew, then the Pod fails with its main container.
    let annotations = json!({"steersman.dev/main.exit-code": "42,42,1",
        "steersman.dev/main.runs-for": "1m", "steersman.dev/other.runs-for": "1h",
        "steersman.dev/proxy.pre-stop": "1h"});
    web.metadata.annotations = serde_json::from_value(annotations)?;
    cluster.client().create(&web).await?;
    let restarts = |pod: &Pod| -> Vec<i32> {
        let Some(status) = &pod.status else { return Vec::new() };
        let statuses = status.init_container_statuses.iter().chain(&status.container_statuses);
        statuses.flatten().map(|status| status.restart_count).collect()
    };
    for round in 0..3 {
        cluster.eventually("web", is_ready).await?;
        let running = get(&cluster, "web").await?;
        assert_eq!(restarts(&running), [round; 4], "all of them, one at a time");
        cluster.advance(61 * SECOND).await;
    }
    let ended = get(&cluster, "web").await?;
    assert_eq!((phase(&ended), restarts(&ended)), ("Running", vec![2; 4]), "the other runs on");
    cluster.advance(60 * 60 * SECOND).await;
    assert_eq!(phase(&get(&cluster, "web").await?), "Failed");
    Ok(())
}
