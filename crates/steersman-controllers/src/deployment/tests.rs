use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, ReplicaSet, ReplicaSetStatus};
use serde_json::{Value, json};

use super::plan::{Action, Rollout};
use super::rollback::rollback;
use super::rolling::{self, spec_replicas};
use super::status::{self, Progress};
use super::{revision, template};

fn now() -> Timestamp {
    "2030-01-01T12:00:00Z".parse().unwrap()
}

fn deployment(replicas: i32, image: &str, strategy: &Value) -> Deployment {
    let deployment = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "d", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": strategy,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    });
    serde_json::from_value(deployment).unwrap()
}

fn rolling_update(surge: &Value, unavailable: &Value) -> Value {
    json!({"type": "RollingUpdate",
           "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

/// A Deployment and its ReplicaSets, changed by actions as a cluster would.
struct World {
    deployment: Deployment,
    sets: Vec<ReplicaSet>,
    created: i64,
}

impl World {
    fn new(deployment: Deployment) -> Self {
        Self { deployment, sets: Vec::new(), created: 0 }
    }

    fn rollout(&self) -> Rollout {
        let sets = self.sets.iter().cloned().map(Arc::new).collect();
        Rollout::new(Arc::new(self.deployment.clone()), sets)
    }

    /// Plans and acts once; false if there was nothing to do.
    fn step(&mut self) -> bool {
        let rollout = self.rollout();
        let actions = rollout.actions(status::is_complete(&rollout));
        let acted = !actions.is_empty();
        for action in actions {
            self.apply(action);
        }
        acted
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Create(set) => {
                let mut set = *set;
                self.created += 1;
                let created = now() + Duration::from_secs(self.created.unsigned_abs());
                set.metadata.creation_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
                self.sets.push(set);
            }
            Action::Change(change) => {
                let name = change.set.metadata.name.clone();
                let set = self.sets.iter_mut().find(|set| set.metadata.name == name).unwrap();
                set.metadata.annotations.get_or_insert_default().extend(change.annotations);
                if let Some(replicas) = change.replicas {
                    set.spec.as_mut().unwrap().replicas = Some(replicas);
                }
            }
            Action::Delete(gone) => {
                self.sets.retain(|set| set.metadata.name != gone.metadata.name);
            }
        }
    }

    /// Every ReplicaSet has the Pods it asks for, all available.
    fn all_pods_come_up(&mut self) {
        for set in &mut self.sets {
            let replicas = spec_replicas(set);
            set.status = Some(ReplicaSetStatus {
                replicas,
                ready_replicas: Some(replicas),
                available_replicas: Some(replicas),
                ..ReplicaSetStatus::default()
            });
        }
    }

    fn settle(&mut self) {
        for _ in 0..100 {
            let acted = self.step();
            self.all_pods_come_up();
            if !acted {
                return;
            }
        }
        panic!("the rollout does not end");
    }

    fn set_image(&mut self, image: &str) {
        let pod = self.deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.containers[0].image = Some(image.into());
    }

    fn scale(&mut self, replicas: i32) {
        self.deployment.spec.as_mut().unwrap().replicas = Some(replicas);
    }

    /// Image and size of every ReplicaSet that asks for Pods, oldest first.
    fn sizes(&self) -> Vec<(String, i32)> {
        let active = self.sets.iter().filter(|set| spec_replicas(set) > 0);
        active.map(|set| (image(set), spec_replicas(set))).collect()
    }
}

fn image(set: &ReplicaSet) -> String {
    let template = set.spec.as_ref().unwrap().template.as_ref().unwrap();
    template.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
}

#[test]
fn a_new_deployment_gets_one_replicaset_of_its_size() {
    let mut world = World::new(deployment(3, "a", &json!(null)));
    world.settle();
    assert_eq!(world.sizes(), [("a".into(), 3)]);
    let set = &world.sets[0];
    let hash = &set.metadata.labels.as_ref().unwrap()[template::HASH_LABEL];
    assert_eq!(set.metadata.name.as_deref(), Some(format!("web-{hash}").as_str()));
    let spec = set.spec.as_ref().unwrap();
    assert_eq!(&spec.selector.match_labels.as_ref().unwrap()[template::HASH_LABEL], hash);
    assert_eq!(revision::revision_of(set), 1);
    assert_eq!(revision::number(set, revision::DESIRED), Some(3));
    assert_eq!(revision::number(set, revision::MAX), Some(4));
}

#[test]
fn percentages_round_in_favour_of_availability() {
    let table = [
        (10, json!("25%"), json!("25%"), 3, 2),
        (1, json!("25%"), json!("25%"), 1, 0),
        (3, json!(0), json!("25%"), 0, 1), // both zero: one may be missing
        (4, json!(2), json!(0), 2, 0),
        (2, json!("100%"), json!(5), 2, 2),
    ];
    for (replicas, surge, unavailable, max_surge, max_unavailable) in table {
        let case = format!("{replicas} {surge} {unavailable}");
        let deployment = deployment(replicas, "a", &rolling_update(&surge, &unavailable));
        assert_eq!(rolling::max_surge(&deployment), max_surge, "{case}");
        assert_eq!(rolling::max_unavailable(&deployment), max_unavailable, "{case}");
    }
}

#[test]
fn a_rolling_update_never_leaves_its_limits_and_ends_with_the_new_template() {
    for (surge, unavailable) in [(1, 0), (0, 1), (2, 3), (0, 0), (10, 10)] {
        let strategy = rolling_update(&json!(surge), &json!(unavailable));
        let mut world = World::new(deployment(10, "a", &strategy));
        world.settle();
        world.set_image("b");
        let max = 10 + rolling::max_surge(&world.deployment);
        let min = 10 - rolling::max_unavailable(&world.deployment);
        for _ in 0..100 {
            let acted = world.step();
            let asked: i32 = world.sets.iter().map(spec_replicas).sum();
            assert!(asked <= max, "{asked} Pods with surge {surge}");
            // Pods that lost their place are gone, new ones are not there yet.
            let there = |set: &ReplicaSet| rolling::available(set).min(spec_replicas(set));
            let available: i32 = world.sets.iter().map(there).sum();
            assert!(available >= min, "{available} available with unavailable {unavailable}");
            world.all_pods_come_up();
            if !acted {
                break;
            }
        }
        assert_eq!(world.sizes(), [("b".into(), 10)]);
        assert_eq!(revision::revision_of(&world.sets[1]), 2);
    }
}

#[test]
fn replicas_that_are_not_available_are_removed_first() {
    let mut world = World::new(deployment(10, "a", &rolling_update(&json!(3), &json!(2))));
    world.settle();
    world.sets[0].status.as_mut().unwrap().available_replicas = Some(8); // two are broken
    world.set_image("b");
    world.step(); // creates the new ReplicaSet with the surge
    assert_eq!(world.sizes(), [("a".into(), 10), ("b".into(), 3)]);
    world.step();
    assert_eq!(world.sizes(), [("a".into(), 8), ("b".into(), 3)]);
}

#[test]
fn going_back_to_an_old_template_reuses_its_replicaset_under_a_new_revision() {
    let mut world = World::new(deployment(2, "a", &json!(null)));
    world.settle();
    world.set_image("b");
    world.settle();
    world.set_image("a");
    world.settle();
    assert_eq!(world.sets.len(), 2);
    assert_eq!(world.sizes(), [("a".into(), 2)]);
    assert_eq!(revision::revision_of(&world.sets[0]), 3);
    let annotations = world.sets[0].metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn a_history_of_revisions_forgets_its_oldest_when_it_gets_too_long() {
    const HISTORY: &str = "deployment.kubernetes.io/revision-history";
    let full = ["1000"; 400].join(",");
    assert_eq!(full.len(), 1999);
    let table = [
        ("5".to_owned(), "5,1".to_owned()),
        (full[10..].to_owned(), format!("{},1", &full[10..])),
        (full.clone(), format!("{},1", &full[5..])), // 2001 characters otherwise
        ("9".repeat(3000), "1".to_owned()),
    ];
    for (before, after) in table {
        let mut world = World::new(deployment(1, "a", &json!(null)));
        world.settle();
        let annotations = world.sets[0].metadata.annotations.as_mut().unwrap();
        annotations.insert(HISTORY.into(), before);
        for image in ["b", "a"] {
            world.set_image(image);
            world.settle();
        }
        assert_eq!(world.sets[0].metadata.annotations.as_ref().unwrap()[HISTORY], after);
    }
}

#[test]
fn a_replicaset_of_a_long_name_has_room_for_its_hash() {
    for length in [10, 200, 253] {
        let mut deployment = deployment(1, "a", &json!(null));
        deployment.metadata.name = Some("d".repeat(length));
        let set = template::new_set(&deployment, 1, BTreeMap::new());
        let hash = &set.metadata.labels.as_ref().unwrap()[template::HASH_LABEL];
        let kept = "d".repeat(length.min(253 - 1 - hash.len()));
        assert_eq!(set.metadata.name, Some(format!("{kept}-{hash}")));
    }
}

#[test]
fn an_annotation_takes_a_deployment_back_to_an_earlier_template() {
    let mut world = World::new(deployment(3, "nginx:1", &json!({})));
    world.settle();
    for image in ["nginx:2", "nginx:3"] {
        world.set_image(image);
        world.settle();
    }
    let not_found = "DeploymentRollbackRevisionNotFound";
    let unchanged =
        "The rollback revision contains the same template as current deployment \"web\"";
    for (to, image, reason, note) in [
        ("0", "nginx:2", "DeploymentRollback", "Rolled back deployment \"web\" to revision 2"),
        ("1", "nginx:1", "DeploymentRollback", "Rolled back deployment \"web\" to revision 1"),
        ("3", "nginx:3", "DeploymentRollbackTemplateUnchanged", unchanged),
        ("9", "nginx:3", not_found, "Unable to find the revision to rollback to."),
    ] {
        let annotations = world.deployment.metadata.annotations.get_or_insert_default();
        annotations.insert("deprecated.deployment.rollback.to".into(), to.into());
        annotations.insert("kubernetes.io/change-cause".into(), "mistake".into());
        let back = rollback(&world.rollout()).unwrap();
        let spec = back.deployment.spec.unwrap();
        assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some(image), "{to}");
        assert_eq!(spec.template.metadata.unwrap().labels.unwrap().len(), 1, "without the hash");
        assert_eq!(back.told, (reason, note.to_owned()));
        assert_eq!(back.done, reason == "DeploymentRollback");
        let annotations = back.deployment.metadata.annotations.unwrap();
        assert!(!annotations.contains_key("deprecated.deployment.rollback.to"));
        assert_eq!(annotations.contains_key("kubernetes.io/change-cause"), !back.done, "{to}");
    }
    world.deployment.spec.as_mut().unwrap().paused = Some(true);
    assert!(rollback(&world.rollout()).is_none(), "a paused one waits");
    let mut first = World::new(deployment(1, "nginx:1", &json!({})));
    first.settle();
    let to = [("deprecated.deployment.rollback.to".to_owned(), "0".to_owned())];
    first.deployment.metadata.annotations = Some(to.into());
    let told = rollback(&first.rollout()).unwrap().told;
    assert_eq!(told, (not_found, "Unable to find last revision.".to_owned()));
}

#[test]
fn recreate_waits_until_no_old_pod_is_left() {
    let mut world = World::new(deployment(3, "a", &json!({"type": "Recreate"})));
    world.settle();
    world.set_image("b");
    world.step();
    assert_eq!(world.sizes(), []);
    let status = world.sets[0].status.as_mut().unwrap();
    status.replicas = 0;
    status.terminating_replicas = Some(3);
    assert!(!world.step(), "old Pods are still terminating");
    world.all_pods_come_up();
    world.settle();
    assert_eq!(world.sizes(), [("b".into(), 3)]);
}

#[test]
fn scaling_reaches_the_only_active_replicaset() {
    let mut world = World::new(deployment(3, "a", &json!(null)));
    world.settle();
    for replicas in [7, 2, 0, 4] {
        world.scale(replicas);
        world.settle();
        assert_eq!(world.sets.iter().map(spec_replicas).sum::<i32>(), replicas);
        assert_eq!(revision::number(&world.sets[0], revision::DESIRED), Some(replicas));
    }
}

#[test]
fn scaling_in_the_middle_of_a_rollout_is_proportional() {
    let mut world = World::new(deployment(10, "a", &rolling_update(&json!(3), &json!(2))));
    world.settle();
    world.set_image("b");
    world.step();
    world.step(); // a: 8, b: 3 …
    world.step(); // … and b grows into the room: 5
    assert_eq!(world.sizes(), [("a".into(), 8), ("b".into(), 5)]);
    world.scale(30);
    world.step(); // at most 33 Pods instead of 13
    assert_eq!(world.sizes(), [("a".into(), 20), ("b".into(), 13)]);
}

#[test]
fn pods_that_are_about_to_go_are_not_counted_on() {
    let mut world = World::new(deployment(10, "a", &rolling_update(&json!(3), &json!(2))));
    world.settle();
    world.set_image("b");
    world.step();
    world.step();
    world.step();
    assert_eq!(world.sizes(), [("a".into(), 8), ("b".into(), 5)]); // nothing of b comes up
    world.sets[0].status.as_mut().unwrap().available_replicas = Some(8);
    world.scale(5);
    world.step();
    let old = spec_replicas(&world.sets[0]);
    assert!((3..8).contains(&old), "{old}");
    assert_eq!(rolling::available(&world.sets[0]), 8, "its status is late");
    while world.step() {
        assert_eq!(
            spec_replicas(&world.sets[0]),
            old,
            "it may not have a Pod more than it asks for"
        );
    }
    world.sets[0].status.as_mut().unwrap().available_replicas = Some(old);
    while world.step() {}
    assert_eq!(spec_replicas(&world.sets[0]), 3, "five, of which two may be missing");
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut world = World::new(deployment(2, "a", &json!(null)));
    world.settle();
    world.deployment.spec.as_mut().unwrap().paused = Some(true);
    world.set_image("b");
    world.scale(5);
    world.settle();
    assert_eq!(world.sizes(), [("a".into(), 5)]);
    world.deployment.spec.as_mut().unwrap().paused = None;
    world.settle();
    assert_eq!(world.sizes(), [("b".into(), 5)]);
}

#[test]
fn only_as_much_history_is_kept_as_asked_for() {
    let mut world = World::new(deployment(1, "v0", &json!(null)));
    world.deployment.spec.as_mut().unwrap().revision_history_limit = Some(2);
    world.settle();
    for version in 1..6 {
        world.set_image(&format!("v{version}"));
        world.settle();
    }
    let images: Vec<_> = world.sets.iter().map(image).collect();
    assert_eq!(images, ["v3", "v4", "v5"]);
}

#[test]
fn the_hash_depends_on_the_template_and_on_collisions_only() {
    let a = deployment(1, "a", &json!(null)).spec.unwrap().template;
    let b = deployment(9, "b", &json!(null)).spec.unwrap().template;
    assert_eq!(crate::hash::of_template(&a, None), crate::hash::of_template(&a.clone(), None));
    assert_ne!(crate::hash::of_template(&a, None), crate::hash::of_template(&b, None));
    assert_ne!(crate::hash::of_template(&a, None), crate::hash::of_template(&a, Some(1)));
}

fn condition(world: &World, type_: &str) -> DeploymentCondition {
    let status = world.deployment.status.as_ref().unwrap();
    let conditions = status.conditions.as_ref().unwrap();
    conditions.iter().find(|condition| condition.type_ == type_).unwrap().clone()
}

fn report(world: &mut World, progress: &Progress, at: Timestamp) -> Option<Duration> {
    let report = status::report(&world.rollout(), progress, at);
    world.deployment.status = Some(report.status);
    report.deadline_in
}

#[test]
fn conditions_follow_a_rollout_from_creation_to_availability() {
    let mut world = World::new(deployment(2, "a", &json!(null)));
    world.step();
    report(&mut world, &Progress::Created("web-x".into()), now());
    assert_eq!(condition(&world, "Progressing").reason.as_deref(), Some("NewReplicaSetCreated"));
    assert_eq!(condition(&world, "Available").status, "False");
    world.all_pods_come_up();
    let later = now() + Duration::from_secs(5);
    report(&mut world, &Progress::None, later);
    let progressing = condition(&world, "Progressing");
    assert_eq!(progressing.reason.as_deref(), Some("NewReplicaSetAvailable"));
    assert_eq!(progressing.last_transition_time.unwrap().0, now());
    assert_eq!(progressing.last_update_time.unwrap().0, later);
    assert_eq!(condition(&world, "Available").status, "True");
    let status = world.deployment.status.as_ref().unwrap();
    assert_eq!((status.updated_replicas, status.unavailable_replicas), (Some(2), None));
}

#[test]
fn conditions_stand_in_the_order_in_which_they_came_and_a_failure_has_its_own_times() {
    let types = |world: &World| -> Vec<String> {
        let status = world.deployment.status.as_ref().unwrap();
        status.conditions.iter().flatten().map(|condition| condition.type_.clone()).collect()
    };
    let mut world = World::new(deployment(2, "a", &json!(null)));
    world.step();
    report(&mut world, &Progress::Created("web-x".into()), now());
    assert_eq!(types(&world), ["Progressing", "Available"]);
    let failing = json!({"replicas": 0, "conditions": [{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota",
        "lastTransitionTime": "2030-01-01T11:00:00Z",
    }]});
    world.sets[0].status = Some(serde_json::from_value(failing).unwrap());
    report(&mut world, &Progress::None, now());
    assert_eq!(types(&world), ["Progressing", "Available", "ReplicaFailure"]);
    let failure = condition(&world, "ReplicaFailure");
    assert_eq!(failure.last_transition_time, failure.last_update_time);
    assert_eq!(failure.last_update_time.unwrap().0.to_string(), "2030-01-01T11:00:00Z");
    assert_eq!(failure.message.as_deref(), Some("quota"));
    world.all_pods_come_up();
    report(&mut world, &Progress::None, now());
    assert_eq!(types(&world), ["Available", "Progressing"]);
}

#[test]
fn a_rollout_that_stands_still_exceeds_its_deadline() {
    let mut world = World::new(deployment(2, "a", &json!(null)));
    world.deployment.spec.as_mut().unwrap().progress_deadline_seconds = Some(60);
    world.step();
    let due = report(&mut world, &Progress::Created("web-x".into()), now());
    assert_eq!(due, Some(Duration::from_secs(61)));
    let due = report(&mut world, &Progress::None, now() + Duration::from_secs(61));
    assert_eq!(due, None);
    let progressing = condition(&world, "Progressing");
    assert_eq!(progressing.status, "False");
    assert_eq!(progressing.reason.as_deref(), Some("ProgressDeadlineExceeded"));
    world.all_pods_come_up();
    report(&mut world, &Progress::None, now() + Duration::from_secs(90));
    assert_eq!(condition(&world, "Progressing").reason.as_deref(), Some("NewReplicaSetAvailable"));
}

#[test]
fn a_replica_set_that_is_refused_is_a_condition() {
    let mut world = World::new(deployment(2, "a", &json!(null)));
    let message = "Failed to create new replica set \"web-x\": quota";
    let due = report(&mut world, &Progress::Refused(message.into()), now());
    assert_eq!(due, None);
    let progressing = condition(&world, "Progressing");
    assert_eq!(progressing.status, "False");
    assert_eq!(progressing.reason.as_deref(), Some("ReplicaSetCreateError"));
    assert_eq!(progressing.message.as_deref(), Some(message));
}

#[test]
fn the_largest_numbers_there_are_overflow_nothing() {
    let most = json!(i32::MAX);
    for surge in [most.clone(), json!(format!("{}%", i64::MAX))] {
        let mut world = World::new(deployment(3, "a", &rolling_update(&surge, &json!(0))));
        world.settle();
        let limits = revision::size_annotations(&world.deployment);
        assert_eq!(limits[revision::MAX], i32::MAX.to_string());
        world.deployment = deployment(i32::MAX, "b", &rolling_update(&surge, &most));
        world.settle();
        world.deployment = deployment(1, "c", &rolling_update(&surge, &most));
        world.settle();
        assert_eq!(rolling::total(world.rollout().all()), 1);
    }
}

#[test]
fn the_last_revision_there_is_stays_the_last() {
    let mut world = World::new(deployment(1, "a", &json!(null)));
    world.settle();
    let annotations = world.sets[0].metadata.annotations.as_mut().unwrap();
    annotations.insert(revision::REVISION.into(), i64::MAX.to_string());
    world.deployment = deployment(1, "b", &json!(null));
    world.settle();
    assert_eq!(revision::revision_of(&world.sets[1]), i64::MAX);
}
