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
    /// The value is this one (`=`, `==`).
    Equals,
    /// The value is another one, or the label is absent (`!=`).
    NotEquals,
    /// The value is one of these (`in`).
    In,
    /// The value is none of these, or the label is absent (`notin`).
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

    /// Reads the selector of a document: `{matchLabels, matchExpressions}` or a plain map. An
    /// expression without a key or with an operator that is none of Kubernetes' asks for nothing:
    /// validation refuses it where an object is written.
    pub fn of_document(selector: &Value) -> Self {
        let structured =
            ["matchLabels", "matchExpressions"].iter().any(|k| selector.get(k).is_some());
        let labels = if structured { &selector["matchLabels"] } else { selector };
        let known = expressions(selector).filter(|expression| expression["key"].is_string());
        Self(by_key(of_labels(labels).chain(known.filter_map(of_expression)).collect()))
    }

    /// Reads `{matchLabels, matchExpressions}` of a document that validation has not passed yet:
    /// none where an operator is none of Kubernetes'.
    pub fn of_unvalidated(selector: &Value) -> Option<Self> {
        let labels = of_labels(&selector["matchLabels"]).map(Some);
        let all: Option<Vec<_>> = labels.chain(expressions(selector).map(of_expression)).collect();
        all.map(|all| Self(by_key(all)))
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
                Operator::Equals | Operator::In => listed(),
                Operator::NotEquals | Operator::NotIn => !listed(),
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
            match operator {
                Operator::Equals => write!(f, "{key}={list}"),
                Operator::NotEquals => write!(f, "{key}!={list}"),
                Operator::In => write!(f, "{key} in ({list})"),
                Operator::NotIn => write!(f, "{key} notin ({list})"),
                Operator::Exists => write!(f, "{key}"),
                Operator::DoesNotExist => write!(f, "!{key}"),
                Operator::GreaterThan => write!(f, "{key}>{list}"),
                Operator::LessThan => write!(f, "{key}<{list}"),
            }?;
        }
        Ok(())
    }
}

/// Requirements in the order in which Kubernetes keeps those of a document.
fn by_key(mut requirements: Vec<LabelRequirement>) -> Vec<LabelRequirement> {
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    requirements
}

fn of_labels(labels: &Value) -> impl Iterator<Item = LabelRequirement> {
    labels.as_object().into_iter().flatten().map(|(key, value)| LabelRequirement {
        key: key.clone(),
        operator: Operator::Equals,
        values: vec![value.as_str().unwrap_or("").to_owned()],
    })
}

fn expressions(selector: &Value) -> impl Iterator<Item = &Value> {
    selector["matchExpressions"].as_array().into_iter().flatten()
}

/// A requirement, unless nobody knows its operator.
fn of_expression(expression: &Value) -> Option<LabelRequirement> {
    let operator = match expression["operator"].as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let values = expression["values"].as_array().into_iter().flatten();
    let mut values: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
    values.sort_unstable();
    let key = expression["key"].as_str().unwrap_or("").to_owned();
    Some(LabelRequirement { key, operator, values })
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
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("a in (,(", "unable to parse requirement: found '(', expected: ',', or identifier"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!a in (b)", "found 'in', expected: ',' or 'end of string'"),
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
            (
                "a=b||c=d".to_owned(),
                "unable to parse requirement: values[0][a]: Invalid value: \"b||c\": ",
            ),
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
        let expressions = json!([
            {"key": "zone", "operator": "Exists"},
            {"key": "tier", "operator": "In", "values": ["a"]},
            {"key": "kept", "operator": "NotIn", "values": ["b"]},
            {"key": "gone", "operator": "DoesNotExist"},
        ]);
        let document = json!({"matchLabels": {"team": "x"}, "matchExpressions": expressions});
        let printed = LabelSelector::of_document(&document).to_string();
        assert_eq!(printed, "!gone,kept notin (b),team=x,tier in (a),zone", "ordered by key");
        assert_eq!(LabelSelector::parse("b==c,a!=d").unwrap().to_string(), "b=c,a!=d");
    }

    #[test]
    fn an_operator_that_nobody_knows_is_left_out_only_after_validation() {
        let selector = |expression| json!({"matchExpressions": [expression]});
        for expression in
            [json!({"key": "app", "operator": "Near", "values": ["web"]}), json!({"key": "app"})]
        {
            let document = selector(expression);
            assert!(LabelSelector::of_document(&document).is_empty(), "{document}");
            assert_eq!(LabelSelector::of_unvalidated(&document), None, "{document}");
        }
        let keyless = selector(json!({"operator": "Exists"}));
        assert!(LabelSelector::of_document(&keyless).is_empty());
        let unvalidated = LabelSelector::of_unvalidated(&keyless).unwrap();
        assert!(!unvalidated.matches(|_| None));
    }

    #[test]
    fn a_plain_map_is_no_selector_before_validation() {
        let plain = json!({"app": "web"});
        assert!(!LabelSelector::of_document(&plain).is_empty());
        assert!(LabelSelector::of_unvalidated(&plain).unwrap().is_empty());
    }
}
