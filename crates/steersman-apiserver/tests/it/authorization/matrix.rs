//! Decisions beside those of a plain evaluator that looks at every rule of every binding.

use serde_json::{Value, json};

use super::RBAC;
use super::evaluator::World;
use crate::api::Api;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn some<'a>(&mut self, of: &[&'a str]) -> Vec<&'a str> {
        let count = 1 + self.below(2);
        (0..count).map(|_| self.one(of)).collect()
    }
}

const VERBS: [&str; 4] = ["get", "list", "delete", "*"];
const GROUPS: [&str; 3] = ["", "apps", "*"];
const RESOURCES: [&str; 7] =
    ["pods", "pods/log", "secrets", "deployments", "*/log", "*/scale", "*"];
const NAMES: [&str; 3] = ["a", "b", "c"];
const URLS: [&str; 5] = ["/metrics", "/logs/*", "/logs/a", "*", "/"];
const NAMESPACES: [&str; 3] = ["", "default", "kube-public"];
const USERS: [&str; 3] = ["jane", "bob", "system:serviceaccount:default:sa"];
const TEAMS: [&str; 2] = ["dev", "ops"];
const ROLES: [&str; 3] = ["r0", "r1", "r2"];

fn some_rule(dice: &mut Dice, in_cluster: bool) -> Value {
    if in_cluster && dice.below(4) == 0 {
        return json!({"verbs": dice.some(&VERBS), "nonResourceURLs": dice.some(&URLS)});
    }
    let mut rule = json!({
        "verbs": dice.some(&VERBS), "apiGroups": dice.some(&GROUPS), "resources": dice.some(&RESOURCES),
    });
    if dice.below(3) == 0 {
        rule["resourceNames"] = json!(dice.some(&NAMES));
    }
    rule
}

fn some_subject(dice: &mut Dice) -> Value {
    let group = "rbac.authorization.k8s.io";
    match dice.below(4) {
        0 => json!({"kind": "Group", "apiGroup": group, "name": dice.one(&TEAMS)}),
        1 => {
            json!({"kind": "ServiceAccount", "name": "sa", "namespace": dice.one(&["default", "kube-public"])})
        }
        _ => json!({"kind": "User", "apiGroup": group, "name": dice.one(&["jane", "bob"])}),
    }
}

fn folder(namespace: &str, local: &str, everywhere: &str) -> String {
    match namespace {
        "" => format!("{RBAC}/{everywhere}"),
        namespace => format!("{RBAC}/namespaces/{namespace}/{local}"),
    }
}

impl World {
    /// Writes, rewrites or deletes something.
    async fn change(&mut self, api: &Api, dice: &mut Dice) {
        let namespace = dice.one(&NAMESPACES);
        if dice.below(2) == 0 {
            let name = dice.one(&ROLES);
            let path = folder(namespace, "roles", "clusterroles");
            let rules: Vec<Value> =
                (0..1 + dice.below(3)).map(|_| some_rule(dice, namespace.is_empty())).collect();
            let object =
                json!({"metadata": {"name": name, "namespace": namespace}, "rules": rules});
            write(api, &mut self.roles, &path, name, object, dice.below(4) == 0).await;
        } else {
            let name = dice.one(&["b0", "b1", "b2"]);
            let path = folder(namespace, "rolebindings", "clusterrolebindings");
            let kind = if namespace.is_empty() {
                "ClusterRole"
            } else {
                dice.one(&["Role", "ClusterRole"])
            };
            let subjects: Vec<Value> = (0..1 + dice.below(2)).map(|_| some_subject(dice)).collect();
            let object = json!({
                "metadata": {"name": name, "namespace": namespace}, "subjects": subjects,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": dice.one(&ROLES)},
            });
            // A binding stays with its role, so another one is another binding.
            let _ = api.delete(&format!("{path}/{name}")).await;
            self.bindings.retain(|(known, _)| *known != format!("{path}/{name}"));
            write(api, &mut self.bindings, &path, name, object, dice.below(4) == 0).await;
        }
    }
}

async fn write(
    api: &Api,
    known: &mut Vec<(String, Value)>,
    folder: &str,
    name: &str,
    object: Value,
    goes: bool,
) {
    let path = format!("{folder}/{name}");
    known.retain(|(other, _)| *other != path);
    if goes {
        let _ = api.delete(&path).await;
        return;
    }
    let mut body = object.clone();
    if object["metadata"]["namespace"] == "" {
        body["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    api.put(&path, &body).await.ok();
    known.push((path, object));
}

#[tokio::test(start_paused = true)]
async fn decisions_are_those_of_a_plain_evaluator_whatever_is_written() {
    for seed in 0..8 {
        let api = Api::start().await;
        let mut dice = Dice(seed);
        let mut world = World::default();
        let mut allowed = 0;
        for _ in 0..60 {
            world.change(&api, &mut dice).await;
            for _ in 0..40 {
                let asked = question(&mut dice);
                let answer = api
                    .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review(&asked))
                    .await
                    .ok();
                let expected = world.allows(&asked);
                allowed += usize::from(expected);
                assert_eq!(answer["status"]["allowed"], expected, "seed {seed}: {asked} {answer}");
            }
        }
        assert!(allowed > 100, "seed {seed} asks for too little that is allowed: {allowed}");
    }
}

fn question(dice: &mut Dice) -> Value {
    let path = if dice.below(5) == 0 {
        dice.one(&["/", "/metrics", "/logs", "/logs/a", "/logs/b"])
    } else {
        ""
    };
    let namespace = if path.is_empty() { dice.one(&NAMESPACES) } else { "" };
    let mut groups = dice.some(&TEAMS);
    groups.dedup();
    json!({
        "user": dice.one(&USERS), "groups": groups,
        "verb": dice.one(&["get", "list", "delete", "watch"]), "path": path,
        "group": dice.one(&["", "apps", "batch"]), "resource": dice.one(&["pods", "secrets", "deployments"]),
        "subresource": dice.one(&["", "", "log", "scale"]), "namespace": namespace,
        "name": dice.one(&["", "a", "b", "d"]),
    })
}

fn review(asked: &Value) -> Value {
    let mut spec = json!({"user": asked["user"], "groups": asked["groups"]});
    if asked["path"] == "" {
        let mut attributes = asked.clone();
        for field in ["user", "groups", "path"] {
            attributes.as_object_mut().unwrap().remove(field);
        }
        spec["resourceAttributes"] = attributes;
    } else {
        spec["nonResourceAttributes"] = json!({"verb": asked["verb"], "path": asked["path"]});
    }
    json!({"spec": spec})
}
