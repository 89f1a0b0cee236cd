use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use steersman_scheduler::framework::Resources;

use super::admission::{Neighbour, fits};
use super::allocations::Allocations;
use super::changes::Changes;
use super::sizes::{Allocation, Pending, Progress, Sizes};
use super::{changes, conditions, is_in_progress};
use crate::pods::plan::{Action, Observed, plan};
use crate::pods::tests::{at, container, runs};
use crate::runtime::{Container, Ledger, Observation, Sandbox, Start, State};

/// Amounts of cpu and memory, asked for and allowed.
fn resources(cpu: &str, memory: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": memory});
    json!({"requests": amounts, "limits": amounts})
}

/// A Pod of one container.
fn pod(resources: &Value) -> Pod {
    let pod = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u1", "generation": 2},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "main", "image": "nginx", "resources": resources}],
        },
        "status": {"qosClass": "Guaranteed"},
    });
    serde_json::from_value(pod).unwrap()
}

/// A Pod whose status tells that its container runs with something.
fn running(wanted: &Value, allocated: &Value, actuated: &Value) -> Pod {
    let mut pod = pod(wanted);
    let status = json!([{
        "name": "main", "image": "nginx", "imageID": "", "ready": true, "restartCount": 0,
        "containerID": "simulated://u1/main", "state": {"running": {}},
        "allocatedResources": allocated["requests"], "resources": actuated,
    }]);
    let told = serde_json::from_value(status).unwrap();
    pod.status.as_mut().unwrap().container_statuses = Some(told);
    pod
}

fn with_policy(mut pod: Pod, policies: &[(&str, &str)]) -> Pod {
    let of = |(resource, policy): &(&str, &str)| json!({"resourceName": resource, "restartPolicy": policy});
    let policies: Value = policies.iter().map(of).collect();
    let spec = pod.spec.as_mut().unwrap();
    spec.containers[0].resize_policy = serde_json::from_value(policies).unwrap();
    pod
}

fn seen(sizes: Sizes, containers: Vec<Container>) -> Observed {
    let sandbox = Sandbox::Ready(Vec::new());
    let now = Observation { containers, sandbox, ..Observation::default() };
    Observed { now, sizes, ..Observed::default() }
}

/// What is done to a Pod that was given what it wants and runs with something else.
fn planned(pod: &Pod) -> Vec<Action> {
    let mut sizes = Sizes::told(pod);
    sizes.allocated = Allocation::of(pod);
    plan(pod, &seen(sizes, vec![runs("main")]), at(0)).actions
}

/// Changes as words: whose, of what, and what it has of it from then on.
fn words(actions: &[Action]) -> Vec<String> {
    let one = |action: &Action| match action {
        Action::Resize(changes) => {
            let changes = changes.iter().map(|change| {
                let limits = change.resources.limits.clone().unwrap_or_default();
                let of = |name: &str| limits.get(name).map_or("-", |it| it.0.as_str()).to_owned();
                format!("{} {}/{}", change.resource.name(), of("cpu"), of("memory"))
            });
            changes.collect::<Vec<_>>().join(", ")
        }
        other => format!("{other:?}"),
    };
    actions.iter().map(one).collect()
}

#[test]
fn what_runs_gets_what_it_was_given_memory_first() {
    let small = resources("100m", "64Mi");
    for (wanted, expected) in [
        (resources("100m", "64Mi"), None),
        (resources("0.1", "65536Ki"), None), // the same otherwise written
        (resources("200m", "64Mi"), Some("cpu 200m/64Mi")),
        (resources("100m", "32Mi"), Some("memory 100m/32Mi")),
        (resources("200m", "128Mi"), Some("memory 100m/128Mi, cpu 200m/128Mi")),
    ] {
        let planned = planned(&running(&wanted, &small, &small));
        let expected: Vec<String> = expected.map(str::to_owned).into_iter().collect();
        assert_eq!(words(&planned), expected, "{wanted}");
    }
}

