use k8s_openapi::api::core::v1::{ContainerStateWaiting, PodSpec, PodStatus};

use super::*;
use crate::pods::backoff::Memory;
use crate::pods::tests::{
    all_run, at, condition, container, exited, main_of, named, pod, runs, seen,
};
use crate::pods::tests::{status, with};

/// A container of this image.
fn made_of(image: &str, container: Container) -> Container {
    Container { image: image.into(), asked: Some(image.into()), ..container }
}

fn spec(pod: &mut Pod) -> &mut PodSpec {
    pod.spec.as_mut().unwrap()
}

fn replace(name: &str, message: &str) -> Action {
    Action::Replace { name: name.into(), attempt: 0, message: message.into() }
}

#[test]
fn a_container_of_another_image_is_started_again_whatever_its_policy() {
    let message = "Container main definition changed, will be restarted";
    for policy in ["Always", "OnFailure", "Never"] {
        let pod = with(pod(), policy);
        let mut observed = all_run();
        observed.now.containers[2] = made_of("nginx:1.27", runs("main"));
        assert_eq!(plan(&pod, &observed, at(5)).actions, [], "{policy}: it is the same");
        observed.now.containers[2] = made_of("nginx:1.26", runs("main"));
        let planned = plan(&pod, &observed, at(5)).actions;
        assert_eq!(planned, [replace("main", message)], "{policy}");
        assert_eq!(
            named(&status(&pod, &observed, 5).container_statuses, "main").image,
            "nginx:1.26"
        );
        let memory = Memory::default();
        memory.replaced("u1", "main", 0);
        observed.replaced = memory.replaced_of("u1");
        observed.now.containers[2] = made_of("nginx:1.26", exited("main", 0, 6));
        let again = Start { name: "main".into(), attempt: 1 };
        assert_eq!(plan(&pod, &observed, at(6)).actions, [Action::Start(again)], "{policy}");
        let mut alone = pod.clone();
        spec(&mut alone).init_containers = None;
        assert_eq!(status(&alone, &observed, 6).phase.as_deref(), Some("Running"), "{policy}");
        memory.started("u1", "main");
        assert!(memory.replaced_of("u1").is_empty());
    }
    // What had ended before is not started for it.
    let mut observed = all_run();
    observed.now.containers[2] = made_of("nginx:1.26", exited("main", 0, 4));
    let stop = Action::Stop(vec!["proxy".into()]);
    assert_eq!(plan(&with(pod(), "Never"), &observed, at(5)).actions, [stop]);
}

#[test]
fn a_companion_of_another_image_is_started_again_once_it_has_come_up() {
    let pod = with(pod(), "Always");
    let mut observed = all_run();
    observed.now.containers[1] = made_of("envoy:0", runs("proxy"));
    let message = "Init container proxy definition changed";
    assert_eq!(plan(&pod, &observed, at(5)).actions, [replace("proxy", message)]);
    let slow = State::Running { started: false, ready: false, stopping: false, until: None };
    observed.now.containers[1] = made_of("envoy:0", container("proxy", 0, slow));
    assert_eq!(plan(&pod, &observed, at(5)).actions, []);
    let observed = seen([made_of("other", runs("setup"))]);
    assert_eq!(plan(&pod, &observed, at(5)).actions, [], "others come to their end");
}

#[test]
fn what_is_changed_is_stopped_once_for_whatever_else_is_wrong_with_it() {
    let pod = with(pod(), "Always");
    let mut observed = all_run();
    let broken = Container {
        failed_probe: Some(crate::probes::Kind::Liveness),
        ..made_of("nginx:1.26", runs("main"))
    };
    observed.now.containers[2] = broken;
    assert_eq!(plan(&pod, &observed, at(5)).actions.len(), 1);
}

#[test]
fn with_another_image_or_other_resources_nobody_waits_for_what_failed_before() {
    let mut pod = with(pod(), "Always");
    spec(&mut pod).init_containers = None;
    let memory = Memory::default();
    memory.restarted(main_of(&pod), at(0), at(0));
    memory.restarted(main_of(&pod), at(10), at(10));
    let failed = |memory: &Memory| Observed {
        troubles: memory.of("u1"),
        ..seen([Container { attempt: 2, ..exited("main", 1, 11) }])
    };
    assert_eq!(plan(&pod, &failed(&memory), at(12)).until, Some(at(31)));
    let mut other = pod.clone();
    spec(&mut other).containers[0].image = Some("nginx:1.28".into());
    let mut larger = pod.clone();
    let resources = serde_json::json!({"limits": {"cpu": "1"}});
    spec(&mut larger).containers[0].resources = serde_json::from_value(resources).unwrap();
    for changed in [&other, &larger] {
        let planned = plan(changed, &failed(&memory), at(12));
        assert!(matches!(planned.actions[..], [Action::Restart(..)]), "{planned:?}");
    }
    memory.restarted(main_of(&other), at(12), at(12));
    assert_eq!(plan(&other, &failed(&memory), at(12)).until, Some(at(21)), "it begins anew");
    // The same for an image that could not be had.
    let why = StartError::not_found("nginx:1.27");
    memory.not_started(main_of(&pod), why, at(20));
    let observed = Observed { troubles: memory.of("u1"), ..seen([]) };
    assert_eq!(plan(&pod, &observed, at(21)).actions, []);
    assert!(matches!(plan(&other, &observed, at(21)).actions[..], [Action::Start(_)]));
}

