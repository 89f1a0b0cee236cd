//! Label selectors of objects, ready to be asked often.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels, as objects have them.
pub type Labels = BTreeMap<String, String>;

/// Selects by labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Nothing: there was no selector, or none that makes sense.
    Nothing,
    /// What fulfils all of these; everything if there are none.
    All(Vec<Requirement>),
}

/// What is asked of one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Reads a selector: none selects nothing, an empty one everything.
    pub fn of(selector: Option<&LabelSelector>) -> Self {
        let Some(selector) = selector else { return Self::Nothing };
        let labels = selector.match_labels.iter().flatten();
        let labels = labels.map(|(key, value)| Some(Requirement::equals(key, value)));
        let expressions = selector.match_expressions.iter().flatten().map(|expression| {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return None,
            };
            let values = expression.values.clone().unwrap_or_default();
            Some(Requirement { key: expression.key.clone(), operator, values })
        });
        let requirements: Option<Vec<_>> = labels.chain(expressions).collect();
        requirements.map_or(Self::Nothing, Self::All)
    }

    /// Selects what has these labels.
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self::All(labels.into_iter().map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    /// What both select.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All(mut requirements), Self::All(more)) => {
                requirements.extend(more);
                Self::All(requirements)
            }
            _ => Self::Nothing,
        }
    }

    /// Whether it asks for nothing, and so selects everything.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// Labels that whatever is selected has.
    pub(super) fn equalities(&self) -> impl Iterator<Item = (&str, &str)> {
        let requirements = match self {
            Self::Nothing => &[][..],
            Self::All(requirements) => requirements,
        };
        requirements.iter().filter_map(|it| match (it.operator, &it.values[..]) {
            (Operator::In, [value]) => Some((&*it.key, &**value)),
            _ => None,
        })
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|it| it.holds(labels)),
        }
    }
}

impl Requirement {
    fn equals(key: &str, value: &str) -> Self {
        let values = vec![value.to_owned()];
        Self { key: key.to_owned(), operator: Operator::In, values }
    }

    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_selector_selects_nothing_and_an_empty_one_everything() {
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        assert!(!Selector::of(None).matches(&labels));
        let of = |value| Selector::of(Some(&serde_json::from_value(value).unwrap()));
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "db"}}), false),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}),
                true,
            ),
            (json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Sounds"}]}), false),
        ] {
            assert_eq!(of(selector.clone()).matches(&labels), expected, "{selector}");
        }
    }
}