#[test]
fn a_container_is_stopped_for_what_its_policy_asks_for() {
    let small = resources("100m", "64Mi");
    let policy = [("memory", "RestartContainer"), ("cpu", "NotRequired")];
    let done = |cpu: &str, memory: &str| {
        let pod = running(&resources(cpu, memory), &small, &small);
        planned(&with_policy(pod, &policy))
    };
    assert_eq!(words(&done("200m", "64Mi")), ["cpu 200m/64Mi"]);
    let stop = Action::StopToResize { name: "main".into(), attempt: 0 };
    let stop = [stop];
    assert_eq!(done("100m", "128Mi"), stop);
    assert_eq!(done("200m", "128Mi"), stop, "both come with the start");
}

#[test]
fn what_was_stopped_for_it_starts_again_whatever_its_restart_policy() {
    let pod = running(&resources("1", "1Gi"), &resources("1", "1Gi"), &resources("1", "64Mi"));
    let ended = |code: i32| State::Exited {
        finished: at(0),
        code,
        reason: "Completed".into(),
        message: None,
    };
    let mut sizes = Sizes::told(&pod);
    let ends = vec![container("main", 0, ended(0))];
    let alone = plan(&pod, &seen(sizes.clone(), ends.clone()), at(1));
    assert_eq!(alone.actions, [], "with OnFailure, what ended well is over");
    sizes.restarting.insert("main".into(), 0);
    let planned = plan(&pod, &seen(sizes.clone(), ends), at(1));
    let start = Start { name: "main".into(), attempt: 1 };
    assert_eq!(planned.actions, [Action::Resize(Vec::new()), Action::Start(start)]);
    assert_eq!(planned.waiting["main"].reason, "ContainerCreating");
    sizes.started("main", 1);
    assert!(sizes.restarting.is_empty());
    assert!(sizes.of_run("main", 0).is_none() && sizes.of_run("main", 1).is_some());
}

#[test]
fn decreases_come_before_increases() {
    let mut pod = pod(&json!({}));
    let spec = pod.spec.as_mut().unwrap();
    let of = |name: &str, memory: &str| {
        let container =
            json!({"name": name, "image": "nginx", "resources": resources("100m", memory)});
        serde_json::from_value(container).unwrap()
    };
    spec.containers = vec![of("grows", "64Mi"), of("shrinks", "64Mi"), of("stays", "64Mi")];
    let mut sizes = Sizes::told(&pod);
    for name in ["grows", "shrinks", "stays"] {
        sizes.started(name, 0);
    }
    let spec = pod.spec.as_mut().unwrap();
    spec.containers = vec![of("grows", "96Mi"), of("shrinks", "32Mi"), of("stays", "64Mi")];
    let observed = seen(sizes, vec![runs("grows"), runs("shrinks"), runs("stays")]);
    let changes = changes(&pod, &observed.now, &observed.sizes).updates;
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(names, ["shrinks", "grows"]);
    assert_eq!(changes[0].limit, (64 << 20, 32 << 20));
}

#[test]
fn what_ends_is_stopping_or_broken_is_not_resized() {
    let small = resources("100m", "64Mi");
    let pod = running(&resources("200m", "64Mi"), &small, &small);
    let stopping = State::Running { started: true, ready: true, stopping: true, until: None };
    let broken = Container { failed_probe: Some(crate::probes::Kind::Liveness), ..runs("main") };
    for container in [container("main", 0, stopping), broken] {
        let observed = seen(Sizes::told(&pod), vec![container]);
        let Observed { now, sizes, .. } = &observed;
        assert_eq!(changes(&pod, now, sizes), Changes::default());
        assert!(is_in_progress(&pod, now, sizes), "it still runs with what it had");
    }
}

