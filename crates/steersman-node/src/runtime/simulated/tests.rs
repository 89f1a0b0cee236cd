use serde_json::{Value, json};

use super::*;

fn pod(grace: Option<i64>) -> Pod {
    let pod = json!({
        "metadata": {"uid": "u", "deletionGracePeriodSeconds": grace},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    });
    serde_json::from_value(pod).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_900_000_000_000 + millis).unwrap()
}

async fn started(termination: u64, scripts: &Scripts) -> Simulated {
    let runtime = Simulated::new(Duration::from_millis(termination), scripts.clone());
    let start = Start { name: "main".into(), attempt: 0 };
    runtime.begin(&pod(None), &start, at(0));
    runtime
}

async fn state(runtime: &Simulated, now: i64) -> State {
    runtime.observe(&pod(None), at(now)).await.unwrap().containers.remove(0).state
}

fn exited(finished: i64, code: i32, reason: &str) -> State {
    State::Exited { finished: at(finished), code, reason: reason.into(), message: None }
}

#[test]
fn one_that_waits_to_begin_anew_is_known_as_the_one_before() {
    let status = |reason: &str| {
        let last = json!({"terminated": {"exitCode": 137, "reason": reason,
            "finishedAt": "2030-03-17T17:46:40Z"}});
        let waiting = json!({"waiting": {"reason": "PodInitializing"}});
        let status = json!({"name": "main", "image": "nginx", "imageID": "", "ready": false,
            "restartCount": 3, "state": waiting, "lastState": last});
        serde_json::from_value(status).unwrap()
    };
    assert_eq!(known_run(&status(BEGINS_ANEW)).unwrap().attempt, 2);
    assert_eq!(known_run(&status("Error")).unwrap().attempt, 3);
}

#[tokio::test]
async fn containers_take_their_moment_to_end_but_never_longer_than_the_grace_period() {
    for (termination, grace, ended) in [
        (0, Some(30), exited(0, 0, "Completed")),
        (1000, Some(30), exited(1000, 0, "Completed")),
        (5000, Some(2), exited(2000, 137, "Error")),
        (1000, Some(0), exited(0, 137, "Error")),
        (1000, None, exited(1000, 0, "Completed")),
    ] {
        let runtime = started(termination, &Scripts::default()).await;
        runtime.stop(&pod(grace), &["main".into()], at(0)).await.unwrap();
        assert_eq!(state(&runtime, 9000).await, ended, "{termination} {grace:?}");
    }
    let runtime = started(10_000, &Scripts::default()).await;
    runtime.stop(&pod(Some(30)), &["main".into()], at(0)).await.unwrap();
    let until = Some(at(10_000));
    assert_eq!(
        state(&runtime, 3000).await,
        State::Running { started: true, ready: true, stopping: true, until }
    );
    runtime.stop(&pod(Some(3)), &["main".into()], at(3000)).await.unwrap();
    assert_eq!(state(&runtime, 3000).await, exited(3000, 137, "Error"), "grace cut short");
}

#[tokio::test]
async fn a_container_ends_when_its_script_says_so_and_never_in_the_past() {
    let scripts = Scripts::default();
    let runtime = started(0, &scripts).await;
    let on = State::Running { started: true, ready: true, stopping: false, until: None };
    assert_eq!(state(&runtime, 60_000).await, on);
    scripts.rule().exits(3).after(Duration::from_secs(10));
    assert_eq!(state(&runtime, 61_000).await, exited(60_000, 3, "Error"));
    scripts.rule().run_for_ever();
    assert_eq!(state(&runtime, 62_000).await, exited(60_000, 3, "Error"), "it has ended");
    runtime.forget("u");
    assert_eq!(runtime.observe(&pod(None), at(0)).await.unwrap().containers, []);
}

#[tokio::test]
async fn companions_end_after_the_others_in_reverse_order_and_within_the_same_time() {
    let companion = |name: &str| json!({"name": name, "restartPolicy": "Always"});
    let init = json!([companion("log"), companion("proxy")]);
    let mut pod = pod(Some(10));
    pod.spec.as_mut().unwrap().init_containers = serde_json::from_value(init).unwrap();
    let ends = async |script: &dyn Fn(&Scripts)| {
        let scripts = Scripts::default();
        script(&scripts);
        let runtime = Simulated::new(Duration::from_secs(3), scripts);
        let names = ["log", "proxy", "main"].map(str::to_owned);
        for name in &names {
            runtime.begin(&pod, &Start { name: name.clone(), attempt: 0 }, at(0));
        }
        runtime.stop(&pod, &names, at(0)).await.unwrap();
        let seen = runtime.observe(&pod, at(60_000)).await.unwrap().containers;
        let ended = seen.into_iter().map(|container| match container.state {
            State::Exited { finished, code, .. } => {
                (container.name, finished.duration_since(at(0)).as_secs(), code)
            }
            State::Running { .. } => panic!("{} runs", container.name),
        });
        ended.map(|(name, at, code)| format!("{name} {at} {code}")).collect::<Vec<_>>()
    };
    assert_eq!(ends(&|_| {}).await, ["log 9 0", "proxy 6 0", "main 3 0"]);
    let slow = |scripts: &Scripts| {
        scripts.rule().container("main").terminate_after(Duration::from_secs(8));
    };
    assert_eq!(ends(&slow).await, ["log 10 137", "proxy 10 137", "main 8 0"]);
}

