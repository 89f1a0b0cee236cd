//! Label selectors: `a=b,c!=d,e in (f,g),h,!i`, read with the complaints of Kubernetes.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

/// A selector that cannot be understood; the text says what of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelector(pub String);

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
    /// With what, sorted.
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
    /// The value is a whole number above this (`>`).
    GreaterThan,
    /// The value is a whole number below this (`<`).
    LessThan,
}

impl LabelSelector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        parse::parse(text).map(Self).map_err(InvalidSelector)
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
            let values = &requirement.values;
            let listed =
                || value.is_some_and(|v| values.binary_search_by(|w| w.as_str().cmp(v)).is_ok());
            let ordered = |order: Ordering| {
                let number = |text: &str| text.parse::<i64>().ok();
                let pair = value.and_then(number).zip(values.first().and_then(|v| number(v)));
                pair.is_some_and(|(value, limit)| value.cmp(&limit) == order)
            };
            match requirement.operator {
                Operator::In => listed(),
                Operator::NotIn => !listed(),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
                Operator::GreaterThan => ordered(Ordering::Greater),
                Operator::LessThan => ordered(Ordering::Less),
            }
        })
    }

    /// The requirements.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.0
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
                (Operator::GreaterThan, _) => write!(f, "{key}>{list}"),
                (Operator::LessThan, _) => write!(f, "{key}<{list}"),
            }?;
        }
        Ok(())
    }
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
    let mut values: Vec<String> =
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    values.sort_unstable();
    Some(LabelRequirement { key: expression["key"].as_str()?.to_owned(), operator, values })
}

#[cfg(test)]
mod tests {
    use super::LabelSelector;
    use serde_json::json;

    fn matches(selector: &str) -> bool {
        let selector = LabelSelector::parse(selector).unwrap();
        let labels = [("app", "web"), ("tier", "front"), ("empty", ""), ("n", "9")];
        selector
            .matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
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
            "empty in ()",
            "empty in (x,,y)",
            " app\t in (web) , tier ",
            "!in",
            "n>8,n<10",
        ] {
            assert!(matches(selector), "{selector}");
        }
        for selector in [
            "app=db",
            "app!=web",
            "app in (db)",
            "app notin (web)",
            "absent",
            "!app",
            "n>9",
            "app>1",
        ] {
            assert!(!matches(selector), "{selector}");
        }
    }

    #[test]
    fn nonsense_is_a_bad_request() {
        for (selector, text) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error.0, text, "{selector}");
        }
        let long = "x".repeat(64);
        for (selector, text) in [
            (format!("a={long}"), "unable to parse requirement: values[0][a]: Invalid value: \"xx"),
            (format!("{long}=a"), "unable to parse requirement: <nil>: Invalid value: \"xx"),
            ("a=-".to_owned(), "unable to parse requirement: values[0][a]: Invalid value: \"-\": "),
        ] {
            let error = LabelSelector::parse(&selector).unwrap_err();
            assert!(error.0.starts_with(text), "{error}");
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