#[test]
fn what_failed_is_tried_again_later() {
    let small = resources("100m", "64Mi");
    let pod = running(&resources("200m", "64Mi"), &small, &small);
    let mut sizes = Sizes::told(&pod);
    sizes.again = Some(at(10));
    let planned = |now| plan(&pod, &seen(sizes.clone(), vec![runs("main")]), at(now));
    assert_eq!((planned(9).actions, planned(9).until), (vec![], Some(at(10))));
    assert_eq!(words(&planned(10).actions), ["cpu 200m/64Mi"]);
}

#[test]
fn what_the_status_tells_is_remembered() {
    let (small, large) = (resources("100m", "64Mi"), resources("200m", "128Mi"));
    let given = |pod: &Pod| {
        let sizes = Sizes::told(pod);
        let given = &sizes.allocated.containers["main"];
        let [request, limit] =
            [&given.requests, &given.limits].map(|list| list.as_ref().unwrap()["cpu"].0.clone());
        (request, limit, sizes.allocated.differs(pod))
    };
    let text = |request: &str, limit: &str, differs| (request.into(), limit.into(), differs);
    assert_eq!(given(&pod(&large)), text("200m", "200m", false), "nothing is told yet");
    assert_eq!(given(&running(&large, &small, &small)), text("100m", "100m", true));
    assert_eq!(given(&running(&large, &large, &large)), text("200m", "200m", false));
    // What is under way was allocated, though containers do not have it.
    let mut begun = running(&large, &large, &small);
    let condition = json!([{
        "type": "PodResizeInProgress", "status": "True", "observedGeneration": 2,
        "reason": "Error", "message": "no",
    }]);
    begun.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
    assert_eq!(given(&begun), text("200m", "200m", false));
    let progress = Sizes::told(&begun).progress.unwrap();
    assert_eq!(progress, Progress { generation: Some(2), error: Some("no".into()) });
    begun.metadata.generation = Some(3);
    assert_eq!(given(&begun), text("200m", "100m", true), "another spec came after it");
}

#[test]
fn a_pod_that_waits_runs_with_what_it_was_given() {
    let (small, large) = (resources("100m", "64Mi"), resources("200m", "128Mi"));
    let waits = running(&large, &small, &small);
    let given = Sizes::told(&waits).allocated.applied(&waits).into_owned();
    let given = given.spec.unwrap().containers[0].resources.clone().unwrap();
    assert_eq!(serde_json::to_value(given).unwrap(), small);
    assert!(planned_by_worker(&waits).is_empty());
}

/// What is done to a Pod by the worker, which sees its spec as it was given.
fn planned_by_worker(pod: &Pod) -> Vec<Action> {
    let sizes = Sizes::told(pod);
    let given = sizes.allocated.applied(pod).into_owned();
    plan(&given, &seen(sizes, vec![runs("main")]), at(0)).actions
}

/// A node of so many cpus, in thousandths.
fn allocatable(cpu: &str) -> Resources {
    let amount = |text: &str| Quantity(text.into());
    let amounts = [("cpu".to_owned(), amount(cpu)), ("memory".to_owned(), amount("1Gi"))].into();
    Resources::of(Some(&amounts))
}

fn neighbour(wanted: &str, given: &str, change: impl FnOnce(&mut Pod)) -> Neighbour {
    let [wanted, given] = [wanted, given].map(|cpu| resources(cpu, "64Mi"));
    let mut pod = running(&wanted, &given, &given);
    pod.metadata.uid = Some("other".into());
    change(&mut pod);
    Neighbour { sizes: Sizes::told(&pod), pod: Arc::new(pod) }
}

#[test]
fn a_node_gives_what_it_has_beside_what_others_were_given() {
    let decide = |cpu: &str, others: &[Neighbour]| {
        let small = resources("500m", "64Mi");
        let pod = running(&resources(cpu, "64Mi"), &small, &small);
        fits(&pod, &Sizes::told(&pod), others, &allocatable("2")).map_err(|it| it.to_string())
    };
    let other = neighbour("1", "1", |_| {});
    assert_eq!(decide("1", std::slice::from_ref(&other)), Ok(()));
    let why = "Node didn't have enough resource: cpu, requested: 1001, used: 1000, capacity: 2000";
    assert_eq!(decide("1001m", std::slice::from_ref(&other)), Err(why.into()));
    // What a neighbour wants and was not given does not count.
    let waits = neighbour("2", "1", |_| {});
    assert_eq!(decide("1", &[waits]), Ok(()));
    assert_eq!(decide("100m", &[neighbour("1900m", "1900m", |_| {})]), Ok(()), "less always fits");
}

