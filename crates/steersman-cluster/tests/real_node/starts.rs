//! What a start comes to: told step by step, done again for another image, and cut short by an end.

use k8s_openapi::api::core::v1::{ContainerStateWaiting, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::containerd::images;
use crate::machine::{Machine, is_ready, phase, shell, spec, status};

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

fn waiting(pod: &Pod) -> Option<&ContainerStateWaiting> {
    status(pod, "main")?.state.as_ref()?.waiting.as_ref()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_of_another_image_is_started_again_whatever_its_policy() {
    let machine = Machine::start("another-image").await;
    machine.containerd.import(&images::large("localhost/other:1", 1024));
    machine.run("web", spec("Never", &json!([shell("main", SERVE)]))).await;
    let before = machine.until("web", is_ready).await;
    assert_eq!(status(&before, "main").unwrap().image, "localhost/busybox:1");
    let other = json!({"spec": {"containers": [{"name": "main", "image": "localhost/other:1"}]}});
    let patch = Patch::Strategic(&other);
    machine.pods().patch("web", &PatchParams::default(), &patch).await.unwrap();
    let after = machine
        .until("web", |pod| status(pod, "main").is_some_and(|it| it.restart_count == 1 && it.ready))
        .await;
    let main = |pod: &Pod| status(pod, "main").unwrap().clone();
    assert_eq!((phase(&after), main(&after).image.as_str()), ("Running", "localhost/other:1"));
    assert_ne!(main(&before).image_id, main(&after).image_id);
    let events = machine.events("web").await;
    let told = "Killing: Container main definition changed, will be restarted";
    assert!(events.iter().any(|event| event == told), "{events:?}");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_at_once_says_why_and_how_far_it_came() {
    let machine = Machine::start("at-once").await;
    let mut absent = spec("Always", &json!([shell("main", "")]));
    absent["containers"][0]["command"] = json!(["/absent"]);
    machine.run("absent", absent).await;
    let mut hooked = spec("Always", &json!([shell("main", SERVE)]));
    let hook = json!({"exec": {"command": ["sh", "-c", "echo no; exit 3"]}});
    hooked["containers"][0]["lifecycle"] = json!({"postStart": hook});
    machine.run("hooked", hooked).await;
    let mut unset = spec("Always", &json!([shell("main", SERVE)]));
    let from = json!({"configMapKeyRef": {"name": "absent", "key": "a"}});
    unset["containers"][0]["env"] = json!([{"name": "A", "valueFrom": from}]);
    machine.run("unset", unset).await;
    for (name, reason, said) in [
        ("absent", "RunContainerError", "/absent"),
        ("hooked", "PostStartHookError", "Exec lifecycle hook ([sh -c echo no; exit 3])"),
        ("unset", "CreateContainerConfigError", "configmap \"absent\" not found"),
    ] {
        let waits = |pod: &Pod| waiting(pod).is_some_and(|it| it.reason.as_deref() == Some(reason));
        let pod = machine.until(name, waits).await;
        let message = waiting(&pod).unwrap().message.clone().unwrap();
        assert!(message.contains(said), "{name}: {message}");
    }
    let pod = machine.pods().get("absent").await.unwrap();
    let last = status(&pod, "main").unwrap().last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(json!(last.started_at), json!("1970-01-01T00:00:00Z"));
    for (name, expected) in [
        ("absent", &["Pulled", "Created", "Failed: Error: "][..]),
        (
            "hooked",
            &[
                "Pulled",
                "Created",
                "Started",
                "FailedPostStartHook: PostStartHook failed",
                "Killing: FailedPostStartHook",
            ],
        ),
        ("unset", &["Pulled", "Failed: Error: configmap"]),
    ] {
        let events = machine.events(name).await;
        for reason in expected {
            assert!(events.iter().any(|it| it.starts_with(reason)), "{name} {reason}: {events:?}");
        }
    }
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_hook_does_not_end_is_shown_and_can_be_deleted() {
    let machine = Machine::start("hanging").await;
    let mut pod = spec("Always", &json!([shell("main", SERVE)]));
    let hook = json!({"exec": {"command": ["sleep", "400"]}});
    pod["containers"][0]["lifecycle"] = json!({"postStart": hook});
    machine.run("web", pod).await;
    machine.until_true("it is made", async || !machine.ids("container").is_empty()).await;
    let pod = machine.pods().get("web").await.unwrap();
    let shown = pod.status.clone().unwrap();
    assert!(shown.start_time.is_some() && shown.host_ip.is_some(), "{shown:?}");
    assert_eq!(waiting(&pod).unwrap().reason.as_deref(), Some("ContainerCreating"));
    let conditions = shown.conditions.unwrap();
    let scheduled = conditions.iter().find(|it| it.type_ == "PodScheduled").unwrap();
    assert_eq!(scheduled.observed_generation, pod.metadata.generation);
    machine.delete("web", &DeleteParams::default()).await;
    machine.until_gone("web").await;
    let events = machine.events("web").await;
    assert!(events.iter().any(|event| event.starts_with("Killing")), "{events:?}");
    machine.end().await;
}
