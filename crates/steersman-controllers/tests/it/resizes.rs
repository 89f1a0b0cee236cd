//! Pods that get other resources while they run.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};
use steersman::{Kind, Result};
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{is_ready, pod};

const SECOND: Duration = Duration::from_secs(1);

/// A container that asks for and may use so much cpu, and so much memory.
fn container(cpu: &str, memory: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": memory});
    let resources = json!({"requests": amounts, "limits": amounts});
    json!({"name": "main", "image": "nginx", "resources": resources})
}

/// Asks for other resources.
async fn resize(cluster: &Cluster, name: &str, cpu: &str, memory: &str) -> Result<Pod> {
    let patch = Patch::Strategic(json!({"spec": {"containers": [container(cpu, memory)]}}));
    let client = cluster.client();
    client.of_kind(&Kind::<Pod>::of()).patch_subresource("resize", name, &patch).await
}

/// The same of a container of another image.
async fn ask(cluster: &Cluster, name: &str, cpu: &str) -> Result<Pod> {
    let main = json!({"name": "main", "resources": container(cpu, "64Mi")["resources"]});
    let patch = Patch::Strategic(json!({"spec": {"containers": [main]}}));
    let client = cluster.client();
    client.of_kind(&Kind::<Pod>::of()).patch_subresource("resize", name, &patch).await
}

async fn start(cluster: &Cluster, name: &str, cpu: &str) -> Result<()> {
    let containers = json!([container(cpu, "64Mi")]);
    cluster.client().create(&pod(name, &json!({"containers": containers}))).await?;
    cluster.eventually(name, is_ready).await?;
    Ok(())
}

fn main_of(pod: &Pod) -> &ContainerStatus {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    &statuses.expect("it runs")[0]
}

/// The cpu that a container was given, and what it has and may use.
fn cpu_of(pod: &Pod) -> [String; 3] {
    let main = main_of(pod);
    let resources = main.resources.as_ref();
    let lists = [
        main.allocated_resources.as_ref(),
        resources.and_then(|all| all.requests.as_ref()),
        resources.and_then(|all| all.limits.as_ref()),
    ];
    lists.map(|list| list.map_or("none", |list| list["cpu"].0.as_str()).to_owned())
}

fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let status = pod.status.as_ref()?;
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

async fn get(cluster: &Cluster, name: &str) -> Result<Pod> {
    Ok(cluster.client().get(name).await?.expect("it is there"))
}

/// The Pod once it is as wanted.
async fn until(cluster: &Cluster, name: &str, wanted: impl Fn(&Pod) -> bool) -> Result<Pod> {
    cluster.eventually(name, wanted).await?;
    get(cluster, name).await
}

#[steersman::test(nodes = 1)]
async fn a_container_gets_other_resources_without_a_restart(cluster: Cluster) -> Result<()> {
    start(&cluster, "web", "1").await?;
    let before = get(&cluster, "web").await?;
    assert_eq!(cpu_of(&before), ["1", "1", "1"]);
    let wanted = resize(&cluster, "web", "2", "128Mi").await?;
    assert_eq!(wanted.metadata.generation, Some(2));
    let pod = until(&cluster, "web", |pod: &Pod| cpu_of(pod) == ["2", "2", "2"]).await?;
    assert_eq!(main_of(&pod).restart_count, 0);
    assert_eq!(main_of(&pod).container_id, main_of(&before).container_id);
    assert_eq!(pod.status.as_ref().unwrap().observed_generation, Some(2));
    for type_ in ["PodResizePending", "PodResizeInProgress"] {
        assert_eq!(condition(&pod, type_), None);
    }
    let events = told(&cluster, "Pod").await?;
    let resources = "{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{\"cpu\":\"2\",\
                     \"memory\":\"128Mi\"},\"requests\":{\"cpu\":\"2\",\"memory\":\"128Mi\"}}}],\
                     \"generation\":2}";
    for (reason, what) in [("ResizeStarted", "started"), ("ResizeCompleted", "completed")] {
        let event = format!("kubelet Normal {reason}: Pod resize {what}: {resources}");
        assert_eq!(events.iter().filter(|it| **it == event).count(), 1, "{event}\n{events:#?}");
    }
    Ok(())
}

