//! What extends the API: definitions and their objects, admission policies, APIServices, and the
//! expressions in all of them. What is sent is mostly in tables of text; see the head of each.

mod api_services;
mod definitions;
mod expressions;
mod lives;
mod objects;
mod policies;
mod ratcheting;
mod table;

use serde_json::{Value, json};

use crate::step::{Role, Scenario, Step, Tidy};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut scenarios = definitions::scenarios(run);
    scenarios.extend(objects::scenarios(run));
    scenarios.extend(lives::scenarios(run));
    scenarios.push(ratcheting::scenario(run));
    scenarios.extend(expressions::scenarios(run));
    scenarios.extend(policies::scenarios(run));
    scenarios.extend(api_services::scenarios(run));
    scenarios
}

/// A group of definitions that no other scenario has, and what belongs to it.
struct Group {
    name: String,
    /// The value of the label of its definitions.
    mark: String,
}

impl Group {
    fn new(run: &str, part: &str) -> Self {
        Self { name: format!("{part}-{run}.example.com"), mark: format!("{run}-{part}") }
    }

    /// A scenario that takes the definitions of the group away afterwards.
    fn scenario(&self, name: impl Into<String>) -> Scenario {
        let collections = vec![format!("{DEFINITIONS}?labelSelector=compare%3D{}", self.mark)];
        Scenario::new(name, Tidy { namespace: None, collections })
    }

    /// The path of one of its definitions.
    fn path(&self, plural: &str) -> String {
        format!("{DEFINITIONS}/{plural}.{}", self.name)
    }

    /// A definition of things, in one version with this schema.
    fn definition(&self, schema: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things.{}", self.name), "labels": {"compare": self.mark}},
            "spec": {
                "group": self.name, "scope": "Cluster",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}}],
            },
        })
    }

    /// The path of the collection of things.
    fn things(&self) -> String {
        format!("/apis/{}/v1/things", self.name)
    }

    fn thing(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.name), "kind": "Thing",
            "metadata": {"name": name}, "spec": spec})
    }

    /// Makes the definition and waits until things are served.
    fn define(&self, schema: &Value, scenario: &mut Scenario) {
        let definition = self.definition(schema);
        scenario.add(Step::post("definition", DEFINITIONS, definition).role(Role::Needed));
        scenario.add(Step::get("served", &self.things()).role(Role::Await));
    }
}

/// A schema whose field `spec` has this one.
fn with_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}
