//! Label selectors: `a=b,c!=d,e in (f,g),h,!i`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::status::{Result, Status};

/// What labels must be; all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<LabelRequirement>);

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// How its value is compared.
    pub operator: Operator,
    /// With what.
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The value is one of these (`=`, `==`, `in`).
    In,
    /// The value is none of these, or the label is absent (`!=`, `notin`).
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

impl LabelSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = split(text).into_iter().filter(|part| !part.is_empty());
        parts.map(parse_requirement).collect::<Result<_>>().map(Self)
    }

    /// Reads the selector of a document: `{matchLabels, matchExpressions}` or a plain map.
    pub fn of_document(selector: &Value) -> Self {
        let structured =
            ["matchLabels", "matchExpressions"].iter().any(|k| selector.get(k).is_some());
        let labels = if structured { &selector["matchLabels"] } else { selector };
        let mut requirements: Vec<LabelRequirement> = Vec::new();
        for (key, value) in labels.as_object().into_iter().flatten() {
            let values = vec![value.as_str().unwrap_or("").to_owned()];
            requirements.push(LabelRequirement {
                key: key.clone(),
                operator: Operator::In,
                values,
            });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            requirements.extend(of_expression(expression));
        }
        Self(requirements)
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels match; `get` looks one up.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| {
            let value = get(&requirement.key);
            let listed = || value.is_some_and(|v| requirement.values.iter().any(|w| w == v));
            match requirement.operator {
                Operator::In => listed(),
                Operator::NotIn => !listed(),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }

    /// Whether the labels of a stored document match.
    pub(super) fn matches_bytes(&self, document: &[u8]) -> bool {
        let Ok(labelled) = serde_json::from_slice::<Labelled<'_>>(document) else { return false };
        let labels = labelled.metadata.labels.unwrap_or_default();
        self.matches(|key| labels.get(key).map(AsRef::as_ref))
    }
}

impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, LabelRequirement { key, operator, values }) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let list = values.join(",");
            match (operator, values.len()) {
                (Operator::In, 1) => write!(f, "{key}={list}"),
                (Operator::In, _) => write!(f, "{key} in ({list})"),
                (Operator::NotIn, 1) => write!(f, "{key}!={list}"),
                (Operator::NotIn, _) => write!(f, "{key} notin ({list})"),
                (Operator::Exists, _) => write!(f, "{key}"),
                (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            }?;
        }
        Ok(())
    }
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

fn of_expression(expression: &Value) -> Option<LabelRequirement> {
    let operator = match expression["operator"].as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let values = expression["values"].as_array().map_or(&[][..], Vec::as_slice);
    let values = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(LabelRequirement { key: expression["key"].as_str()?.to_owned(), operator, values })
}

/// Splits at commas that are not inside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn parse_requirement(part: &str) -> Result<LabelRequirement> {
    let parse_set = |head: &str, operator: Operator| {
        let (key, list) = part.split_once(head)?;
        let inner = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        let values = inner.split(',').map(|value| value.trim().to_owned()).collect();
        Some((key.trim().to_owned(), operator, values))
    };
    let one = |operator: &str, meaning: Operator| {
        let (key, value) = part.split_once(operator)?;
        Some((key.trim().to_owned(), meaning, vec![value.trim().to_owned()]))
    };
    let absent = || {
        let key = part.strip_prefix('!')?.trim().to_owned();
        Some((key, Operator::DoesNotExist, Vec::new()))
    };
    let (key, operator, values) = absent()
        .or_else(|| parse_set(" notin ", Operator::NotIn))
        .or_else(|| parse_set(" in ", Operator::In))
        .or_else(|| parse_set(" notin", Operator::NotIn))
        .or_else(|| parse_set(" in", Operator::In))
        .or_else(|| one("!=", Operator::NotIn))
        .or_else(|| one("==", Operator::In))
        .or_else(|| one("=", Operator::In))
        .unwrap_or_else(|| (part.to_owned(), Operator::Exists, Vec::new()));
    if !is_key(&key) || !values.iter().all(|value| is_value(value)) {
        return Err(Status::bad_request(format!(
            "unable to parse requirement: {part:?} is not a label requirement"
        )));
    }
    Ok(LabelRequirement { key, operator, values })
}

fn is_key(key: &str) -> bool {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    !name.is_empty() && name.len() <= 63 && key.chars().all(|c| is_label_char(c) || c == '/')
}

fn is_value(value: &str) -> bool {
    value.len() <= 63 && value.chars().all(is_label_char)
}

fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::LabelSelector;
    use serde_json::json;

    fn matches(selector: &str) -> bool {
        let selector = LabelSelector::parse(selector).unwrap();
        let document =
            json!({"metadata": {"labels": {"app": "web", "tier": "front", "empty": ""}}});
        selector.matches_bytes(document.to_string().as_bytes())
    }

    #[test]
    fn every_operator_compares_as_it_says() {
        for selector in [
            "",
            "app=web",
            "app == web",
            "app!=db",
            "absent!=db",
            "app in (db, web)",
            "app in(web)",
            "app notin (db)",
            "absent notin (x)",
            "app",
            "!absent",
            "app=web,tier in (front,back)",
            "empty=",
        ] {
            assert!(matches(selector), "{selector}");
        }
        for selector in ["app=db", "app!=web", "app in (db)", "app notin (web)", "absent", "!app"] {
            assert!(!matches(selector), "{selector}");
        }
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        for selector in ["a=b=c", "a in b", "=x", "a in (b", "a b"] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err().code, 400, "{selector}");
        }
    }

    #[test]
    fn the_selector_of_a_document_prints_as_kubectl_takes_it() {
        let document = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        });
        assert_eq!(LabelSelector::of_document(&document).to_string(), "app=web,tier in (a,b)");
        assert_eq!(LabelSelector::of_document(&json!({"app": "web"})).to_string(), "app=web");
    }
}