#[test]
fn those_who_wait_are_served_in_order() {
    // Each wants the one cpu that is left.
    let small = resources("500m", "64Mi");
    let pod = running(&resources("1", "64Mi"), &small, &small);
    let takes =
        |other: Neighbour| fits(&pod, &Sizes::told(&pod), &[other], &allocatable("1500m")).is_err();
    let like = |change: &dyn Fn(&mut Pod)| takes(neighbour("1", "500m", change));
    let priority = |of: i32| move |pod: &mut Pod| pod.spec.as_mut().unwrap().priority = Some(of);
    let class = |of: &'static str| {
        move |pod: &mut Pod| pod.status.as_mut().unwrap().qos_class = Some(of.into())
    };
    let since = |pod: &mut Pod| {
        let time = Some(Time(at(0)));
        let condition = PodCondition {
            type_: "PodResizePending".into(),
            status: "True".into(),
            last_transition_time: time,
            ..PodCondition::default()
        };
        pod.status.as_mut().unwrap().conditions = Some(vec![condition]);
    };
    assert!(!like(&|_| {}), "who is like it comes when it comes");
    assert!(like(&priority(10)), "a higher priority comes first");
    assert!(!like(&priority(-10)));
    assert!(!like(&class("Burstable")), "the guaranteed come first");
    assert!(like(&since), "who has waited comes first");
    assert!(!takes(neighbour("2", "500m", priority(10))), "who cannot have it blocks nobody");
}

#[test]
fn what_is_decided_counts_at_once_and_is_told_once() {
    let small = resources("500m", "64Mi");
    let named = |uid: &str, cpu: &str| {
        let mut pod = running(&resources(cpu, "64Mi"), &small, &small);
        pod.metadata.uid = Some(uid.into());
        pod.metadata.name = Some(uid.into());
        pod
    };
    let (a, b) = (named("a", "1"), named("b", "1"));
    let allocations = Allocations::default();
    let decide = |pod: &Pod, other: &Pod| {
        allocations.decide(pod, [Arc::new(other.clone())].into_iter(), &allocatable("1500m"))
    };
    decide(&a, &b).unwrap();
    let refused = decide(&b, &a).unwrap_err().to_string();
    assert!(refused.ends_with("requested: 1000, used: 1000, capacity: 1500"), "{refused}");
    assert!(allocations.defer(&b, "node-0", refused.clone()));
    assert!(!allocations.defer(&b, "node-0", refused), "it was told of this spec");
    let mut later = b.clone();
    later.metadata.generation = Some(3);
    assert!(allocations.defer(&later, "node-0", "no".into()));
    assert_eq!(
        allocations.of(&b).pending,
        Some(Pending { message: "no".into(), generation: Some(3) })
    );
    // What the status tells as well is forgotten.
    let told = |pod: &Pod| {
        allocations.change(pod, |sizes| {
            let given = sizes.allocated.containers["main"].clone();
            sizes.resized("main", given);
            sizes.progress = None;
        });
        let large = resources("1", "64Mi");
        let mut reported = running(&large, &large, &large);
        reported.metadata = pod.metadata.clone();
        allocations.forget_told(&reported, "node-0");
    };
    told(&a);
    assert!(allocations.of(&a).allocated.differs(&a), "nothing is known but what its status tells");
}

