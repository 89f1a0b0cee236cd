//! Server-side apply, rule by rule.

mod cases;
mod laws;
mod ownership;
mod random;
mod rules;

use serde_json::{Value, json};

use super::{Apply, ApplyError, Sole, Track, apply, check_configuration, track};
use crate::schema::Schema;

const NOON: &str = "2026-01-01T12:00:00Z";
const LATER: &str = "2026-01-01T13:00:00Z";

/// A Deployment and the requests made on it.
struct Deployment {
    schema: Schema,
    live: Option<Value>,
    now: &'static str,
}

impl Deployment {
    fn new() -> Self {
        let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
        Self { schema, live: None, now: NOON }
    }

    fn request<'a>(&'a self, manager: &'a str, applied: &'a Value) -> Apply<'a> {
        Apply {
            live: self.live.as_ref(),
            applied,
            manager,
            force: false,
            subresource: "",
            api_version: "apps/v1",
            now: self.now,
            schema: &self.schema,
            versions: &Sole,
            resets: &[],
        }
    }

    fn try_apply(&mut self, manager: &str, spec: Value) -> Result<(), ApplyError> {
        let applied = deployment(spec);
        check_configuration(&self.schema, "apps/v1", &applied)?;
        self.live = Some(apply(self.request(manager, &applied))?);
        Ok(())
    }

    fn apply(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, spec).unwrap();
    }

    fn force(&mut self, manager: &str, spec: Value) {
        let applied = deployment(spec);
        let request = Apply { force: true, ..self.request(manager, &applied) };
        self.live = Some(apply(request).unwrap());
    }

    /// Replaces the object, as a client that does not know managedFields would.
    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        let mut new = self.live.clone().unwrap_or_else(|| deployment(json!({})));
        change(&mut new);
        let live = self.live.take();
        track(Track {
            live: live.as_ref(),
            new: &mut new,
            manager,
            subresource: "",
            api_version: "apps/v1",
            now: self.now,
            schema: &self.schema,
            versions: &Sole,
            resets: &[],
        });
        self.live = Some(new);
    }

    fn live(&self) -> &Value {
        self.live.as_ref().unwrap()
    }

    fn spec(&self) -> Value {
        self.live()["spec"].clone()
    }

    fn managed_fields(&self) -> &Value {
        &self.live()["metadata"]["managedFields"]
    }

    /// What a manager owns, as FieldsV1 below `f:spec`; null if nothing.
    fn owned(&self, manager: &str) -> Value {
        let entries = self.managed_fields().as_array().cloned().unwrap_or_default();
        let entry = entries.into_iter().find(|entry| entry["manager"] == manager);
        entry.map_or(Value::Null, |entry| entry["fieldsV1"]["f:spec"].clone())
    }

    fn managers(&self) -> Vec<String> {
        let entries = self.managed_fields().as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect()
    }
}

fn deployment(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
    });
    object["spec"] = spec;
    object
}

/// A spec whose template has these containers.
fn containers(containers: Value) -> Value {
    let mut spec = json!({});
    spec["template"]["spec"]["containers"] = containers;
    spec
}
