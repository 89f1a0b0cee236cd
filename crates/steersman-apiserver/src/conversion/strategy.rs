//! What a definition says about its versions: who converts between them, and what each of them
//! knows.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_rules::resource::Resource;
use steersman_rules::schema::{DefaultsTooLarge, Schema};
use steersman_rules::versions;
use steersman_store::Revision;

use crate::document::{Growth, Stored, encode, items};
use crate::status::{Result, Status};
use crate::webhook_client::Converter;

/// How the objects of a definition read in its versions. Its resources carry it, so that whoever
/// began to read by a definition ends by the same.
#[derive(Debug)]
pub(crate) struct Strategy {
    /// Every `apiVersion` that the definition has, served or not.
    versions: Vec<String>,
    /// Who converts; nobody where only `apiVersion` changes.
    webhook: Option<Arc<Converter>>,
    /// What the versions know that are served or stored, by `apiVersion`; nothing where nothing but
    /// `apiVersion` differs between them, which is so in nearly all definitions. What lies in one that
    /// is neither stays as that version knew it when it was written.
    schemas: HashMap<String, Schema>,
}

impl Strategy {
    /// The strategy of a definition that was written at a revision.
    pub(crate) fn of_definition<'a>(
        definition: &Value,
        resources: impl Iterator<Item = &'a Resource>,
        revision: Revision,
    ) -> Self {
        let spec = &definition["spec"];
        let group = spec["group"].as_str().unwrap_or_default();
        let names = items(&spec["versions"]).iter().filter_map(|version| version["name"].as_str());
        let versions = names.map(|name| format!("{group}/{name}")).collect();
        let webhook = Converter::of(definition);
        if webhook.is_none() && !differs(items(&spec["versions"])) {
            return Self { versions, webhook, schemas: HashMap::new() };
        }
        let schema = |resource: &Resource| {
            (resource.api_version(), resource.schema.clone().since(revision.0))
        };
        Self { versions, webhook, schemas: resources.map(schema).collect() }
    }

    /// The strategy that a resource carries, if it takes more than to change `apiVersion`.
    pub(super) fn of(resource: &Resource) -> Option<&Self> {
        let strategy = Self::carried(resource)?;
        (strategy.webhook.is_some() || !strategy.schemas.is_empty()).then_some(strategy)
    }

    fn carried(resource: &Resource) -> Option<&Self> {
        resource.converter.as_ref()?.get()
    }

    /// Refuses to read what lies in a version that the definition has no more, as
    /// [`ConvertToVersion`](https://github.com/kubernetes/apiextensions-apiserver/blob/v0.36.4/pkg/apiserver/conversion/converter.go)
    /// does. It goes when the definition goes, for the server itself deletes it unread.
    pub(super) fn check(resource: &Resource, stored: &[u8]) -> Result<()> {
        let Some(strategy) = Self::carried(resource) else { return Ok(()) };
        let version = versions::spoken(stored).unwrap_or_default();
        match strategy.versions.iter().any(|known| known == version) {
            true => Ok(()),
            false => Err(Status::failure(format!(
                "request to convert CR from an invalid group/version: {version}"
            ))),
        }
    }

    pub(super) fn webhook(&self) -> Option<&Converter> {
        self.webhook.as_deref()
    }

    /// A stored object as the version in which it is stored has it now.
    pub(super) fn refreshed(&self, stored: Stored, growth: &mut Growth) -> Stored {
        let version = stored.api_version();
        match version.and_then(|version| self.schemas.get(version)) {
            Some(schema) => growth.refreshed(stored, schema),
            None => stored,
        }
    }

    /// A converted object as it is stored in a version. Kubernetes fills in the defaults of that
    /// version whenever the object is read; to do so once, here, reads the same.
    pub(super) fn settle(&self, version: &str, object: &mut Value) -> Result<(), DefaultsTooLarge> {
        let Some(schema) = self.schemas.get(version) else { return Ok(()) };
        schema.prune(object);
        schema.apply_defaults(object)
    }

    /// Whether a stored object is the same after it was read in the version of a resource and
    /// written again, where no webhook is in between.
    pub(super) fn survives(&self, resource: &Resource, stored: &Stored) -> Result<bool> {
        let Some(version) = &resource.stored_as else { return Ok(true) };
        let stored = self.refreshed(stored.clone(), &mut Growth::default());
        let object = stored.decode_as_stored()?;
        let mut written = renamed(resource, object.clone());
        versions::to_api_version(&mut written, version);
        self.settle(version, &mut written)?;
        Ok(written == object)
    }
}

