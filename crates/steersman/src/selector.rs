//! Label selectors as people write them: `app=web,tier in (front,back),!legacy`.
//!
//! The text is that of `kubectl -l` and is read as the API server reads it; what comes out is the
//! selector of `kube`, which predicates and caches understand. Comparisons of numbers (`size>3`),
//! which only node affinity uses, are not part of it.

use kube::core::{Expression, Selector};
use steersman_values::label_selector::{LabelRequirement, LabelSelector, Operator};

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}` is not a label selector: {why}")]
pub struct ParseSelectorError {
    /// The text.
    pub selector: String,
    /// What is wrong with it, in the words of the API server.
    pub why: String,
}

/// Reads a label selector. An empty one selects everything.
///
/// ```
/// let selector = steersman::selector::parse("app=web, tier in (front,back), !legacy").unwrap();
/// assert_eq!(selector.to_string(), "app=web,tier in (back,front),!legacy");
/// assert!(steersman::selector::parse("app=web,tier in").is_err());
/// ```
pub fn parse(text: &str) -> Result<Selector, ParseSelectorError> {
    let refuse = |why: String| ParseSelectorError { selector: text.to_owned(), why };
    let selector = LabelSelector::parse(text).map_err(|error| refuse(error.0))?;
    let expressions = selector.requirements().iter().map(expression);
    expressions
        .collect::<Option<Selector>>()
        .ok_or_else(|| refuse("only node affinity compares labels with numbers".to_owned()))
}

/// A requirement as `kube` has it; it has none that compare numbers.
fn expression(requirement: &LabelRequirement) -> Option<Expression> {
    let LabelRequirement { key, operator, values } = requirement;
    let key = key.clone();
    Some(match (operator, values.as_slice()) {
        (Operator::Equals | Operator::In, [value]) => Expression::Equal(key, value.clone()),
        (Operator::NotEquals | Operator::NotIn, [value]) => {
            Expression::NotEqual(key, value.clone())
        }
        (Operator::Equals | Operator::In, values) => {
            Expression::In(key, values.iter().cloned().collect())
        }
        (Operator::NotEquals | Operator::NotIn, values) => {
            Expression::NotIn(key, values.iter().cloned().collect())
        }
        (Operator::Exists, _) => Expression::Exists(key),
        (Operator::DoesNotExist, _) => Expression::DoesNotExist(key),
        (Operator::GreaterThan | Operator::LessThan, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubectl_understands_is_understood() {
        let table = [
            ("", ""),
            ("app=web", "app=web"),
            (" app == web ", "app=web"),
            ("app!=web,tier=", "app!=web,tier="),
            ("tier in (front, back)", "tier in (back,front)"),
            ("tier in(a,d),x notin (b,c)", "tier in (a,d),x notin (b,c)"),
            ("example.com/app,!legacy", "example.com/app,!legacy"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).map(|selector| selector.to_string()), Ok(expected.into()));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let table = [
            ("a,,b", "identifier after ','"),
            ("=x", "expected: !, identifier"),
            ("a in x", "found 'x' expected: '('"),
            ("a in (x", "expected: ',' or ')'"),
            ("a within (x)", "expected: in, notin"),
            ("a=b c", "found 'c'"),
            ("a=b=c", "found '='"),
            ("a b", "found 'b'"),
            ("-a=b", "Invalid value"),
            ("size>3", "only node affinity"),
        ];
        for (text, why) in table {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
    }
}
