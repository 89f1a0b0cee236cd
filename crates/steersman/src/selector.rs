//! Label selectors as people write them: `app=web,tier in (front,back),!legacy`.
//!
//! The text is that of `kubectl -l`; what comes out is the selector of `kube`, which predicates
//! and caches understand. Its comparisons of numbers (`size>3`), which only node affinity uses,
//! are not part of it.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

/// Why a text is no label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}` is not a label selector: {why}")]
pub struct ParseSelectorError {
    /// The text.
    pub selector: String,
    /// What is wrong with one of its requirements.
    pub why: InvalidRequirement,
}

/// What is wrong with a requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequirement {
    /// The name of a label is missing.
    #[error("a label has no name")]
    NoName,
    /// Labels have no such names.
    #[error("`{0}` names no label")]
    Name(String),
    /// Labels have no such values.
    #[error("`{0}` is no value")]
    Value(String),
    /// What follows a name is no set.
    #[error("after `{name}` comes `in (…)` or `notin (…)`, not `{found}`")]
    NoSet {
        /// The name.
        name: String,
        /// What follows it.
        found: String,
    },
    /// A set does not end.
    #[error("a parenthesis is not closed")]
    NotClosed,
    /// Labels cannot be compared with a set in this way.
    #[error("`{0}` is neither `in` nor `notin`")]
    Operator(String),
}

/// Reads a label selector. An empty one selects everything.
///
/// ```
/// let selector = steersman::selector::parse("app=web, tier in (front,back), !legacy").unwrap();
/// assert_eq!(selector.to_string(), "app=web,tier in (back,front),!legacy");
/// assert!(steersman::selector::parse("app=web,tier in").is_err());
/// ```
pub fn parse(text: &str) -> Result<Selector, ParseSelectorError> {
    let requirements = split(text).into_iter().map(str::trim);
    let parsed: Result<Vec<Expression>, InvalidRequirement> = match text.trim() {
        "" => Ok(Vec::new()),
        _ => requirements.map(requirement).collect(),
    };
    match parsed {
        Ok(expressions) => Ok(expressions.into_iter().collect()),
        Err(why) => Err(ParseSelectorError { selector: text.to_owned(), why }),
    }
}

/// The requirements: what stands between commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(text: &str) -> Result<Expression, InvalidRequirement> {
    if let Some(name) = text.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(label(name)?));
    }
    // The longer operators first: `!=` contains `=`.
    for operator in ["!=", "==", "="] {
        if let Some((name, value)) = text.split_once(operator) {
            let name = label(name)?;
            let value = plain(value)?;
            return Ok(match operator {
                "!=" => Expression::NotEqual(name, value),
                _ => Expression::Equal(name, value),
            });
        }
    }
    match text.split_once(|c: char| c.is_whitespace() || c == '(') {
        None => Ok(Expression::Exists(label(text)?)),
        Some((name, _)) => set(label(name)?, text[name.len()..].trim()),
    }
}

/// The rest of a requirement that compares with a set: `in (a,b)`.
fn set(name: String, rest: &str) -> Result<Expression, InvalidRequirement> {
    let Some((operator, values)) = rest.split_once('(') else {
        return Err(InvalidRequirement::NoSet { name, found: rest.to_owned() });
    };
    let values = values.strip_suffix(')').ok_or(InvalidRequirement::NotClosed)?;
    let values: Result<BTreeSet<String>, _> = values.split(',').map(plain).collect();
    match operator.trim() {
        "in" => Ok(Expression::In(name, values?)),
        "notin" => Ok(Expression::NotIn(name, values?)),
        other => Err(InvalidRequirement::Operator(other.to_owned())),
    }
}

/// The name of a label, with or without a prefix.
fn label(text: &str) -> Result<String, InvalidRequirement> {
    let name = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if name.is_empty() {
        return Err(InvalidRequirement::NoName);
    }
    if name.chars().all(fits) {
        Ok(name.to_owned())
    } else {
        Err(InvalidRequirement::Name(name.to_owned()))
    }
}

/// The value of a label, which may be empty.
fn plain(text: &str) -> Result<String, InvalidRequirement> {
    let value = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if value.chars().all(fits) {
        Ok(value.to_owned())
    } else {
        Err(InvalidRequirement::Value(value.to_owned()))
    }
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
            ("tier in(a),x notin (b,c)", "tier in (a),x notin (b,c)"),
            ("example.com/app,!legacy", "example.com/app,!legacy"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).map(|selector| selector.to_string()), Ok(expected.into()));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let table = [
            ("a,,b", "no name"),
            ("=x", "no name"),
            ("a in x", "`in (…)`"),
            ("a in (x", "not closed"),
            ("a within (x)", "neither `in` nor `notin`"),
            ("a=b c", "no value"),
            ("a=b=c", "no value"),
            ("a b", "not `b`"),
            ("size>3", "names no label"),
        ];
        for (text, why) in table {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{text}: {error}");
        }
    }
}
