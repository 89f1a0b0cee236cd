//! Conversions that server-side apply has asked for.
//!
//! Merging and tracking compare an object in the versions of all who own fields of it, and do so
//! without waiting. What they want converted and nobody has converted yet is written down here;
//! whoever called them lets it be converted and calls them again, until nothing is missing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use steersman_rules::resource::Resource;

use super::object;
use crate::state::Server;
use crate::status::Result;

/// The conversions of one write.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Conversions>);

#[derive(Debug, Default)]
struct Conversions {
    /// An object, a version, and the object in that version.
    done: Vec<(Value, String, Value)>,
    wanted: Vec<(Value, String)>,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Conversions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object in a version, if that is known; else it is written down as wanted.
    pub(crate) fn get(&self, object: &Value, api_version: &str) -> Option<Value> {
        if object["apiVersion"] == api_version {
            return Some(object.clone());
        }
        let mut conversions = self.lock();
        let mut done = conversions.done.iter();
        let found = done.find(|(from, version, _)| version == api_version && from == object);
        if let Some((_, _, converted)) = found {
            return Some(converted.clone());
        }
        conversions.wanted.push((object.clone(), api_version.to_owned()));
        None
    }

    /// Forgets everything: the next merge is of other objects.
    pub(crate) fn clear(&self) {
        *self.lock() = Conversions::default();
    }

    /// Converts what is wanted. Says whether anything was: then the result that lacked it is void.
    pub(crate) async fn complete(&self, server: &Server, resource: &Resource) -> Result<bool> {
        let wanted = std::mem::take(&mut self.lock().wanted);
        if wanted.is_empty() {
            return Ok(false);
        }
        for (from, version) in wanted {
            let table = server.registry.table();
            let (group, name) = version.split_once('/').unwrap_or(("", &version));
            let Some(to) = table.get(group, name, &resource.plural) else { continue };
            let converted = object(server, to, &from).await?;
            self.lock().done.push((from, version, converted));
        }
        Ok(true)
    }
}
