//! The webhook that converts the objects of a definition between their versions.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;

use super::{Target, review_version};

/// Who converts the objects of a definition.
#[derive(Debug)]
pub(crate) struct Converter {
    /// The name of the definition.
    pub(crate) definition: String,
    pub(crate) target: Target,
    /// The version of the reviews that it reads; `None` if it reads none that is known here.
    pub(crate) review_version: Option<&'static str>,
}

impl Converter {
    /// Reads a definition; `None` if `apiVersion` is all that differs between its versions.
    pub(crate) fn of(definition: &Value) -> Option<Arc<Self>> {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        Some(Arc::new(Self {
            definition: metadata::text(definition, "name").to_owned(),
            target: Target::of(&webhook["clientConfig"]),
            review_version: review_version(&webhook["conversionReviewVersions"]),
        }))
    }
}
