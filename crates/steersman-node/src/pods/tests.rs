use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::backoff::{Backoff, Memory, Whose};
use super::plan::{Action, Observed, Plan, plan};
use super::removal::{Removal, removal};
use super::status::{
    End, Surroundings, ending, has_ended, rejected, running as reported, time_left,
};
use crate::duration::go;
use crate::probes::Kind;
use crate::rejection::Rejection;
use crate::runtime::{Container, Evicted, Observation, Sandbox, Start, StartError, State};

pub(super) fn pod() -> Pod {
    let pod = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u1", "generation": 3},
        "spec": {
            "nodeName": "node-0",
            "initContainers": [
                {"name": "setup", "image": "busybox"},
                {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "main", "image": "nginx:1.27"}],
        },
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    });
    serde_json::from_value(pod).unwrap()
}

pub(super) fn with(mut pod: Pod, policy: &str) -> Pod {
    pod.spec.as_mut().unwrap().restart_policy = Some(policy.into());
    pod
}

/// So many seconds after noon.
pub(super) fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

pub(super) fn time(seconds: i64) -> Time {
    Time(at(seconds))
}

pub(super) fn container(name: &str, attempt: i32, state: State) -> Container {
    Container {
        name: name.into(),
        id: format!("simulated://u1/{name}"),
        image: "image".into(),
        image_id: "simulated://image".into(),
        asked: None,
        attempt,
        started: at(0),
        state,
        outdated: false,
        failed_probe: None,
        user: None,
        last: None,
    }
}

pub(super) fn runs(name: &str) -> Container {
    container(name, 0, State::Running { started: true, ready: true, stopping: false, until: None })
}

pub(super) fn exited(name: &str, code: i32, seconds: i64) -> Container {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let finished = at(seconds);
    container(name, 0, State::Exited { finished, code, reason: reason.into(), message: None })
}

pub(super) fn seen(containers: impl IntoIterator<Item = Container>) -> Observed {
    let containers = containers.into_iter().collect();
    let sandbox = Sandbox::Ready(Vec::new());
    let now = Observation { containers, sandbox, ..Observation::default() };
    Observed { now, ..Observed::default() }
}

/// What is seen of a Pod that runs as it should.
pub(super) fn all_run() -> Observed {
    seen([exited("setup", 0, 0), runs("proxy"), runs("main")])
}

fn starts(name: &str) -> Vec<Action> {
    vec![Action::Start(Start { name: name.into(), attempt: 0 })]
}

pub(super) fn status(pod: &Pod, observed: &Observed, seconds: i64) -> PodStatus {
    let (pod_addresses, host_addresses) = (vec!["10.244.0.1".into()], vec!["172.18.0.2".into()]);
    let around = Surroundings { pod_addresses, host_addresses };
    reported(pod, &around, observed, &plan(pod, observed, at(seconds)), at(seconds))
}

pub(super) fn condition<'a>(status: &'a PodStatus, type_: &str) -> &'a PodCondition {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_).unwrap()
}

fn said(status: &PodStatus, type_: &str) -> (String, String, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let condition = condition(status, type_);
    (condition.status.clone(), text(&condition.reason), text(&condition.message))
}

/// The main container of a Pod.
pub(super) fn main_of(pod: &Pod) -> Whose<'_> {
    Whose { uid: "u1", spec: pod.spec.as_ref().unwrap(), name: "main" }
}

pub(super) fn named<'a>(
    statuses: &'a Option<Vec<ContainerStatus>>,
    name: &str,
) -> &'a ContainerStatus {
    statuses.iter().flatten().find(|status| status.name == name).unwrap()
}

fn phase(status: &PodStatus) -> &str {
    status.phase.as_deref().unwrap()
}

#[test]
fn init_containers_run_one_after_the_other_before_the_main_ones() {
    let planned = |containers: Vec<Container>| plan(&pod(), &seen(containers), at(1)).actions;
    assert_eq!(planned(vec![]), starts("setup"));
    assert_eq!(planned(vec![runs("setup")]), []);
    assert_eq!(planned(vec![exited("setup", 0, 1)]), starts("proxy"));
    assert_eq!(planned(vec![exited("setup", 0, 1), runs("proxy")]), starts("main"));
    assert_eq!(plan(&pod(), &all_run(), at(1)), Plan::default());
}