#[test]
fn conditions_say_why_and_keep_their_times() {
    let pending = Pending { message: "no room".into(), generation: Some(2) };
    let sizes = Sizes { pending: Some(pending), ..Sizes::default() };
    let (noon, later) = (Time(at(0)), Time(at(60)));
    let first = conditions(&sizes, &[], &noon);
    let said = |condition: &PodCondition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let generation = condition.observed_generation;
        (condition.type_.clone(), text(&condition.reason), text(&condition.message), generation)
    };
    let expected = ("PodResizePending", "Deferred", "no room");
    let expected = (expected.0.into(), expected.1.into(), expected.2.into(), Some(2));
    assert_eq!(said(&first[0]), expected);
    assert_eq!(conditions(&sizes, &first, &later), first, "the same is no news");
    let failed = Progress { generation: Some(1), error: Some("cannot".into()) };
    let both = Sizes { progress: Some(failed.clone()), ..sizes.clone() };
    let second = conditions(&both, &first, &later);
    assert_eq!(second[0], first[0]);
    assert_eq!(said(&second[1]).1, "Error");
    let begun = Sizes { progress: Some(Progress { error: None, ..failed }), ..Sizes::default() };
    let third = conditions(&begun, &second, &noon);
    assert_eq!(third.len(), 1);
    assert_eq!(third[0].last_transition_time, Some(noon), "another reason has another time");
    assert_eq!((third[0].reason.clone(), third[0].message.clone()), (None, None));
}

#[tokio::test]
async fn room_on_a_node_wakes_those_who_wait_there() {
    let allocations = Allocations::default();
    let mut woken = std::pin::pin!(allocations.woken());
    let mut now = async || {
        let mut all = Vec::new();
        while let Some(Some(key)) = woken.next().now_or_never() {
            all.push(key.name.to_string());
        }
        all
    };
    for (name, node) in [("a", "node-0"), ("b", "node-1"), ("c", "node-0")] {
        let mut pod = pod(&json!({}));
        pod.metadata.name = Some(name.into());
        allocations.defer(&pod, node, "no room".into());
    }
    assert!(now().await.is_empty());
    allocations.make_room(Some("node-0"));
    assert_eq!(now().await, ["a", "c"]);
    allocations.make_room(Some("node-0"));
    assert!(now().await.is_empty(), "they say when they wait again");
    allocations.make_room(None);
    assert_eq!(now().await, ["b"]);
}

#[test]
fn what_a_pod_has_as_a_whole_is_told_and_read_back() {
    let mut pod = crate::pods::tests::pod();
    let main = &mut pod.spec.as_mut().unwrap().containers[0];
    main.resources = serde_json::from_value(resources("500m", "64Mi")).unwrap();
    let whole = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}});
    for whole in [Value::Null, whole] {
        let spec = pod.spec.as_mut().unwrap();
        spec.resources = serde_json::from_value(whole.clone()).unwrap();
        let mut observed = crate::pods::tests::all_run();
        observed.sizes = Sizes::told(&pod);
        observed.sizes.started("proxy", 0);
        observed.sizes.started("main", 0);
        let told = Pod {
            status: Some(crate::pods::tests::status(&pod, &observed, 0)),
            metadata: pod.metadata.clone(),
            spec: pod.spec.clone(),
        };
        assert!(told.status.as_ref().unwrap().resources.is_some());
        assert_eq!(Sizes::told(&told), observed.sizes, "{whole}");
    }
}

#[test]
fn what_containers_have_together_is_not_what_their_pod_was_given_as_a_whole() {
    let small = resources("100m", "64Mi");
    let mut pod = running(&small, &small, &small);
    let spec = pod.spec.as_mut().unwrap();
    let wanted = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}});
    spec.resources = serde_json::from_value(wanted).unwrap();
    spec.overhead = serde_json::from_value(json!({"cpu": "250m"})).unwrap();
    let status = pod.status.as_mut().unwrap();
    let amounts = json!({"cpu": "1250m", "memory": "64Mi"});
    status.allocated_resources = serde_json::from_value(amounts.clone()).unwrap();
    let told = json!({"requests": amounts, "limits": amounts});
    status.resources = serde_json::from_value(told).unwrap();
    let whole = |pod: &Pod| {
        let sizes = Sizes::told(pod);
        json!([sizes.allocated.whole, sizes.actuated.whole])
    };
    let one = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    assert_eq!(whole(&pod), json!([one, one]));
    pod.spec.as_mut().unwrap().resources = None;
    assert_eq!(whole(&pod), json!([null, null]));
}

