use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Begun, Fairness, Flow, Seat, Work};
use crate::authz::{Attributes, Target};
use crate::user::User;

fn asked<'a>(user: &'a User, verb: &'a str) -> Attributes<'a> {
    let target = Target::Resource {
        group: "",
        resource: "pods",
        subresource: "",
        namespace: "default",
        name: "",
    };
    Attributes::new(user, verb, target)
}

fn flow(fairness: &Fairness, user: &User) -> Arc<Flow> {
    fairness.classify(&asked(user, "get"), Instant::now()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn without_any_object_there_are_those_that_always_are() {
    let fairness = Fairness::new(600);
    let admin = User::in_process();
    assert_eq!(flow(&fairness, &admin).schema.name, "exempt");
    assert!(flow(&fairness, &admin).is_exempt());
    for user in [User::known("jane", &[]), User::anonymous()] {
        assert_eq!(flow(&fairness, &user).schema.name, "catch-all");
    }
    let odd = User { groups: Vec::new(), ..User::known("odd", &[]) };
    assert_eq!(flow(&fairness, &odd).schema.name, "catch-all");
}

/// Levels and schemas as a new cluster has them.
fn usual(seats: u32) -> Fairness {
    let fairness = Fairness::new(seats);
    let objects = super::defaults::levels().into_iter().chain(super::defaults::schemas());
    let objects = objects.map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap();
        let key = format!("/registry/{}/{name}", object["kind"]);
        (key, steersman_store::Revision(1), Some(object))
    });
    let mut known = fairness.known.lock().unwrap();
    known.replace(objects.collect());
    fairness.digest(&known);
    drop(known);
    fairness
}

#[tokio::test(start_paused = true)]
async fn everybody_has_the_level_of_kubernetes() {
    let fairness = usual(600);
    let account = User::service_account("default", "a");
    let system = User::service_account("kube-system", "a");
    let node = User::known("system:node:a", &["system:nodes"]);
    let lease = Target::Resource {
        group: "coordination.k8s.io",
        resource: "leases",
        subresource: "",
        namespace: "kube-node-lease",
        name: "a",
    };
    let pods = asked(&node, "get").target;
    for (user, verb, target, expected) in [
        (&User::in_process(), "get", pods, "exempt"),
        (&User::anonymous(), "get", Target::Path("/readyz"), "probes"),
        (&User::anonymous(), "get", Target::Path("/readyz/ping"), "probes"),
        (&User::anonymous(), "get", Target::Path("/version"), "global-default"),
        (&system, "update", lease, "system-leader-election"),
        (&system, "list", lease, "kube-system-service-accounts"),
        (&node, "update", lease, "system-node-high"),
        (&node, "get", pods, "system-nodes"),
        (&User::known("system:kube-scheduler", &[]), "get", pods, "kube-scheduler"),
        (&account, "update", lease, "service-accounts"),
        (&User::known("jane", &[]), "get", pods, "global-default"),
    ] {
        let flow = fairness.classify(&Attributes::new(user, verb, target), Instant::now()).unwrap();
        assert_eq!(flow.schema.name, expected, "{} {verb} {target:?}", user.name);
    }
}

fn seat(flow: &Arc<Flow>, asked: &Attributes<'_>) -> Option<Seat> {
    match flow.begin(asked, Work::ONE) {
        Begun::Seated(seat) => Some(seat),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn seats_come_back_when_requests_end_wait_in_vain_or_are_given_up() {
    let fairness = usual(60);
    let jane = User::known("jane", &[]);
    let asked = asked(&jane, "get");
    let flow = fairness.classify(&asked, Instant::now()).unwrap();
    let mut seats: Vec<Seat> = std::iter::from_fn(|| seat(&flow, &asked)).collect();
    assert_eq!(seats.len(), usize::try_from(flow.level.limit()).unwrap());
    let wait = || match flow.begin(&asked, Work::ONE) {
        Begun::Waiting(wait) => wait,
        _ => panic!("there is no seat"),
    };
    // One waits in vain, one is given up, and one is seated.
    assert!(wait().seated(Duration::from_secs(15)).await.is_none());
    let second = tokio::spawn(wait().seated(Duration::from_secs(15)));
    drop(wait());
    seats.pop();
    let seated = second.await.unwrap();
    assert!(seated.is_some());
    // One that was seated without its knowledge, and never looks.
    let unaware = wait();
    drop(seated);
    drop(unaware);
    seats.clear();
    assert!(flow.level.is_idle(), "{:?}", flow.level);
    assert_eq!(flow.counts.waiting.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(flow.counts.executing.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn seats_that_linger_are_given_to_who_waits_when_they_are_free() {
    let fairness = usual(60);
    let jane = User::known("jane", &[]);
    let asked = asked(&jane, "create");
    let flow = fairness.classify(&asked, Instant::now()).unwrap();
    let limit = flow.level.limit();
    let work = Work { initial: 1, last: limit, lasting: Duration::from_millis(5) };
    let Begun::Seated(seat) = flow.begin(&asked, work) else { panic!("there are seats") };
    drop(seat);
    let Begun::Waiting(wait) = flow.begin(&asked, Work::ONE) else { panic!("they linger") };
    let began = Instant::now();
    assert!(wait.seated(Duration::from_secs(15)).await.is_some());
    assert!(began.elapsed() <= Duration::from_millis(6));
    assert!(flow.level.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_busy_level_borrows_what_others_do_not_need() {
    let fairness = usual(600);
    let jane = User::known("jane", &[]);
    let asked = asked(&jane, "get");
    let flow = fairness.classify(&asked, Instant::now()).unwrap();
    let before = flow.level.limit();
    let mut seats: Vec<Seat> = std::iter::from_fn(|| seat(&flow, &asked)).collect();
    let Begun::Waiting(wait) = flow.begin(&asked, Work::ONE) else { panic!("it is full") };
    let waiting = tokio::spawn(wait.seated(Duration::from_secs(60)));
    tokio::time::advance(Duration::from_secs(11)).await;
    // The next request sees to it.
    let again = fairness.classify(&asked, Instant::now()).unwrap();
    assert!(again.level.limit() > before, "{before} {}", again.level.limit());
    assert!(waiting.await.unwrap().is_some());
    seats.clear();
    let limits: u32 = {
        let configuration = fairness.configuration.read().unwrap();
        configuration.levels.values().map(|state| state.level.limit()).sum()
    };
    assert!(limits <= 606, "{limits}");
}

#[tokio::test(start_paused = true)]
async fn a_level_that_nobody_wants_ends_what_it_began() {
    let fairness = usual(600);
    let jane = User::known("jane", &[]);
    let asked = asked(&jane, "get");
    let flow = fairness.classify(&asked, Instant::now()).unwrap();
    let seat = seat(&flow, &asked).unwrap();
    let has = |name: &str| fairness.configuration.read().unwrap().levels.contains_key(name);
    {
        let mut known = fairness.known.lock().unwrap();
        known.replace(Vec::new());
        fairness.digest(&known);
    }
    assert_eq!(fairness.classify(&asked, Instant::now()).unwrap().schema.name, "catch-all");
    assert!(has("global-default") && !has("workload-low"));
    drop(seat);
    tokio::time::advance(Duration::from_secs(11)).await;
    fairness.classify(&asked, Instant::now());
    assert!(!has("global-default"));
}