#[test]
fn a_pod_that_waits_for_its_init_containers_is_pending_and_says_for_which() {
    let status = status(&pod(), &seen([runs("setup")]), 1);
    assert_eq!(phase(&status), "Pending");
    let no = |reason: &str, message: &str| ("False".into(), reason.into(), message.into());
    let waits = "containers with incomplete status: [setup proxy]";
    assert_eq!(said(&status, "Initialized"), no("ContainersNotInitialized", waits));
    let unready = no("ContainersNotReady", "containers with unready status: [proxy main]");
    assert_eq!(said(&status, "Ready"), unready);
    assert_eq!(said(&status, "ContainersReady"), unready);
    let main = named(&status.container_statuses, "main").state.clone().unwrap();
    assert_eq!(main.waiting.unwrap().reason.as_deref(), Some("PodInitializing"));
}

#[test]
fn a_pod_that_runs_is_ready_and_has_its_addresses() {
    let status = status(&pod(), &all_run(), 0);
    assert_eq!(phase(&status), "Running");
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.1"));
    assert_eq!(status.host_ip.as_deref(), Some("172.18.0.2"));
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    let types: Vec<&str> =
        status.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect();
    let own = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
    assert_eq!(types, [&own[..], &["PodScheduled"]].concat());
    for type_ in types {
        assert_eq!(condition(&status, type_).status, "True", "{type_}");
    }
    let main = named(&status.container_statuses, "main");
    assert!(main.ready && main.state.as_ref().unwrap().running.is_some());
    assert_eq!(main.container_id.as_deref(), Some("simulated://u1/main"));
    let setup = named(&status.init_container_statuses, "setup");
    let ended = setup.state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!((setup.ready, ended.reason.as_deref()), (true, Some("Completed")));
    let proxy = named(&status.init_container_statuses, "proxy").state.as_ref().unwrap();
    assert!(proxy.running.is_some());
}

#[test]
fn looking_again_changes_nothing() {
    let mut pod = pod();
    let first = status(&pod, &all_run(), 0);
    pod.status = Some(first.clone());
    assert_eq!(status(&pod, &all_run(), 3600), first);
}

#[test]
fn restart_policies_say_what_becomes_of_containers_that_end() {
    // Policy, exit code, whether it is started again, and the phase.
    for (policy, code, again, expected) in [
        ("Always", 0, true, "Running"),
        ("Always", 1, true, "Running"),
        ("OnFailure", 0, false, "Succeeded"),
        ("OnFailure", 1, true, "Running"),
        ("Never", 0, false, "Succeeded"),
        ("Never", 1, false, "Failed"),
    ] {
        let mut pod = with(pod(), policy);
        pod.spec.as_mut().unwrap().init_containers = None;
        let observed = seen([exited("main", code, 5)]);
        let start = Start { name: "main".into(), attempt: 1 };
        let expected_actions = if again { vec![Action::Restart(start, at(5))] } else { vec![] };
        assert_eq!(plan(&pod, &observed, at(5)).actions, expected_actions, "{policy} {code}");
        assert_eq!(phase(&status(&pod, &observed, 5)), expected, "{policy} {code}");
    }
}

