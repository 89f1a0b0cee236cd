//! Selectors in questions about permissions, where they need not be text. Only those of fields decide
//! anything here; of those of labels it is told if they cannot be read.

use serde_json::Value;
use steersman_rules::selector::{FieldSelector, LabelSelector};

const LABELS_IGNORED: &str = "spec.resourceAttributes.labelSelector ignored due to parse error";
const LABELS_PARTLY_IGNORED: &str =
    "spec.resourceAttributes.labelSelector partially ignored due to parse error";
const IGNORED: &str = "spec.resourceAttributes.fieldSelector ignored due to parse error";
const PARTLY_IGNORED: &str =
    "spec.resourceAttributes.fieldSelector partially ignored due to parse error";

/// The selector of a question as text, and what is to say about it if not all of it counts.
pub(crate) fn of_review(selector: &Value) -> (String, Option<&'static str>) {
    let requirements = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
    if requirements.is_empty() {
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        return match FieldSelector::of_anything(raw) {
            Ok(_) => (raw.to_owned(), None),
            Err(_) => (String::new(), Some(IGNORED)),
        };
    }
    let terms: Vec<String> = requirements.iter().filter_map(term).collect();
    let ignored = match terms.len() {
        0 => Some(IGNORED),
        all if all == requirements.len() => None,
        _ => Some(PARTLY_IGNORED),
    };
    (terms.join(","), ignored)
}

/// What is to say about the labels that a question selects, if not all of them can be read.
pub(crate) fn labels_of_review(selector: &Value) -> Option<&'static str> {
    let requirements = selector["requirements"].as_array().map_or(&[][..], Vec::as_slice);
    if requirements.is_empty() {
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        return LabelSelector::parse(raw).is_err().then_some(LABELS_IGNORED);
    }
    let is_known = |requirement: &&Value| {
        let operator = requirement["operator"].as_str().unwrap_or_default();
        matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
    };
    match requirements.iter().filter(is_known).count() {
        0 => Some(LABELS_IGNORED),
        all if all == requirements.len() => None,
        _ => Some(LABELS_PARTLY_IGNORED),
    }
}

/// A requirement as text; `None` if there is no way to write it.
fn term(requirement: &Value) -> Option<String> {
    let [value] = requirement["values"].as_array()?.as_slice() else { return None };
    let operator = match requirement["operator"].as_str()? {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    let value = value.as_str()?.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    Some(format!("{}{operator}{value}", requirement["key"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        IGNORED, LABELS_IGNORED, LABELS_PARTLY_IGNORED, PARTLY_IGNORED, labels_of_review, of_review,
    };

    #[test]
    fn labels_that_cannot_be_read_are_told_of() {
        let near = json!({"key": "a", "operator": "Near"});
        let exists = json!({"key": "a", "operator": "Exists"});
        for (selector, expected) in [
            (json!(null), None),
            (json!({"rawSelector": "a in (b, c)"}), None),
            (json!({"rawSelector": "a in ("}), Some(LABELS_IGNORED)),
            (json!({"requirements": [exists]}), None),
            (json!({"requirements": [exists, near]}), Some(LABELS_PARTLY_IGNORED)),
            (json!({"requirements": [near]}), Some(LABELS_IGNORED)),
        ] {
            assert_eq!(labels_of_review(&selector), expected, "{selector}");
        }
    }

    #[test]
    fn a_selector_counts_as_far_as_it_can_be_read() {
        let is = json!({"key": "a", "operator": "In", "values": ["b,c"]});
        let is_not = json!({"key": "a", "operator": "NotIn", "values": ["b"]});
        let exists = json!({"key": "a", "operator": "Exists"});
        for (selector, expected) in [
            (json!(null), ("", None)),
            (json!({"rawSelector": "a=b"}), ("a=b", None)),
            (json!({"rawSelector": "a"}), ("", Some(IGNORED))),
            (json!({"requirements": [is, is_not]}), (r"a=b\,c,a!=b", None)),
            (json!({"requirements": [is, exists]}), (r"a=b\,c", Some(PARTLY_IGNORED))),
            (json!({"requirements": [exists]}), ("", Some(IGNORED))),
        ] {
            let (text, ignored) = of_review(&selector);
            assert_eq!((text.as_str(), ignored), expected, "{selector}");
        }
    }
}