#[test]
fn why_a_container_ended_at_once_is_said_before_that_it_is_waited_for() {
    let mut pod = with(pod(), "Always");
    spec(&mut pod).init_containers = None;
    let waits = |why: StartError, seconds: i64| -> ContainerStateWaiting {
        let memory = Memory::default();
        memory.failed_run(main_of(&pod), why, at(5));
        memory.restarted(main_of(&pod), at(5), at(5));
        let main = Container { attempt: 1, ..exited("main", 128, 5) };
        let observed = Observed { troubles: memory.of("u1"), ..seen([main]) };
        let status = status(&pod, &observed, seconds);
        named(&status.container_statuses, "main").state.clone().unwrap().waiting.unwrap()
    };
    let run = || StartError::Run("no such file".into());
    let said = waits(run(), 5);
    assert_eq!(said.reason.as_deref(), Some("RunContainerError"));
    assert_eq!(said.message.as_deref(), Some("no such file"));
    let said = waits(StartError::PostStart("the hook failed".into()), 5);
    assert_eq!(said.reason.as_deref(), Some("PostStartHookError"));
    assert_eq!(said.message.as_deref(), Some("the hook failed"));
    assert_eq!(waits(run(), 6).reason.as_deref(), Some("CrashLoopBackOff"));
}

/// A Pod whose main container takes all others with it when it exits with 42.
fn taking_all_with_it() -> Pod {
    let mut pod = with(pod(), "Never");
    let main = &mut spec(&mut pod).containers[0];
    main.restart_policy = Some("Never".into());
    let rules = serde_json::json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    main.restart_policy_rules = serde_json::from_value(rules).unwrap();
    pod
}

/// Notes what a plan says of beginning anew.
fn begun_anew(plan: &Plan, now: Timestamp) -> Anew {
    let [Action::BeginAnew { containers, .. }] = &plan.actions[..] else {
        panic!("{:?}", plan.actions)
    };
    let memory = Memory::default();
    memory.begin_anew("u1", containers, now);
    memory.anew_of("u1")
}

fn stopping(name: &str) -> Container {
    container(name, 0, State::Running { started: true, ready: false, stopping: true, until: None })
}

fn attempt(attempt: i32, container: Container) -> Container {
    Container { attempt, ..container }
}

#[test]
fn a_container_takes_all_others_with_it_if_its_rule_says_so() {
    let pod = taking_all_with_it();
    let started = |name: &str| Action::Start(Start { name: name.into(), attempt: 1 });
    let mut observed = seen([exited("setup", 0, 0), runs("proxy"), exited("main", 1, 3)]);
    let stop = Action::Stop(vec!["proxy".into()]);
    assert_eq!(plan(&pod, &observed, at(3)).actions, [stop], "the rule is about another code");
    observed.now.containers[2] = exited("main", 42, 3);
    let planned = plan(&pod, &observed, at(3));
    let all = ["setup", "proxy", "main"].map(|name| (name.to_owned(), 0)).to_vec();
    let begin = Action::BeginAnew { containers: all, running: vec!["proxy".into()] };
    assert_eq!(planned.actions, [begin]);
    observed.anew = begun_anew(&planned, at(3));
    let told = Action::BeginAnew { containers: Vec::new(), running: vec!["proxy".into()] };
    assert_eq!(plan(&pod, &observed, at(3)).actions, [told], "it runs on as if nothing were");
    // One after the other, as the first time, once all have ended.
    observed.now.containers[1] = stopping("proxy");
    assert_eq!(plan(&pod, &observed, at(3)).actions, []);
    observed.now.containers[1] = exited("proxy", 137, 4);
    assert_eq!(plan(&pod, &observed, at(4)).actions, [started("setup")]);
    observed.now.containers[0] = attempt(1, exited("setup", 0, 5));
    assert_eq!(plan(&pod, &observed, at(5)).actions, [started("proxy")]);
    observed.now.containers[1] = attempt(1, runs("proxy"));
    assert_eq!(plan(&pod, &observed, at(5)).actions, [started("main")]);
    observed.now.containers[2] = attempt(1, runs("main"));
    assert_eq!(plan(&pod, &observed, at(5)).actions, []);
    // What ends so again begins anew again, but not at once.
    observed.now.containers[2] = attempt(1, exited("main", 42, 3));
    let soon = plan(&pod, &observed, at(3));
    assert_eq!((soon.actions, soon.until), (vec![], Some(at(4))));
    assert!(matches!(plan(&pod, &observed, at(4)).actions[..], [Action::BeginAnew { .. }]));
}

