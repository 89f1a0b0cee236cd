use serde_json::json;

use super::*;
use crate::pods::plan::{Action, plan};
use crate::pods::tests::{
    all_run, at, condition, exited, named, pod, running_pod, runs, seen, status, with,
};

#[test]
fn a_container_says_what_is_mounted_into_it() {
    let mut pod = pod();
    let mounts = json!([
        {"name": "data", "mountPath": "/data"},
        {"name": "token", "mountPath": "/token", "readOnly": true},
        {"name": "host", "mountPath": "/host", "readOnly": true, "recursiveReadOnly": "IfPossible"},
    ]);
    let main = &mut pod.spec.as_mut().unwrap().containers[0];
    main.volume_mounts = serde_json::from_value(mounts).unwrap();
    let disabled = |name: &str| {
        let path = format!("/{name}");
        json!({"name": name, "mountPath": path, "readOnly": true, "recursiveReadOnly": "Disabled"})
    };
    let data = json!({"name": "data", "mountPath": "/data"});
    let mut recursive = disabled("host");
    recursive["recursiveReadOnly"] = "Enabled".into();
    for (mut observed, reads_only_recursively) in
        [(seen([]), false), (all_run(), false), (all_run(), true)]
    {
        observed.now.reads_only_recursively = reads_only_recursively;
        let host = if reads_only_recursively { recursive.clone() } else { disabled("host") };
        let expected = json!([data, disabled("token"), host]);
        let status = status(&pod, &observed, 0);
        let main = named(&status.container_statuses, "main");
        assert_eq!(serde_json::to_value(&main.volume_mounts).unwrap(), expected);
        assert_eq!(named(&status.init_container_statuses, "proxy").volume_mounts, None);
    }
}

#[test]
fn what_was_not_made_yet_says_whether_there_are_init_containers() {
    let mut pod = pod();
    let other = json!({"name": "other", "image": "nginx"});
    pod.spec.as_mut().unwrap().containers.push(serde_json::from_value(other).unwrap());
    let waits = |pod: &Pod| {
        let status = status(pod, &all_run(), 1);
        let other = named(&status.container_statuses, "other").state.clone().unwrap();
        other.waiting.unwrap().reason.unwrap()
    };
    assert_eq!(waits(&pod), "PodInitializing", "though another main container runs");
    pod.spec.as_mut().unwrap().init_containers = None;
    assert_eq!(waits(&pod), "ContainerCreating");
}

#[test]
fn containers_have_twelve_kibibytes_for_their_last_words_together() {
    let said = |text: String| {
        let mut main = exited("main", 1, 5);
        let State::Exited { message, .. } = &mut main.state else { unreachable!() };
        *message = Some(text);
        let last = Some(Box::new(main.clone()));
        let status = status(&pod(), &seen([Container { last, ..main }]), 5);
        let main = named(&status.container_statuses, "main");
        let states = [main.state.as_ref(), main.last_state.as_ref()];
        states.map(|state| state.unwrap().terminated.as_ref().unwrap().message.clone().unwrap())
    };
    // The Pod has three.
    assert_eq!(said("x".repeat(5000)).map(|text| text.len()), [4096; 2]);
    assert_eq!(said(format!("x{}", "é".repeat(2048))).map(|text| text.len()), [4095; 2]);
    assert_eq!(said("why".into()), ["why"; 2].map(str::to_owned));
}

/// Phase, and status and reason of the condition Ready.
fn told(status: &PodStatus) -> (&str, &str, Option<&str>) {
    let ready = condition(status, "Ready");
    (status.phase.as_deref().unwrap(), &ready.status, ready.reason.as_deref())
}

#[test]
fn a_pod_has_not_failed_before_its_companions_have_ended() {
    let mut pod = with(pod(), "Never");
    let init = pod.spec.as_mut().unwrap().init_containers.as_mut().unwrap();
    init.reverse(); // the companion comes first
    let failing = seen([runs("proxy"), exited("setup", 3, 5)]);
    let stop = Action::Stop(vec!["proxy".into()]);
    assert_eq!(plan(&pod, &failing, at(5)).actions, [stop]);
    assert_eq!(told(&status(&pod, &failing, 5)), ("Pending", "False", Some("PodFailed")));
    pod.status = Some(status(&pod, &failing, 5));
    let failed = seen([exited("proxy", 143, 8), exited("setup", 3, 5)]);
    assert_eq!(plan(&pod, &failed, at(8)), Plan::default(), "it is not started again");
    assert_eq!(told(&status(&pod, &failed, 8)), ("Failed", "False", Some("PodFailed")));
}