#[tokio::test]
async fn a_run_keeps_its_image_and_what_that_does_until_it_is_another() {
    let runtime = started(0, &Scripts::default()).await;
    let mut other = pod(None);
    let image = "steersman.dev/exit:3";
    other.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    let look = async || runtime.observe(&other, at(1000)).await.unwrap().containers.remove(0);
    let main = look().await;
    assert!(main.runs());
    assert_eq!((main.image.as_str(), main.asked.as_deref()), ("nginx", Some("nginx")));
    runtime.stop(&other, &["main".into()], at(1000)).await.unwrap();
    assert_eq!(look().await.state, exited(1000, 0, "Completed"));
    runtime.begin(&other, &Start { name: "main".into(), attempt: 1 }, at(1000));
    let main = look().await;
    assert_eq!(
        (main.image.as_str(), main.image_id.as_str()),
        (image, "simulated://steersman.dev/exit:3")
    );
    assert_eq!(main.state, exited(1000, 3, "Error"));
    assert_eq!(main.last.unwrap().image, "nginx");
}

#[tokio::test]
async fn an_unknown_pod_runs_as_its_status_says() {
    let mut pod = pod(None);
    let status = json!({"containerStatuses": [{
        "name": "main", "image": "nginx", "imageID": "", "ready": true, "restartCount": 2,
        "state": {"running": {"startedAt": at(0).to_string()}},
    }]});
    pod.status = serde_json::from_value(status).unwrap();
    let scripts = Scripts::default();
    scripts.rule().exits(0).after(Duration::from_secs(30));
    let runtime = Simulated::new(Duration::ZERO, scripts);
    let main = runtime.observe(&pod, at(5000)).await.unwrap().containers.remove(0);
    assert_eq!((main.attempt, main.started), (2, at(0)));
    assert_eq!(main.id, "simulated://u/main/2");
    let until = Some(at(30_000));
    assert_eq!(main.state, State::Running { started: true, ready: true, stopping: false, until });
}

#[tokio::test]
async fn an_unknown_pod_has_a_sandbox_if_it_says_so_or_of_something_that_ran_in_one() {
    let sandbox = async |status: Value| {
        let mut pod = pod(None);
        pod.status = serde_json::from_value(status).unwrap();
        let runtime = Simulated::new(Duration::ZERO, Scripts::default());
        runtime.observe(&pod, at(0)).await.unwrap().sandbox
    };
    let says = |status: &str| json!({"conditions": [{"type": "PodReadyToStartContainers", "status": status}]});
    let ran = json!({"containerStatuses": [{
        "name": "main", "image": "nginx", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "finishedAt": at(0).to_string()}},
    }]});
    let ready = Sandbox::Ready(Vec::new());
    for (status, expected) in [
        (json!({}), Sandbox::Absent),
        (says("False"), Sandbox::Absent),
        (says("True"), ready.clone()),
        (ran, ready),
    ] {
        assert_eq!(sandbox(status.clone()).await, expected, "{status}");
    }
}

#[tokio::test]
async fn what_keeps_a_container_from_starting_gives_its_pod_a_sandbox_unless_it_is_a_volume() {
    for (why, expected) in [
        (StartError::Volumes("no".into()), Sandbox::Absent),
        (StartError::Config("no".into()), Sandbox::Ready(Vec::new())),
        (StartError::not_found("nginx"), Sandbox::Ready(Vec::new())),
    ] {
        let runtime = Simulated::new(Duration::ZERO, Scripts::default());
        runtime.fail(&pod(None), "main", why.clone());
        let sandbox = runtime.observe(&pod(None), at(0)).await.unwrap().sandbox;
        assert_eq!(sandbox, expected, "{why}");
    }
}

#[test]
fn an_image_without_a_proper_name_cannot_be_had() {
    let mut pod = pod(None);
    assert_eq!(is_no_image(&pod, "main"), None);
    let debug = json!([{"name": "debug", "image": "Busybox"}]);
    pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(debug).unwrap();
    let why = is_no_image(&pod, "debug").unwrap();
    assert_eq!(why.reason(), Some("InvalidImageName"));
    let said = "Failed to apply default image tag \"Busybox\": couldn't parse image name \"Busybox\": \
                invalid reference format: repository name must be lowercase";
    assert_eq!(why.to_string(), said);
}

#[test]
fn who_must_not_be_root_and_is_named_so_is_not_started() {
    let runtime = Simulated::new(Duration::ZERO, Scripts::default());
    let refused = |whole: &Value, own: &Value| {
        let mut pod = pod(None);
        let spec = pod.spec.as_mut().unwrap();
        spec.security_context = serde_json::from_value(whole.clone()).unwrap();
        spec.containers[0].security_context = serde_json::from_value(own.clone()).unwrap();
        runtime.is_root(&pod, "main").map(|why| why.to_string())
    };
    let strict = json!({"runAsNonRoot": true});
    let why = "container's runAsUser breaks non-root policy (pod: \"_(u)\", container: main)";
    assert_eq!(refused(&strict, &json!({"runAsUser": 0})), Some(why.to_owned()));
    assert_eq!(refused(&strict, &json!({"runAsUser": 5})), None);
    assert_eq!(refused(&strict, &json!({})), None, "nobody knows as whom the image runs");
    assert_eq!(refused(&json!({"runAsUser": 0}), &json!({})), None);
}

#[tokio::test]
async fn a_container_tells_who_it_is() {
    let runtime = started(0, &Scripts::default()).await;
    let mut pod = pod(None);
    let whole = json!({"runAsUser": 1000, "fsGroup": 7});
    pod.spec.as_mut().unwrap().security_context = serde_json::from_value(whole).unwrap();
    let main = runtime.observe(&pod, at(1000)).await.unwrap().containers.remove(0);
    let who = json!({"uid": 1000, "gid": 0, "supplementalGroups": [0, 7]});
    assert_eq!(serde_json::to_value(main.user).unwrap(), who);
}