#[test]
fn a_container_has_a_policy_and_rules_of_its_own() {
    let mut pod = with(pod(), "Always");
    let main = json!([{"name": "main", "restartPolicy": "Never", "restartPolicyRules": [
        {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
    ]}]);
    let spec = pod.spec.as_mut().unwrap();
    spec.init_containers = None;
    spec.containers = serde_json::from_value(main).unwrap();
    for (code, phase_of_pod) in [(42, "Running"), (1, "Failed"), (0, "Succeeded")] {
        assert_eq!(phase(&status(&pod, &seen([exited("main", code, 5)]), 5)), phase_of_pod);
    }
}

#[test]
fn a_pod_succeeds_when_its_companions_have_ended_too() {
    let pod = with(pod(), "Never");
    let done = seen([exited("setup", 0, 0), runs("proxy"), exited("main", 0, 5)]);
    assert_eq!(plan(&pod, &done, at(5)).actions, [Action::Stop(vec!["proxy".into()])]);
    assert_eq!(phase(&status(&pod, &done, 5)), "Running");
    let over = seen([exited("setup", 0, 0), exited("proxy", 0, 5), exited("main", 0, 5)]);
    assert_eq!(plan(&pod, &over, at(5)).actions, []);
    let status = status(&pod, &over, 5);
    assert_eq!(phase(&status), "Succeeded");
    let completed = |holds: &str| (holds.to_owned(), "PodCompleted".to_owned(), String::new());
    assert_eq!(said(&status, "Ready"), completed("False"));
    assert_eq!(said(&status, "Initialized"), completed("True"));
}

#[test]
fn an_init_container_that_fails_for_good_fails_the_pod() {
    let failed = seen([exited("setup", 3, 5)]);
    let never = with(pod(), "Never");
    assert_eq!(plan(&never, &failed, at(5)).actions, []);
    assert_eq!(phase(&status(&never, &failed, 5)), "Failed");
    assert_eq!(phase(&status(&with(pod(), "Always"), &failed, 5)), "Pending");
}

#[test]
fn what_keeps_failing_is_started_again_ever_later() {
    let (pod, memory) = (pod(), Memory::default());
    let mut delays = Vec::new();
    let mut now = 0;
    for _ in 0..7 {
        memory.restarted(main_of(&pod), at(now), at(now));
        let last = memory.of("u1")["main"].restart.clone().unwrap();
        delays.push(go(last.delay.unsigned_abs()));
        now += last.delay.as_secs();
    }
    assert_eq!(delays, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
    let last = memory.of("u1")["main"].restart.clone();
    let long = Backoff::next(last.as_ref(), at(now + 601), at(now + 601));
    assert_eq!(go(long.delay.unsigned_abs()), "10s", "it ran well for ten minutes");
    memory.forget("u1");
    assert!(memory.of("u1").is_empty());
}

#[test]
fn a_container_that_waits_for_its_restart_says_so() {
    let mut pod = with(pod(), "Always");
    pod.spec.as_mut().unwrap().init_containers = None;
    let memory = Memory::default();
    memory.restarted(main_of(&pod), at(0), at(0));
    let containers = vec![Container { attempt: 1, ..exited("main", 3, 5) }];
    let observed = Observed { troubles: memory.of("u1"), ..seen(containers) };
    let planned = plan(&pod, &observed, at(6));
    assert_eq!((planned.actions.len(), planned.until), (0, Some(at(15))));
    let status = status(&pod, &observed, 6);
    assert_eq!(phase(&status), "Running");
    let main = named(&status.container_statuses, "main");
    let waiting = main.state.clone().unwrap().waiting.unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
    let message = "back-off 10s restarting failed container=main pod=web_default(u1)";
    assert_eq!(waiting.message.as_deref(), Some(message));
    let last = main.last_state.clone().unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
    assert_eq!((main.restart_count, main.ready), (1, false));
    assert!(matches!(plan(&pod, &observed, at(15)).actions[..], [Action::Restart(..)]));
}

#[test]
fn a_container_that_ended_in_a_time_to_come_is_not_waited_for_until_then() {
    let mut pod = with(pod(), "Always");
    pod.spec.as_mut().unwrap().init_containers = None;
    let memory = Memory::default();
    memory.restarted(main_of(&pod), at(0), at(0));
    let planned = |finished: Timestamp| {
        let mut main = exited("main", 3, 0);
        main.state = State::Exited { finished, code: 3, reason: "Error".into(), message: None };
        let observed = Observed { troubles: memory.of("u1"), ..seen([main]) };
        plan(&pod, &observed, at(6))
    };
    // The clock was set back, or the runtime has another: an hour, and more than there is.
    for finished in [at(3_600), Timestamp::MAX] {
        let planned = planned(finished);
        assert!(matches!(planned.actions[..], [Action::Restart(..)]), "{finished}: {planned:?}");
    }
    assert!(matches!(planned(Timestamp::MIN).actions[..], [Action::Restart(..)]));
    assert_eq!(planned(at(7)).until, Some(at(17)), "it ended while somebody looked");
}

#[test]
fn an_image_that_cannot_be_pulled_is_tried_again_and_told_of() {
    let mut pod = pod();
    pod.spec.as_mut().unwrap().init_containers = None;
    let memory = Memory::default();
    let why = StartError::ImagePull { image: "nginx:1.27".into(), why: "not found".into() };
    memory.not_started(main_of(&pod), why, at(0));
    let observed = Observed { troubles: memory.of("u1"), ..seen([]) };
    let waits = |seconds: i64| {
        let status = status(&pod, &observed, seconds);
        assert_eq!(phase(&status), "Pending");
        let state = named(&status.container_statuses, "main").state.clone().unwrap();
        let waiting = state.waiting.unwrap();
        (waiting.reason.unwrap(), waiting.message.unwrap())
    };
    assert_eq!(waits(0), ("ErrImagePull".into(), "not found".into()));
    let message = "Back-off pulling image \"nginx:1.27\": ErrImagePull: not found";
    assert_eq!(waits(1), ("ImagePullBackOff".into(), message.into()));
    assert_eq!(plan(&pod, &observed, at(10)).actions, starts("main"));
}

#[test]
fn readiness_gates_keep_a_pod_from_being_ready() {
    let mut pod = pod();
    let gates: Value = json!([{"conditionType": "example.com/gate"}]);
    pod.spec.as_mut().unwrap().readiness_gates = serde_json::from_value(gates).unwrap();
    let (holds, reason, message) = said(&status(&pod, &all_run(), 0), "Ready");
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "ReadinessGatesNotReady"));
    let missing =
        "corresponding condition of pod readiness gate \"example.com/gate\" does not exist.";
    assert_eq!(message, missing);
    assert_eq!(said(&status(&pod, &all_run(), 0), "ContainersReady").0, "True");
}