#[test]
fn a_pod_has_not_succeeded_before_what_was_added_to_it_has_ended() {
    let mut pod = with(running_pod(), "Never");
    let spec = pod.spec.as_mut().unwrap();
    let debug = json!([{"name": "debug", "image": "busybox"}]);
    spec.ephemeral_containers = serde_json::from_value(debug).unwrap();
    spec.init_containers = None;
    let done = seen([exited("main", 0, 5), runs("debug")]);
    let stop = Action::Stop(vec!["debug".into()]);
    assert_eq!(plan(&pod, &done, at(5)).actions, [stop]);
    let completed = Some("PodCompleted");
    assert_eq!(told(&status(&pod, &done, 5)), ("Running", "False", completed));
    let leaving = ending(&pod, &done, &End::Told, at(5));
    assert_eq!(leaving.phase.as_deref(), Some("Running"), "nor if it is deleted");
    let over = seen([exited("main", 0, 5), exited("debug", 137, 6)]);
    assert_eq!(told(&status(&pod, &over, 6)), ("Succeeded", "False", completed));
}

#[test]
fn a_pod_whose_time_is_up_is_not_ready_while_it_ends() {
    let pod = running_pod();
    let leaving = ending(&pod, &all_run(), &End::DeadlineExceeded, at(5));
    assert_eq!(told(&leaving), ("Running", "False", Some("PodFailed")));
    assert_eq!((&leaving.reason, &leaving.message), (&None, &None));
    assert_eq!(condition(&leaving, "PodReadyToStartContainers").status, "True");
}

#[test]
fn what_is_said_of_a_phase_is_forgotten_with_it() {
    let mut pod = pod();
    let before = pod.status.as_mut().unwrap();
    (before.reason, before.message) = (Some("Waits".into()), Some("for something".into()));
    let setting_up = seen([runs("setup")]);
    assert_eq!(status(&pod, &setting_up, 1).reason.as_deref(), Some("Waits"));
    let up = status(&pod, &all_run(), 2);
    assert_eq!((up.reason, up.message), (None, None));
}

#[test]
fn statuses_are_in_the_order_of_names_apart_from_those_of_init_containers() {
    let mut pod = pod();
    let spec = pod.spec.as_mut().unwrap();
    let more = json!([{"name": "b"}, {"name": "main"}, {"name": "a"}]);
    spec.containers = serde_json::from_value(more.clone()).unwrap();
    spec.ephemeral_containers = serde_json::from_value(more).unwrap();
    let status = status(&pod, &all_run(), 1);
    let names = |list: &Option<Vec<ContainerStatus>>| {
        let all = list.iter().flatten().map(|it| it.name.clone());
        all.collect::<Vec<String>>()
    };
    assert_eq!(names(&status.container_statuses), ["a", "b", "main"]);
    assert_eq!(names(&status.ephemeral_container_statuses), ["a", "b", "main"]);
    assert_eq!(names(&status.init_container_statuses), ["setup", "proxy"]);
}

#[test]
fn of_a_pod_that_is_not_taken_nothing_is_told_but_why() {
    let mut pod = pod();
    let gate = json!({"type": "example.com/gate", "status": "True"});
    let before = pod.status.as_mut().unwrap();
    before.conditions.as_mut().unwrap().push(serde_json::from_value(gate).unwrap());
    let told = rejected(&pod, &Rejection::NodePorts, &time(at(3)));
    let types: Vec<&str> = told.conditions.iter().flatten().map(|it| it.type_.as_str()).collect();
    assert_eq!(types, ["example.com/gate"]);
    assert_eq!((told.qos_class.as_deref(), told.pod_ip), (Some("BestEffort"), None));
    assert_eq!((told.start_time, told.observed_generation), (Some(time(at(3))), Some(3)));
}

#[test]
fn a_pod_that_no_scheduler_has_placed_is_said_to_be() {
    let mut pod = pod();
    pod.status = None;
    pod.metadata.generation = Some(7);
    let first = status(&pod, &all_run(), 3);
    let scheduled = condition(&first, "PodScheduled");
    assert_eq!((scheduled.status.as_str(), scheduled.observed_generation), ("True", Some(7)));
    assert_eq!(scheduled.last_transition_time, Some(time(at(3))));
    pod.status = Some(first.clone());
    assert_eq!(status(&pod, &all_run(), 9), first, "looking again changes nothing");
    let again = ending(&running_pod(), &all_run(), &End::Told, at(5));
    let all = again.conditions.iter().flatten();
    assert_eq!(all.filter(|one| one.type_ == "PodScheduled").count(), 1);
}

#[test]
fn a_pod_that_was_initialized_stays_that() {
    let mut pod = running_pod();
    // What they shared was lost before it could be told that any of them runs again.
    let anew = seen([runs("setup")]);
    assert_eq!(condition(&status(&pod, &anew, 9), "Initialized").status, "True");
    pod.status = None;
    assert_eq!(condition(&status(&pod, &anew, 9), "Initialized").status, "False");
}
