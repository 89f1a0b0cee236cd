//! `steersman up --demo` tells the whole story.

use crate::program::Program;

#[test]
fn the_demo_shows_who_writes_what_in_order_each_reason_and_a_summary() {
    let program = Program::up(&["--demo"]);
    assert_shown(&program.read_until("reconciles."));
}

#[test]
fn the_demo_can_be_seen_again_on_the_same_cluster() {
    let mut program = Program::up_on_disk(&["--demo"]);
    assert_shown(&program.read_until("reconciles."));
    program.stop();
    program.start_again();
    let shown = program.read_until("reconciles.");
    assert!(shown.contains("The shop of an earlier demo goes first."), "{shown}");
    assert_shown(&shown);
}

/// The way from an AppService to its Pods and back, each step by the one who takes it.
const WAY: [&str; 9] = [
    "admin create appservices default/shop",
    "app-services patch deployments default/shop",
    "deployment-controller create replicasets default/shop-",
    "replicaset-controller create pods default/shop-",
    "kube-scheduler create pods/binding default/shop-",
    "kubelet patch pods/status default/shop-",
    "replicaset-controller update replicasets/status default/shop-",
    "deployment-controller update deployments/status default/shop",
    "app-services patch appservices/status default/shop",
];

fn assert_shown(shown: &str) {
    for part in [
        "because AppService default/shop ",
        "app-services          patch  deployments default/shop  created  replicas 3",
        "3 of 3 replicas available: 1 AppService, 1 Deployment, 1 ReplicaSet, 3 Pods",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    let writes: Vec<String> = shown.lines().filter_map(write).collect();
    let first = writes.iter().position(|write| write.starts_with(WAY[0]));
    let writes = &writes[first.expect("the shop was asked for")..];
    // What is made comes before what is made of it; back, each tells last what the one before told.
    // A kubelet tells more of a Pod than that it is ready.
    let place = |step: &&str| {
        let is_back = step.contains("/status") && !step.starts_with("kubelet");
        let mut places = (0..writes.len()).filter(|place| writes[*place].starts_with(step));
        let place = if is_back { places.next_back() } else { places.next() };
        place.unwrap_or_else(|| panic!("nobody did: {step}; what was done: {writes:#?}"))
    };
    let places: Vec<usize> = WAY.iter().map(place).collect();
    assert!(places.is_sorted(), "{WAY:#?} stand at {places:?} of {writes:#?}");
    for (step, times) in [(WAY[2], 1), (WAY[3], 3), (WAY[4], 3)] {
        let done = writes.iter().filter(|write| write.starts_with(step)).count();
        assert_eq!(done, times, "{step} in {writes:#?}");
    }
}

/// Who wrote what, of a line that tells of a write; which node it was is left out.
fn write(line: &str) -> Option<String> {
    let (_, write) = line.split_once(" ms  write ")?;
    let words = write.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !word.starts_with("node-")).collect();
    Some(words.join(" "))
}