#[test]
fn a_pod_that_finds_no_room_fails_and_says_why() {
    let full = Rejection::OutOfPods { used: 110, capacity: 110 };
    let mut pod = pod();
    let status = rejected(&pod, &full, &time(0));
    assert_eq!(status.reason.as_deref(), Some("OutOfpods"));
    let why = "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110";
    assert_eq!(status.message, Some(format!("Pod was rejected: {why}")));
    pod.status = Some(status);
    assert!(has_ended(&pod));
}

/// A Pod that runs, with the status that it then has.
pub(super) fn running_pod() -> Pod {
    let mut pod = pod();
    pod.status = Some(status(&pod, &all_run(), 0));
    pod
}

fn all_ended(code: i32) -> Observed {
    seen([exited("setup", 0, 0), exited("proxy", 0, 5), exited("main", code, 5)])
}

#[test]
fn a_pod_that_was_told_to_end_has_completed_or_failed_as_its_containers_have() {
    let mut pod = running_pod();
    pod.metadata.generation = Some(4);
    let status = ending(&pod, &all_ended(0), &End::Told, at(5));
    assert_eq!(phase(&status), "Succeeded");
    assert_eq!(status.observed_generation, Some(4));
    let main = named(&status.container_statuses, "main").state.clone().unwrap();
    assert_eq!(main.terminated.unwrap().finished_at, Some(time(5)));
    let told: Vec<_> = ["Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"]
        .iter()
        .map(|type_| condition(&status, type_))
        .map(|condition| (condition.status.as_str(), condition.reason.as_deref()))
        .collect();
    let completed = Some("PodCompleted");
    let no = ("False", completed);
    assert_eq!(told, [("True", completed), no, no, ("False", None)]);
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.1"));
    assert_eq!(phase(&ending(&pod, &all_ended(137), &End::Told, at(5))), "Failed");
}

#[test]
fn a_pod_whose_time_is_up_has_failed() {
    let mut pod = running_pod();
    assert_eq!(time_left(&pod, at(3600)), None);
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(60);
    for (moment, seconds) in [(0, 60), (59, 1), (60, 0), (3600, 0)] {
        assert_eq!(time_left(&pod, at(moment)), Some(Duration::from_secs(seconds)), "{moment}");
    }
    let status = ending(&pod, &all_ended(0), &End::DeadlineExceeded, at(60));
    assert_eq!(phase(&status), "Failed");
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    let message = "Pod was active on the node longer than the specified deadline";
    assert_eq!(status.message.as_deref(), Some(message));
    assert_eq!(condition(&status, "Ready").reason.as_deref(), Some("PodFailed"));
}

