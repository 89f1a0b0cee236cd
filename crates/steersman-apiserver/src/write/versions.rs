//! The versions of a resource, as merging and tracking compare an object in them.

use std::fmt::{self, Debug};

use serde_json::Value;
use steersman_rules::apply::Versions;
use steersman_rules::resource::Resource;
use steersman_rules::schema::Schema;
use steersman_rules::versions;

use super::Writer;
use crate::conversion::{self, Known};
use crate::state::Server;

/// The versions in which a resource is served.
pub(crate) struct Served<'a> {
    server: &'a Server,
    resource: &'a Resource,
    known: &'a Known,
}

impl<'a> Served<'a> {
    pub(crate) fn of(writer: &'a Writer<'_>) -> Self {
        Self { server: writer.server, resource: writer.resource, known: &writer.known }
    }
}

impl Versions for Served<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Schema)> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let table = self.server.registry.table();
        let resource = table.get(group, version, &self.resource.plural)?;
        let schema = resource.schema.clone();
        if conversion::asks(resource) {
            return Some((self.known.get(object, api_version)?, schema));
        }
        let mut object = object.clone();
        versions::to_api_version(&mut object, api_version);
        Some((object, schema))
    }
}

impl Debug for Served<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Served").field(&self.resource.qualified()).finish()
    }
}
