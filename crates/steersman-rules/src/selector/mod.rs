//! Which objects of a list or watch the client wants: by labels and by fields.
//!
//! Selectors look at encoded documents and decode only what they compare: name and namespace come
//! from the key, labels and plain fields are skimmed out of the document.

mod field;
mod skim;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

pub use field::{FieldRequirement, FieldSelector};
pub use steersman_values::label_selector::{
    InvalidSelector, LabelRequirement, LabelSelector, Operator,
};

use crate::resource::Resource;

/// A label and a field selector; an object must match both.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// What the labels must be.
    pub labels: LabelSelector,
    /// What the fields must be.
    pub fields: FieldSelector,
}

impl Selector {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether a document matches that lies at a key of the store.
    pub fn matches(&self, resource: &Resource, key: &str, document: &[u8]) -> bool {
        if self.is_empty() {
            return true;
        }
        self.fields.matches_place(resource.place(key))
            && (self.labels.is_empty() || labels_match(&self.labels, document))
            && self.fields.matches_document(resource, document)
    }
}

/// Whether the labels of a document match.
fn labels_match(selector: &LabelSelector, document: &[u8]) -> bool {
    let Ok(labelled) = serde_json::from_slice::<Labelled<'_>>(document) else { return false };
    let labels = labelled.metadata.labels.unwrap_or_default();
    selector.matches(|key| labels.get(key).map(AsRef::as_ref))
}

#[derive(Deserialize)]
struct Labelled<'a> {
    #[serde(borrow)]
    metadata: Labels<'a>,
}

#[derive(Deserialize)]
struct Labels<'a> {
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}
