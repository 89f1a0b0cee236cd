//! Admission policies and their bindings: what is taken, and what they then do to ConfigMaps.

use serde_json::{Value, json};

use super::table::{self, patched};
use crate::step::{Role, Scenario, Step, Tidy};

const TABLE: &str = include_str!("policies.txt");
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
pub(super) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> =
        ["validating", "mutating", "binding", "mutating-binding"].map(|word| dry(run, word)).into();
    scenarios.extend([Flavour::DENY, Flavour::MUTATE].map(|flavour| flavour.scenario(run)));
    scenarios
}

/// The objects of one word of the table, as dry runs.
fn dry(run: &str, wanted: &'static str) -> Scenario {
    let mut scenario = Scenario::new(format!("policies/{wanted}"), Tidy::default());
    for (word, rest) in table::lines(TABLE).filter(|(word, _)| *word == wanted) {
        let (id, documents) = table::named(rest);
        let name = format!("cmp-{run}-{id}");
        let (collection, object) = match word {
            "validating" => ("validatingadmissionpolicies", validating(&name, run)),
            "mutating" => ("mutatingadmissionpolicies", mutating(&name, run)),
            "binding" => ("validatingadmissionpolicybindings", binding(&Flavour::DENY, &name, run)),
            _ => ("mutatingadmissionpolicybindings", binding(&Flavour::MUTATE, &name, run)),
        };
        let patch = documents.first().cloned().unwrap_or_default();
        let path = format!("{GROUP}/{collection}");
        scenario.add(Step::post(id, &path, patched(&object, &patch)).dry());
    }
    scenario
}

fn object(kind: &str, name: &str, mark: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "labels": {"compare": mark}}, "spec": spec})
}

fn match_constraints() -> Value {
    json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]})
}

/// A sound policy that validates.
pub(super) fn validating(name: &str, mark: &str) -> Value {
    let spec = json!({"matchConstraints": match_constraints(),
        "validations": [{"expression": "true"}]});
    object("ValidatingAdmissionPolicy", name, mark, &spec)
}

fn mutating(name: &str, mark: &str) -> Value {
    let mutation = json!({"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{}"}});
    let spec = json!({"matchConstraints": match_constraints(), "reinvocationPolicy": "Never",
        "mutations": [mutation]});
    object("MutatingAdmissionPolicy", name, mark, &spec)
}

fn binding(flavour: &Flavour, name: &str, mark: &str) -> Value {
    let mut spec = json!({"policyName": name});
    if flavour.word == "deny" {
        spec["validationActions"] = json!(["Deny"]);
    }
    object(flavour.binding, name, mark, &spec)
}

/// Policies that validate, or those that mutate.
struct Flavour {
    /// The word of the table.
    word: &'static str,
    policy: fn(&str, &str) -> Value,
    /// The kind of the bindings.
    binding: &'static str,
    /// The two collections.
    collections: [&'static str; 2],
    /// A spec with which everything is refused, and a word of the refusal.
    marker: (&'static str, &'static str),
}

impl Flavour {
    const DENY: Self = Self {
        word: "deny",
        policy: validating,
        binding: "ValidatingAdmissionPolicyBinding",
        collections: ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        marker: (
            r#"{"validations": [{"expression": "false", "message": "it counts"}]}"#,
            "it counts",
        ),
    };
    const MUTATE: Self = Self {
        word: "mutate",
        policy: mutating,
        binding: "MutatingAdmissionPolicyBinding",
        collections: ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
        marker: (
            r#"{"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration":
                {"expression": "Object{data: Object.data{x: object.data.counts}}"}}]}"#,
            "counts",
        ),
    };

    /// Makes every policy of the table, waits until the last counts, and asks each.
    fn scenario(&self, run: &str) -> Scenario {
        let mark = format!("{run}-{}", self.word);
        let namespace = format!("cmp-{mark}");
        let ours = |collection| format!("{GROUP}/{collection}?labelSelector=compare%3D{mark}");
        let tidy = Tidy {
            namespace: Some(namespace.clone()),
            collections: self.collections.into_iter().rev().map(ours).collect(),
        };
        let mut scenario = Scenario::new(format!("policies/{}", self.word), tidy);
        prepare(&namespace, &mut scenario);
        let cases: Vec<(&str, Vec<Value>)> = table::lines(TABLE)
            .filter(|(word, _)| *word == self.word)
            .map(|(_, rest)| table::named(rest))
            .collect();
        for (id, documents) in &cases {
            self.make(&mark, id, &documents[..], &mut scenario);
        }
        let (marker, text) = self.marker;
        self.make(&mark, "marker", &table::documents(marker), &mut scenario);
        let role = Role::AwaitText(text);
        scenario.add(asked(&namespace, &mark, "marker", &Value::Null).role(role));
        for (id, documents) in &cases {
            let patch = documents.get(2).unwrap_or(&Value::Null);
            scenario.add(asked(&namespace, &mark, id, patch));
        }
        scenario
    }

    /// A policy that is about one case alone, and its binding.
    fn make(&self, mark: &str, id: &str, documents: &[Value], scenario: &mut Scenario) {
        let name = format!("cmp-{mark}-{id}");
        let here = json!({"matchLabels": {"kubernetes.io/metadata.name": format!("cmp-{mark}")}});
        let about = json!({"spec": {"matchConstraints": {"namespaceSelector": here,
            "objectSelector": {"matchLabels": {"case": id}}}}});
        let specs = [(self.policy)(&name, mark), binding(self, &name, mark)];
        for (index, object) in specs.into_iter().enumerate() {
            let object = if index == 0 { patched(&object, &about) } else { object };
            let patch = json!({"spec": documents.get(index).unwrap_or(&json!({}))});
            let part = ["policy", "binding"][index];
            let path = format!("{GROUP}/{}", self.collections[index]);
            let step = Step::post(format!("{id} {part}"), &path, patched(&object, &patch));
            scenario.add(step);
        }
    }
}

/// The namespace, and what policies take their parameters from.
fn prepare(namespace: &str, scenario: &mut Scenario) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    scenario.add(Step::post("namespace", "/api/v1/namespaces", body).role(Role::Setup));
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "params", "labels": {"params": "yes"}}, "data": {"p": "b"}});
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    scenario.add(Step::post("given-params", &path, params).role(Role::Setup));
}

/// A ConfigMap that one policy is about.
fn asked(namespace: &str, mark: &str, id: &str, patch: &Value) -> Step {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {"case": id, "compare": mark}}, "data": {"k": "v"}});
    let map = if patch.is_null() { map } else { patched(&map, patch) };
    Step::post(id, &format!("/api/v1/namespaces/{namespace}/configmaps"), map).dry()
}