#[steersman::test(nodes = 1, termination = 5 * SECOND)]
async fn a_container_is_started_again_if_its_policy_says_so(cluster: Cluster) -> Result<()> {
    let mut main = container("1", "64Mi");
    main["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main]});
    cluster.client().create(&pod("web", &spec)).await?;
    cluster.eventually("web", is_ready).await?;
    resize(&cluster, "web", "2", "64Mi").await?;
    let pod = until(&cluster, "web", |pod: &Pod| cpu_of(pod) == ["2", "2", "2"]).await?;
    assert_eq!(main_of(&pod).restart_count, 0, "of cpu it gets more as it runs");
    resize(&cluster, "web", "1", "128Mi").await?;
    cluster.advance(SECOND).await;
    let stopping = get(&cluster, "web").await?;
    assert_eq!(cpu_of(&stopping), ["1", "2", "2"], "it was given, and has not");
    let progress = condition(&stopping, "PodResizeInProgress").expect("it takes its time");
    assert_eq!((progress.status.as_str(), progress.observed_generation), ("True", Some(3)));
    assert_eq!((&progress.reason, &progress.message), (&None, &None));
    let pod = until(&cluster, "web", |pod: &Pod| main_of(pod).restart_count == 1).await?;
    assert_eq!(cpu_of(&pod), ["1", "1", "1"]);
    assert_eq!(condition(&pod, "PodResizeInProgress"), None);
    assert!(is_ready(&pod), "it ended well, with OnFailure, and runs");
    let events = told(&cluster, "Pod").await?;
    let killing = "kubelet Normal Killing: Container main resize requires restart".to_owned();
    assert_eq!(events.iter().filter(|event| **event == killing).count(), 1, "{events:#?}");
    for reason in ["ResizeStarted", "ResizeCompleted"] {
        let of = |event: &&String| event.starts_with(&format!("kubelet Normal {reason}:"));
        assert_eq!(events.iter().filter(of).count(), 2, "{reason} {events:#?}");
    }
    Ok(())
}

/// A Pod that wants more than its node has, beside another, and what that is called.
async fn crowded(cluster: &Cluster) -> Result<Pod> {
    start(cluster, "other", "5").await?;
    start(cluster, "web", "1").await?;
    resize(cluster, "web", "4", "64Mi").await?;
    let waits = |pod: &Pod| condition(pod, "PodResizePending").is_some();
    until(cluster, "web", waits).await
}

#[steersman::test(nodes = 1)]
async fn what_does_not_fit_now_waits_until_there_is_room(cluster: Cluster) -> Result<()> {
    let pod = crowded(&cluster).await?;
    assert_eq!(cpu_of(&pod), ["1", "1", "1"]);
    let pending = condition(&pod, "PodResizePending").unwrap();
    let why = "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000";
    assert_eq!((pending.status.as_str(), pending.observed_generation), ("True", Some(2)));
    assert_eq!(
        (pending.reason.as_deref(), pending.message.as_deref()),
        (Some("Deferred"), Some(why))
    );
    cluster.advance(600 * SECOND).await;
    let events = told(&cluster, "Pod").await?;
    let deferred: Vec<_> =
        events.iter().filter(|event| event.contains("Warning ResizeDeferred")).collect();
    assert_eq!(deferred.len(), 1, "{deferred:#?}");
    assert!(deferred[0].contains("Pod resize OutOfcpu: {"), "{deferred:?}");
    assert!(deferred[0].contains(&format!("\"error\":{why:?}")), "{deferred:?}");
    // The scheduler keeps the room that is asked for.
    let fits = json!({"containers": [{"name": "main", "image": "nginx",
        "resources": {"requests": {"cpu": "1"}}}]});
    cluster.client().create(&self::pod("late", &fits)).await?;
    cluster.advance(10 * SECOND).await;
    assert_eq!(get(&cluster, "late").await?.spec.unwrap().node_name, None);
    cluster.client().delete::<Pod>("other", &DeleteParams::default()).await?;
    cluster.advance(5 * SECOND).await; // sooner than it would look by itself
    let pod = get(&cluster, "web").await?;
    assert_eq!(cpu_of(&pod), ["4", "4", "4"]);
    assert_eq!(condition(&pod, "PodResizePending"), None);
    cluster.eventually("late", is_ready).await?;
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn who_gives_back_makes_room_and_who_wants_less_waits_no_more(
    cluster: Cluster,
) -> Result<()> {
    crowded(&cluster).await?;
    resize(&cluster, "other", "4", "64Mi").await?;
    cluster.advance(5 * SECOND).await;
    assert_eq!(cpu_of(&get(&cluster, "web").await?), ["4", "4", "4"]);
    resize(&cluster, "web", "5", "64Mi").await?;
    let waits = |pod: &Pod| condition(pod, "PodResizePending").is_some();
    cluster.eventually("web", waits).await?;
    resize(&cluster, "web", "4", "64Mi").await?;
    let pod = until(&cluster, "web", |pod: &Pod| !waits(pod)).await?;
    assert_eq!(cpu_of(&pod), ["4", "4", "4"]);
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_resize_that_is_asked_for_before_a_container_exists_needs_room_too(
    cluster: Cluster,
) -> Result<()> {
    start(&cluster, "other", "5").await?;
    let mut main = container("1", "64Mi");
    main["image"] = json!("steersman.dev/unpullable");
    cluster.client().create(&pod("web", &json!({"containers": [main]}))).await?;
    let waits = |pod: &Pod| {
        let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let main = status.and_then(|all| all.first()).and_then(|main| main.state.as_ref());
        main.is_some_and(|state| state.waiting.is_some())
    };
    cluster.eventually("web", waits).await?;
    ask(&cluster, "web", "4").await?;
    let pending = |pod: &Pod| condition(pod, "PodResizePending").is_some();
    let pod = until(&cluster, "web", pending).await?;
    let pending_ = condition(&pod, "PodResizePending").unwrap();
    let why = "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000";
    assert_eq!(
        (pending_.reason.as_deref(), pending_.message.as_deref()),
        (Some("Deferred"), Some(why))
    );
    ask(&cluster, "web", "2").await?;
    cluster.eventually("web", |pod: &Pod| !pending(pod)).await?;
    let events = told(&cluster, "Pod").await?;
    let of = |event: &&String| event.starts_with("kubelet Normal ResizeStarted:");
    assert_eq!(events.iter().filter(of).count(), 1, "{events:#?}");
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn an_agent_that_is_started_anew_knows_what_was_given(cluster: Cluster) -> Result<()> {
    crowded(&cluster).await?;
    let fork = cluster.fork().await?;
    fork.advance(600 * SECOND).await;
    let pod = get(&fork, "web").await?;
    assert_eq!(cpu_of(&pod), ["1", "1", "1"], "it was not given what it wants");
    let since =
        |pod: &Pod| condition(pod, "PodResizePending").unwrap().last_transition_time.clone();
    assert_eq!(since(&pod), since(&get(&cluster, "web").await?));
    fork.client().delete::<Pod>("other", &DeleteParams::default()).await?;
    fork.eventually("web", |pod: &Pod| cpu_of(pod) == ["4", "4", "4"]).await?;
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_pod_as_a_whole_is_resized(cluster: Cluster) -> Result<()> {
    let whole = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    let containers = json!([{"name": "main", "image": "nginx"}]);
    let spec = json!({"resources": whole("1"), "containers": containers});
    cluster.client().create(&pod("web", &spec)).await?;
    cluster.eventually("web", is_ready).await?;
    let patch = Patch::Strategic(json!({"spec": {"resources": whole("2")}}));
    let client = cluster.client().of_kind(&Kind::<Pod>::of());
    client.patch_subresource::<Pod, _>("resize", "web", &patch).await?;
    let has = |pod: &Pod| {
        let status = pod.status.as_ref()?;
        let limits = status.resources.as_ref()?.limits.as_ref()?;
        Some([limits["cpu"].0.clone(), status.allocated_resources.as_ref()?["cpu"].0.clone()])
    };
    let two = ["2", "2"].map(str::to_owned);
    let pod = until(&cluster, "web", |pod: &Pod| has(pod).as_ref() == Some(&two)).await?;
    assert_eq!(condition(&pod, "PodResizeInProgress"), None);
    let events = told(&cluster, "Pod").await?;
    assert!(events.iter().any(|event| event.contains("ResizeCompleted")), "{events:#?}");
    Ok(())
}
