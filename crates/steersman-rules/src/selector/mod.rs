//! Which objects of a list or watch the client wants: by labels and by fields.
//!
//! Selectors look at encoded documents and decode only what they compare: name and namespace come
//! from the key, labels and plain fields are skimmed out of the document.

mod field;
mod label;
mod parse;
mod skim;

pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelRequirement, LabelSelector, Operator};

use crate::resource::Resource;

/// A selector that cannot be understood; the text says what of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelector(pub String);

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
            && (self.labels.is_empty() || self.labels.matches_bytes(document))
            && self.fields.matches_document(resource, document)
    }
}
