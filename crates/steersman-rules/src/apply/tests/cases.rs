//! The cases of `cases.yaml`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::apply::fieldset::FieldSet;
use crate::apply::{Apply, ApplyError, Sole, Track, apply, check_configuration};
use crate::apply::{conflict_message, track};
use crate::schema::Schema;

/// An object and what it is.
struct World {
    schema: Schema,
    then_schema: Schema,
    api_version: &'static str,
    kind: &'static str,
    live: Option<Value>,
}

impl World {
    fn new(case: &Value) -> Self {
        let custom = |field: &str| {
            let schema = json!({"type": "object", "properties": {"spec": case[field]}});
            Schema::structural(&schema)
        };
        let builtin = Schema::builtin("apps", "v1", "Deployment").unwrap();
        let api_version = "apps/v1";
        let kind = "Deployment";
        if case["schema"].is_null() {
            return Self {
                schema: builtin.clone(),
                then_schema: builtin,
                api_version,
                kind,
                live: None,
            };
        }
        let schema = custom("schema");
        let then_schema = custom("then_schema");
        Self { schema, then_schema, api_version: "example.com/v1", kind: "Thing", live: None }
    }

    fn object(&self, spec: &Value) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"name": "web", "namespace": "default"}, "spec": spec,
        })
    }

    fn send(&mut self, step: &Value) -> Result<(), ApplyError> {
        let manager = step["by"].as_str().unwrap();
        let schema = if step["then"] == true { &self.then_schema } else { &self.schema };
        let api_version = self.api_version;
        let now = super::NOON;
        if let Some(spec) = step.get("update") {
            let mut new = self.object(spec);
            let live = self.live.as_ref();
            let subresource = "";
            let new_ref = &mut new;
            track(Track {
                live,
                new: new_ref,
                manager,
                subresource,
                api_version,
                now,
                schema,
                versions: &Sole,
                resets: &[],
            });
            self.live = Some(new);
            return Ok(());
        }
        let applied = self.object(&step["apply"]);
        check_configuration(schema, api_version, &applied)?;
        self.live = Some(apply(Apply {
            live: self.live.as_ref(),
            applied: &applied,
            manager,
            force: step["force"] == true,
            subresource: "",
            api_version,
            now,
            schema,
            versions: &Sole,
            resets: &[],
        })?);
        Ok(())
    }

    /// Who owns what, as the cases write it.
    fn owners(&self) -> BTreeMap<String, Vec<String>> {
        let entries = self.live.as_ref().unwrap()["metadata"]["managedFields"].as_array();
        let entries = entries.into_iter().flatten().map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap();
            let paths = FieldSet::decode(&entry["fieldsV1"]).unwrap().paths();
            let paths = paths.iter().map(|path| path.iter().map(ToString::to_string).collect());
            (format!("{} {}", text("operation"), text("manager")), paths.collect())
        });
        entries.collect()
    }
}

#[test]
fn every_case_ends_as_it_says() {
    let cases: Vec<Value> = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        let rule = case["rule"].as_str().unwrap();
        let mut world = World::new(&case);
        for step in case["steps"].as_array().unwrap() {
            let before = world.live.clone();
            let found = world.send(step).map_err(|error| match error {
                ApplyError::Conflict(conflicts) => conflict_message(&conflicts).0,
                error => error.to_string(),
            });
            let expected = step["fails"].as_str().map_or(Ok(()), |text| Err(text.to_owned()));
            assert_eq!(found, expected, "{rule}: {step}");
            if found.is_err() {
                assert_eq!(world.live, before, "{rule}: a refusal changes nothing");
            }
        }
        if let Some(spec) = case.get("spec") {
            assert_eq!(&world.live.as_ref().unwrap()["spec"], spec, "{rule}");
        }
        if let Some(owners) = case.get("owners") {
            assert_eq!(&json!(world.owners()), owners, "{rule}");
        }
    }
}