#[test]
fn a_pod_is_not_over_because_its_containers_were_killed_to_begin_anew() {
    let mut pod = taking_all_with_it();
    spec(&mut pod).restart_policy = Some("Never".into());
    pod.status = Some(status(&pod, &all_run(), 2));
    let mut observed = seen([exited("setup", 0, 0), runs("proxy"), exited("main", 42, 3)]);
    observed.anew = begun_anew(&plan(&pod, &observed, at(3)), at(3));
    // One that prepares the Pod would make it fail, had it ended like this by itself.
    observed.now.containers[0] = exited("setup", 137, 4);
    observed.now.containers[1] = stopping("proxy");
    assert_eq!(status(&pod, &observed, 4).phase.as_deref(), Some("Running"));
    // Who hears of it from the status alone looks at none of them, whatever they wait for by now.
    observed.now.containers[1] = exited("proxy", 137, 5);
    let mut told = status(&pod, &observed, 5);
    let main = told.container_statuses.iter_mut().flatten().find(|it| it.name == "main").unwrap();
    let waiting = main.state.as_mut().unwrap().waiting.as_mut().unwrap();
    waiting.reason = Some("ImagePullBackOff".into());
    pod.status = Some(told);
    let heard = Anew::told(&pod);
    assert!(observed.now.containers.iter().all(|container| heard.includes(container)));
}

#[test]
fn a_pod_whose_containers_begin_anew_goes_on_and_says_so() {
    let pod = taking_all_with_it();
    let restarting = |status: &PodStatus| {
        let condition = condition(status, "AllContainersRestarting");
        (condition.status.clone(), condition.reason.clone().unwrap_or_default())
    };
    assert_eq!(restarting(&status(&pod, &all_run(), 2)), ("False".into(), String::new()));
    let mut observed = seen([exited("setup", 0, 0), runs("proxy"), exited("main", 42, 3)]);
    observed.anew = begun_anew(&plan(&pod, &observed, at(3)), at(3));
    let now = status(&pod, &observed, 3);
    assert_eq!(restarting(&now), ("True".into(), "RestartAllContainersStarted".into()));
    let main = named(&now.container_statuses, "main");
    let ended = main.state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!((ended.exit_code, main.restart_count), (42, 0));
    assert_eq!(now.phase.as_deref(), Some("Running"));
    observed.now.containers[1] = exited("proxy", 137, 4);
    let now = status(&pod, &observed, 4);
    assert_eq!(restarting(&now).0, "False", "all have ended");
    assert_eq!(now.phase.as_deref(), Some("Running"));
    assert_eq!(condition(&now, "Initialized").status, "True");
    for (statuses, name) in [
        (&now.init_container_statuses, "setup"),
        (&now.init_container_statuses, "proxy"),
        (&now.container_statuses, "main"),
    ] {
        let told = named(statuses, name);
        let waiting = told.state.as_ref().unwrap().waiting.as_ref().unwrap();
        assert_eq!(waiting.reason.as_deref(), Some("RestartingAllContainers"), "{name}");
        let last = told.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert_eq!(last.reason.as_deref(), Some("RestartingAllContainers"), "{name}");
        assert_eq!((last.exit_code, told.restart_count), (137, 1), "{name}");
    }
    // An agent that is started now knows it from the status.
    let pod = Pod { status: Some(now), ..pod };
    let known = Observed { anew: Anew::told(&pod), ..observed.clone() };
    let setup = Action::Start(Start { name: "setup".into(), attempt: 1 });
    assert_eq!(plan(&pod, &known, at(9)).actions, [setup]);
    // What comes of it says how the one before it ended, whoever remembers that.
    let before = Some(Box::new(exited("setup", 0, 0)));
    let again = Container { last: before, ..attempt(1, runs("setup")) };
    for anew in [observed.anew.clone(), Anew::default()] {
        let observed = Observed { anew, ..seen([again.clone()]) };
        let told = status(&pod, &observed, 9);
        let last = named(&told.init_container_statuses, "setup").last_state.clone().unwrap();
        assert_eq!(last.terminated.unwrap().exit_code, 137);
    }
}