/// Whether versions of a definition do not all know the same.
fn differs(versions: &[Value]) -> bool {
    let mut schemas = versions.iter().map(|version| &version["schema"]["openAPIV3Schema"]);
    let first = schemas.next();
    schemas.any(|schema| Some(schema) != first)
}

/// A stored object in the version of a resource, where no webhook has to be asked for that.
pub(super) fn read(resource: &Resource, stored: &Stored) -> Result<Stored> {
    let object = renamed(resource, stored.decode_as_stored()?);
    Ok(Stored { bytes: encode(&object)?, revision: stored.revision })
}

fn renamed(resource: &Resource, mut object: Value) -> Value {
    versions::to_api_version(&mut object, &resource.api_version());
    prune(&resource.schema, &mut object);
    object
}

/// Takes out of a converted object what its new version does not know, and nulls that mean "not
/// set". Nobody fills in the defaults of that version.
pub(super) fn prune(schema: &Schema, object: &mut Value) {
    schema.prune(object);
    if !has_null(object) {
        return;
    }
    // Who fills in defaults drops such nulls as well: what is gone then says nothing.
    let mut filled = object.clone();
    if schema.apply_defaults(&mut filled).is_ok() {
        drop_nulls(object, &filled);
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

/// Drops the nulls that are not there any more once defaults are filled in.
fn drop_nulls(value: &mut Value, filled: &Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| !value.is_null() || filled.get(name).is_some());
            for (name, value) in fields {
                drop_nulls(value, &filled[name.as_str()]);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_nulls(item, &filled[index]);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_rules::schema::Schema;

    use super::{differs, prune};

    #[test]
    fn a_converted_object_keeps_what_its_version_knows_and_gets_no_defaults() {
        let schema = Schema::structural(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "plain": {"type": "string"},
                "default": {"type": "string", "default": "a"},
                "nullable": {"type": "string", "nullable": true},
                "list": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"plain": {"type": "string"}, "default": {"default": 1}},
                }},
            }},
        }}));
        for (spec, expected) in [
            (json!({"plain": "x", "unknown": 1}), json!({"plain": "x"})),
            (json!({}), json!({})),
            (json!({"plain": null, "nullable": null}), json!({"nullable": null})),
            // Kubernetes leaves these for who fills in defaults, and here nobody does.
            (json!({"default": null}), json!({"default": null})),
            (json!({"list": [{"plain": null}, {"unknown": null}]}), json!({"list": [{}, {}]})),
        ] {
            let mut object = json!({
                "apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"},
                "spec": spec,
            });
            prune(&schema, &mut object);
            assert_eq!(object["spec"], expected, "{spec}");
            assert_eq!(object["metadata"], json!({"name": "a"}));
        }
    }

    #[test]
    fn versions_differ_if_one_knows_something_else() {
        let version = |field: &str| {
            let schema = json!({"type": "object", "properties": {field: {"type": "string"}}});
            json!({"name": field, "schema": {"openAPIV3Schema": schema}})
        };
        let renamed = |field: &str, name: &str| {
            let mut version = version(field);
            version["name"] = name.into();
            version
        };
        let expectations: [(Vec<Value>, bool); 4] = [
            (vec![], false),
            (vec![version("a")], false),
            (vec![version("a"), renamed("a", "b"), renamed("a", "c")], false),
            (vec![version("a"), renamed("a", "b"), version("c")], true),
        ];
        for (versions, expected) in expectations {
            assert_eq!(differs(&versions), expected, "{versions:?}");
        }
    }
}
