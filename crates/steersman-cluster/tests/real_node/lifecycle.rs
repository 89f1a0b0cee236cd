//! How Pods begin and end.

use kube::api::DeleteParams;
use serde_json::json;

use crate::machine::{Machine, is_ready, phase, shell, spec, status};

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_runs_has_an_address_and_leaves_nothing_behind() {
    let machine = Machine::start("basics").await;
    let script = "echo hello from $(hostname); cat /etc/hosts; exec httpd -f -p 80";
    machine.run("web", spec("Always", &json!([shell("main", script)]))).await;
    let pod = machine.until("web", is_ready).await;
    assert_eq!(phase(&pod), "Running");
    let address = pod.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let main = status(&pod, "main").unwrap();
    assert!(main.container_id.as_ref().unwrap().starts_with("containerd://"));
    // It runs before its server listens.
    let answers = async || tokio::net::TcpStream::connect((address.as_str(), 80)).await.is_ok();
    machine.until_true("the server answers", answers).await;
    let log = machine.log(&pod, "main", 0);
    assert!(log.contains("hello from web"), "{log}");
    assert!(log.contains(&format!("{address}\tweb")), "{log}");
    let events = machine.events("web").await;
    for reason in ["Scheduled", "Pulled", "Created", "Started"] {
        assert!(events.iter().any(|event| event.starts_with(reason)), "{reason}: {events:?}");
    }
    machine.delete("web", &DeleteParams::default()).await;
    machine.until_gone("web").await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn init_containers_and_companions_run_in_order_and_companions_end_last() {
    let machine = Machine::start("order").await;
    let mut pod = spec("Never", &json!([shell("main", "echo main")]));
    let mut companion =
        shell("proxy", "trap 'echo told; exit 0' TERM; echo proxy; while true; do sleep 0.1; done");
    companion["restartPolicy"] = json!("Always");
    pod["initContainers"] =
        json!([shell("first", "echo first"), companion, shell("last", "echo last")]);
    machine.run("ordered", pod).await;
    let pod = machine.until_phase("ordered", "Succeeded").await;
    let began = |name: &str| {
        let log = machine.log(&pod, name, 0);
        log.split(' ').next().unwrap().to_owned()
    };
    let order = ["first", "proxy", "last", "main"].map(began);
    assert!(order.is_sorted(), "{order:?}");
    assert!(machine.log(&pod, "proxy", 0).contains("told"));
    let ended = |name: &str| status(&pod, name).unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended("proxy").exit_code, 0);
    assert!(ended("proxy").finished_at >= ended("main").finished_at);
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn companions_are_stopped_after_the_others_the_last_of_them_first() {
    let machine = Machine::start("reverse").await;
    let script =
        "trap 'echo told; sleep 0.5; echo ends; exit 0' TERM; while true; do sleep 0.1; done";
    let companion = |name: &str| {
        let mut companion = shell(name, script);
        companion["restartPolicy"] = json!("Always");
        companion
    };
    let mut pod = spec("Always", &json!([shell("main", script)]));
    pod["terminationGracePeriodSeconds"] = json!(20);
    pod["initContainers"] = json!([companion("log"), companion("proxy")]);
    let failing = json!({"exec": {"command": ["sh", "-c", "exit 3"]}});
    pod["initContainers"][0]["lifecycle"] = json!({"preStop": failing});
    machine.run("chain", pod).await;
    machine.until("chain", is_ready).await;
    let keep = json!({"metadata": {"finalizers": ["test.steersman.dev/keep"]}});
    let change = async |patch: &serde_json::Value| {
        let patch = kube::api::Patch::Merge(patch);
        machine.pods().patch("chain", &kube::api::PatchParams::default(), &patch).await.unwrap();
    };
    change(&keep).await;
    machine.delete("chain", &DeleteParams::default()).await;
    let pod = machine.until_phase("chain", "Succeeded").await;
    // When each was told, and when it said that it ends.
    let mut said = Vec::new();
    for name in ["main", "proxy", "log"] {
        let log = machine.log(&pod, name, 0);
        let times = log.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
        said.extend(times);
        assert_eq!(log.lines().count(), 2, "{name}: {log}");
    }
    assert!(said.is_sorted(), "{said:?}");
    let events = machine.events("chain").await;
    assert!(events.contains(&"FailedPreStopHook: PreStopHook failed".to_owned()), "{events:?}");
    change(&json!({"metadata": {"finalizers": null}})).await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_init_container_that_fails_fails_the_pod_and_says_why() {
    let machine = Machine::start("failing").await;
    let mut never = spec("Never", &json!([shell("main", "echo main")]));
    never["initContainers"] =
        json!([shell("setup", "echo no database > /dev/termination-log; exit 3")]);
    machine.run("never", never).await;
    let mut by_log = spec("Never", &json!([shell("main", "echo last words; exit 4")]));
    by_log["containers"][0]["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    machine.run("by-log", by_log).await;
    let absent = json!([{"name": "main", "image": "localhost/busybox:1", "command": ["/absent"]}]);
    machine.run("absent", spec("Never", &absent)).await;
    let pod = machine.until_phase("never", "Failed").await;
    let setup = status(&pod, "setup").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((setup.exit_code, setup.message.as_deref()), (3, Some("no database\n")));
    let pod = machine.until_phase("by-log", "Failed").await;
    let main = status(&pod, "main").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((main.exit_code, main.message.as_deref()), (4, Some("last words\n")));
    let pod = machine.until_phase("absent", "Failed").await;
    let main = status(&pod, "main").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((main.exit_code, main.reason.as_deref()), (128, Some("StartError")));
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_to_stop_does_its_hook_first_and_is_killed_in_the_end() {
    let machine = Machine::start("stopping").await;
    let serve = "trap 'echo told; exit 0' TERM; while true; do sleep 0.1; done";
    let mut polite = spec("Always", &json!([shell("main", serve)]));
    polite["terminationGracePeriodSeconds"] = json!(30);
    let hook = json!({"exec": {"command": ["sh", "-c", "echo hook > /proc/1/fd/1"]}});
    polite["containers"][0]["lifecycle"] = json!({"preStop": hook});
    machine.run("polite", polite).await;
    let deaf = "trap '' TERM; while true; do sleep 0.1; done";
    machine.run("deaf", spec("Always", &json!([shell("main", deaf)]))).await;
    for name in ["polite", "deaf"] {
        machine.until(name, is_ready).await;
    }
    // Somebody else has an interest in them, so that how they ended can be seen.
    let keep = json!({"metadata": {"finalizers": ["test.steersman.dev/keep"]}});
    for name in ["polite", "deaf"] {
        let patch = kube::api::Patch::Merge(&keep);
        machine.pods().patch(name, &kube::api::PatchParams::default(), &patch).await.unwrap();
        machine.delete(name, &DeleteParams::default()).await;
    }
    let code = |pod: &k8s_openapi::api::core::v1::Pod| {
        status(pod, "main")?.state.as_ref()?.terminated.as_ref().map(|ended| ended.exit_code)
    };
    let pod = machine.until("polite", |pod| code(pod).is_some()).await;
    assert_eq!(code(&pod), Some(0));
    let log = machine.log(&pod, "main", 0);
    let at = |word: &str| log.find(word).unwrap_or_else(|| panic!("no {word} in {log}"));
    assert!(at("hook") < at("told"), "{log}");
    let pod = machine.until("deaf", |pod| code(pod).is_some()).await;
    assert_eq!(code(&pod), Some(137));
    let release = json!({"metadata": {"finalizers": null}});
    for name in ["polite", "deaf"] {
        let patch = kube::api::Patch::Merge(&release);
        machine.pods().patch(name, &kube::api::PatchParams::default(), &patch).await.unwrap();
    }
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_takes_too_much_memory_is_killed_and_it_is_said() {
    let machine = Machine::start("memory").await;
    let grow = "x=0123456789abcdef; while true; do x=$x$x; done";
    let mut pod = spec("Never", &json!([shell("main", grow)]));
    pod["containers"][0]["resources"] = json!({"limits": {"memory": "24Mi", "cpu": "500m"}});
    machine.run("greedy", pod).await;
    let pod = machine.until_phase("greedy", "Failed").await;
    let main = status(&pod, "main").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((main.exit_code, main.reason.as_deref()), (137, Some("OOMKilled")));
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_failing_waits_and_what_has_no_image_says_so() {
    let machine = Machine::start("crashing").await;
    machine.run("crashing", spec("Always", &json!([shell("main", "exit 7")]))).await;
    let image = |policy: &str, image: &str| {
        let main = json!([{"name": "main", "image": image, "imagePullPolicy": policy}]);
        spec("Always", &main)
    };
    machine.run("unpulled", image("IfNotPresent", "localhost:1/absent:1")).await;
    machine.run("never", image("Never", "localhost/absent:1")).await;
    machine.run("misnamed", image("Never", "Localhost/Absent:1")).await;
    let waits = |name: &'static str, reason: &'static str| {
        let machine = &machine;
        async move {
            let waiting = |pod: &k8s_openapi::api::core::v1::Pod| {
                status(pod, "main")?.state.as_ref()?.waiting.as_ref()?.reason.clone()
            };
            machine.until(name, |pod| waiting(pod).as_deref() == Some(reason)).await
        }
    };
    let pod = waits("crashing", "CrashLoopBackOff").await;
    let main = status(&pod, "main").unwrap();
    assert_eq!(main.restart_count, 1);
    let last = main.last_state.clone().unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (7, Some("Error")));
    waits("unpulled", "ImagePullBackOff").await;
    waits("never", "ErrImageNeverPull").await;
    waits("misnamed", "InvalidImageName").await;
    let events = machine.events("unpulled").await;
    for reason in ["Pulling: Pulling image", "Failed: Failed to pull image", "BackOff: Back-off"] {
        assert!(events.iter().any(|event| event.starts_with(reason)), "{reason}: {events:?}");
    }
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_says_so_takes_all_others_with_it_and_all_begin_anew() {
    let machine = Machine::start("together").await;
    let runs = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
    let fails_once = format!("test -f /data/done || {{ touch /data/done; exit 42; }}; {runs}");
    let mut source = shell("source", &fails_once);
    source["restartPolicy"] = json!("Never");
    source["restartPolicyRules"] = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    source["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let mut companion = shell("proxy", runs);
    companion["restartPolicy"] = json!("Always");
    // Nobody asks it before it is stopped, and it has no time.
    let slow = json!({"preStop": {"exec": {"command": ["sh", "-c", "echo asked; sleep 60"]}}});
    companion["lifecycle"] = slow;
    let mut pod = spec("Never", &json!([source, shell("other", runs)]));
    pod["initContainers"] = json!([shell("setup", "echo setup"), companion]);
    pod["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    machine.run("whole", pod).await;
    let all = ["setup", "proxy", "source", "other"];
    let begun_anew = |pod: &k8s_openapi::api::core::v1::Pod| {
        is_ready(pod) && all.iter().all(|name| status(pod, name).unwrap().restart_count == 1)
    };
    let pod = machine.until("whole", begun_anew).await;
    for name in all {
        let last = status(&pod, name).unwrap().last_state.clone().unwrap().terminated.unwrap();
        assert_eq!(last.reason.as_deref(), Some("RestartingAllContainers"), "{name}");
        assert_eq!(last.exit_code, 137, "{name}");
    }
    let conditions = pod.status.as_ref().unwrap().conditions.iter().flatten();
    let condition = conditions.clone().find(|it| it.type_ == "AllContainersRestarting").unwrap();
    assert_eq!(condition.status, "False");
    assert!(machine.log(&pod, "setup", 1).contains("setup"), "it was set up again");
    machine.end().await;
}
