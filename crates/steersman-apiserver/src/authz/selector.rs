//! Field selectors in questions about permissions, where they need not be text.

use serde_json::Value;
use steersman_rules::selector::FieldSelector;

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

    use super::{IGNORED, PARTLY_IGNORED, of_review};

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