/// A ledger that any number of agents share.
#[derive(Debug, Default)]
struct Book(Mutex<HashMap<String, String>>);

impl Ledger for Book {
    fn read(&self, uid: &str) -> Option<String> {
        self.0.lock().unwrap().get(uid).cloned()
    }

    fn write(&self, uid: &str, text: &str) {
        self.0.lock().unwrap().insert(uid.to_owned(), text.to_owned());
    }

    fn erase(&self, uid: &str) {
        self.0.lock().unwrap().remove(uid);
    }
}

#[test]
fn the_next_agent_knows_what_no_status_tells() {
    let book = Arc::new(Book::default());
    let agent = || Allocations::kept_in(Some(Arc::clone(&book) as Arc<dyn Ledger>));
    let [small, large] = ["100m", "1"].map(|cpu| resources(cpu, "64Mi"));
    let (first, wanted) = (pod(&small), pod(&large));
    agent().admit(&first);
    let second = agent();
    assert!(second.of(&wanted).allocated.differs(&wanted), "it was given less");
    second.change(&first, |sizes| {
        sizes.restarting.insert("main".into(), 0);
    });
    let third = agent();
    assert!(third.of(&first).restarts("main", 0), "it was stopped to be resized");
    third.change(&first, |sizes| sizes.started("main", 1));
    let reported = running(&small, &small, &small);
    third.forget_told(&reported, "node-0");
    assert!(book.read("u1").is_some(), "the status is that of the one before");
    let mut reported = reported;
    let statuses = reported.status.as_mut().unwrap().container_statuses.as_mut().unwrap();
    statuses[0].restart_count = 1;
    third.forget_told(&reported, "node-0");
    assert_eq!(book.read("u1"), None, "the status tells all");
}

#[test]
fn nothing_is_held_of_a_pod_whose_status_tells_all() {
    let small = resources("100m", "64Mi");
    let of = |name: &str, policy: Option<&str>| json!({"name": name, "image": "i", "resources": small, "restartPolicy": policy});
    let spec = json!({
        "initContainers": [of("setup", None), of("proxy", Some("Always"))],
        "containers": [of("main", None), {"name": "bare", "image": "i", "resources": {}}],
    });
    let mut pod = pod(&small);
    pod.spec = serde_json::from_value(spec).unwrap();
    let allocations = Allocations::default();
    for name in ["setup", "proxy", "main", "bare"] {
        allocations.change(&pod, |sizes| sizes.started(name, 0));
    }
    let told = |name: &str, state: &str, resources: &Value| {
        let state = match state {
            "ended" => json!({"terminated": {"exitCode": 0}}),
            _ => json!({"running": {}}),
        };
        json!({
            "name": name, "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": name, "state": state,
            "allocatedResources": resources["requests"], "resources": resources,
        })
    };
    let status = |state: &str| {
        json!({
            "initContainerStatuses": [told("setup", state, &small), told("proxy", "runs", &small)],
            "containerStatuses": [told("main", "runs", &small), told("bare", "runs", &json!({}))],
        })
    };
    // What wants something else than is held says whether something is.
    let is_held = || {
        let mut other = self::pod(&resources("1", "1Gi"));
        other.metadata = pod.metadata.clone();
        allocations.of(&other).allocated.differs(&other)
    };
    allocations.forget_told(&pod, "node-0");
    assert!(is_held(), "no status tells anything");
    let mut reported = pod.clone();
    reported.status = serde_json::from_value(status("ended")).unwrap();
    allocations.forget_told(&reported, "node-0");
    assert!(!is_held());
}