#[test]
fn a_pod_that_is_evicted_fails_when_its_containers_have_ended_and_says_why() {
    let message = "The node was low on resource: memory. ".to_owned();
    let end = End::Evicted(Evicted { message: message.clone(), disrupted: true });
    let pod = running_pod();
    let status = ending(&pod, &all_run(), &end, at(5));
    assert_eq!((phase(&status), status.reason.as_deref()), ("Running", None));
    let status = ending(&pod, &all_ended(0), &end, at(6));
    assert_eq!((phase(&status), status.reason.as_deref()), ("Failed", Some("Evicted")));
    assert_eq!(status.message, Some(message.clone()));
    let disrupted = condition(&status, "DisruptionTarget");
    assert_eq!(disrupted.reason.as_deref(), Some("TerminationByKubelet"));
    assert_eq!(disrupted.message, Some(message.clone()));
    assert_eq!(disrupted.last_transition_time, Some(time(6)));
    // One that has more than it may have is not disrupted by anybody.
    let end = End::Evicted(Evicted { message, disrupted: false });
    let status = ending(&pod, &all_ended(0), &end, at(6));
    let mut conditions = status.conditions.iter().flatten();
    assert!(!conditions.any(|condition| condition.type_ == "DisruptionTarget"));
}

#[test]
fn an_ephemeral_container_runs_once_from_when_it_was_added() {
    let mut pod = running_pod();
    let added = json!([{"name": "debugger", "image": "busybox"}]);
    pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(added).unwrap();
    assert_eq!(plan(&pod, &all_run(), at(600)).actions, starts("debugger"));
    let mut observed = all_run();
    observed.now.containers.push(runs("debugger"));
    let first = status(&pod, &observed, 600);
    let debugger = named(&first.ephemeral_container_statuses, "debugger");
    assert!(debugger.state.as_ref().unwrap().running.is_some());
    assert!(!debugger.ready);
    pod.status = Some(first.clone());
    assert_eq!(status(&pod, &observed, 3600), first, "looking again changes nothing");
    observed.now.containers.pop();
    observed.now.containers.push(exited("debugger", 1, 700));
    assert_eq!(plan(&pod, &observed, at(700)).actions, []);
    assert_eq!(phase(&status(&pod, &observed, 700)), "Running");
}

#[test]
fn a_companion_that_has_not_come_up_is_waited_for() {
    let slow = State::Running { started: false, ready: false, stopping: false, until: None };
    let observed = seen([exited("setup", 0, 0), container("proxy", 0, slow)]);
    assert_eq!(plan(&pod(), &observed, at(1)).actions, []);
}

#[test]
fn what_a_probe_says_is_broken_is_stopped_once_and_started_again() {
    let broken = Container { failed_probe: Some(Kind::Liveness), ..runs("main") };
    let mut observed = seen([exited("setup", 0, 0), runs("proxy"), broken.clone()]);
    let message = "Container main failed liveness probe, will be restarted";
    let kill = Action::Kill { name: "main".into(), message: message.into() };
    assert_eq!(plan(&with(pod(), "Always"), &observed, at(1)).actions, [kill]);
    let state = State::Running { started: true, ready: false, stopping: true, until: None };
    observed.now.containers[2] = Container { state, ..broken };
    assert_eq!(plan(&with(pod(), "Always"), &observed, at(1)).actions, [], "it is told already");
    observed.now.containers[2] = exited("main", 143, 2);
    let again = Start { name: "main".into(), attempt: 1 };
    let planned = plan(&with(pod(), "Always"), &observed, at(2)).actions;
    assert_eq!(planned, [Action::Restart(again, at(2))]);
}

#[test]
fn a_start_that_is_under_way_is_not_begun_again() {
    let mut observed = seen([]);
    observed.now.starting = vec!["setup".into()];
    assert_eq!(plan(&pod(), &observed, at(1)).actions, []);
    let state = named(&status(&pod(), &observed, 1).init_container_statuses, "setup").state.clone();
    assert_eq!(state.unwrap().waiting.unwrap().reason.as_deref(), Some("PodInitializing"));
}

