//! Selectors of labels and of fields.

use steersman_rules::selector::{FieldSelector, LabelSelector};

/// A selector; printed, it is the same.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = FieldSelector::of_anything(text);
    if let Ok(document) = serde_json::from_str(text) {
        let of_document = LabelSelector::of_document(&document);
        let _ = (of_document.to_string(), LabelSelector::of_unvalidated(&document));
    }
    let Ok(selector) = LabelSelector::parse(text) else { return };
    let printed = selector.to_string();
    let again = LabelSelector::parse(&printed);
    assert_eq!(again.as_ref(), Ok(&selector), "{printed:?} is the same selector");
    let _ = selector.matches(|key| (key.len() % 2 == 0).then_some("value"));
}