#[test]
fn what_shared_a_sandbox_that_is_gone_runs_from_the_beginning() {
    let outdated = |of: Container| Container { outdated: true, ..of };
    let gone = [exited("setup", 0, 0), exited("proxy", 137, 4), exited("main", 137, 5)];
    let mut observed = seen(gone.map(outdated));
    observed.now.sandbox = Sandbox::Absent;
    let again = |name: &str| vec![Action::Start(Start { name: name.into(), attempt: 1 })];
    assert_eq!(plan(&with(pod(), "Always"), &observed, at(5)).actions, again("setup"));
    assert_eq!(plan(&with(pod(), "Never"), &observed, at(5)).actions, [], "it is over");
    let ready = status(&with(pod(), "Always"), &observed, 5);
    assert_eq!(condition(&ready, "PodReadyToStartContainers").status, "False");
    let main = outdated(exited("main", 137, 5));
    let observed = seen([exited("setup", 0, 6), runs("proxy"), main]);
    let again = Start { name: "main".into(), attempt: 1 };
    let planned = plan(&with(pod(), "Always"), &observed, at(6)).actions;
    assert_eq!(planned, [Action::Restart(again, at(5))]);
}

#[test]
fn what_runs_in_a_sandbox_that_is_gone_is_stopped_before_anything_else() {
    let outdated = |of: Container| Container { outdated: true, ..of };
    let observed = seen([exited("setup", 0, 0), outdated(runs("proxy")), outdated(runs("main"))]);
    let pod = with(pod(), "Always");
    let leave = |again| Action::Leave { names: vec!["proxy".into(), "main".into()], again };
    assert_eq!(plan(&pod, &observed, at(5)).actions, [leave(true)]);
    let never = with(pod.clone(), "Never");
    assert_eq!(plan(&never, &observed, at(5)).actions, [leave(false)], "there is no other sandbox");
    let state = State::Running { started: true, ready: false, stopping: true, until: None };
    let told = seen([outdated(container("main", 0, state))]);
    assert_eq!(plan(&pod, &told, at(5)).actions, []);
}

#[test]
fn what_could_not_be_made_is_tried_again_after_a_while() {
    let mut pod = pod();
    pod.spec.as_mut().unwrap().init_containers = None;
    let waits = |why: StartError| {
        let memory = Memory::default();
        memory.not_started(main_of(&pod), why.clone(), at(0));
        memory.not_started(main_of(&pod), why, at(10));
        let observed = Observed { troubles: memory.of("u1"), ..seen([]) };
        let plan = plan(&pod, &observed, at(11));
        assert_eq!((plan.actions.len(), plan.until), (0, Some(at(20))));
        let status = status(&pod, &observed, 11);
        named(&status.container_statuses, "main").state.clone().unwrap().waiting.unwrap()
    };
    let config = waits(StartError::Config("secret \"s\" not found".into()));
    assert_eq!(config.reason.as_deref(), Some("CreateContainerConfigError"));
    assert_eq!(config.message.as_deref(), Some("secret \"s\" not found"));
    let sandbox = waits(StartError::Sandbox("no network".into()));
    assert_eq!((sandbox.reason.as_deref(), sandbox.message), (Some("ContainerCreating"), None));
}

#[test]
fn a_pod_that_is_told_to_end_runs_on_and_says_that_it_knows() {
    let mut pod = running_pod();
    pod.metadata.generation = Some(4);
    let status = ending(&pod, &all_run(), &End::Told, at(5));
    assert_eq!(status.observed_generation, Some(4));
    assert_eq!(condition(&status, "Ready").observed_generation, Some(4));
    assert_eq!(phase(&status), "Running");
}

#[test]
fn a_pod_that_the_server_marked_and_did_not_remove_is_removed() {
    let marked = |grace, finalizers: &[&str]| {
        let mut pod = pod();
        pod.metadata.deletion_timestamp = Some(time(0));
        pod.metadata.deletion_grace_period_seconds = Some(grace);
        pod.metadata.finalizers = Some(finalizers.iter().map(|&name| name.into()).collect());
        pod
    };
    let rest = |millis| Removal::After(Duration::from_millis(millis));
    let cases = [
        ("its grace period was for its containers", marked(30, &[]), 0, Removal::Now),
        ("the same, kept by others afterwards", marked(30, &["a/b"]), 0, Removal::Now),
        ("the server is about to remove it", marked(0, &[]), 0, rest(2_001)),
        ("it takes its time", marked(0, &[]), 2, rest(1)),
        ("it was killed before it could", marked(0, &[]), 3, Removal::Now),
        ("finalizers keep it, however old", marked(0, &["a/b"]), 3_600, Removal::LeftToOthers),
    ];
    for (case, pod, seconds, expected) in cases {
        assert_eq!(removal(&pod, at(seconds)), expected, "{case}");
    }
}
