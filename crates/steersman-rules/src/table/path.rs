//! The part of `JSONPath` that printer columns use.
//!
//! `.spec.x`, `.metadata.annotations.example\.com/key`, `['key']`, `[0]`, `[-1]`, `[*]` and
//! `[?(@.type=="Ready")]`. No recursive descent, no slices: Kubernetes allows only simple paths
//! in a `CustomResourceDefinition`.

use serde_json::Value;

/// A parsed path; the empty one finds the object itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Child(String),
    Index(i64),
    All,
    /// Only the items for which this holds.
    Where(Condition),
    /// Never finds anything: the path was not understood.
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: Vec<Step>,
    /// What the field must be (or must not be); without it, the field must exist.
    compared: Option<(bool, Value)>,
}

impl Path {
    /// Reads a path; `None` where it says something this does not know.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        Some(Self(steps(text.strip_prefix('$').unwrap_or(text))?))
    }

    /// A path that finds nothing, for one that could not be read.
    pub(super) fn nowhere() -> Self {
        Self(vec![Step::Nothing])
    }

    /// The first value it finds.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.find(object).into_iter().next()
    }

    /// Everything it finds, in order.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        walk(&self.0, object)
    }
}

fn walk<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![object], |found, step| {
        found.into_iter().flat_map(|value| advance(step, value)).collect()
    })
}

fn advance<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    let items = || value.as_array().map_or(&[][..], Vec::as_slice);
    match step {
        Step::Child(key) => value.get(key).into_iter().collect(),
        Step::Index(index) => {
            let from_end =
                || items().len().checked_sub(usize::try_from(index.checked_neg()?).ok()?);
            let at = usize::try_from(*index).ok().or_else(from_end);
            at.and_then(|at| items().get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Object(fields) => fields.values().collect(),
            _ => items().iter().collect(),
        },
        Step::Where(condition) => items().iter().filter(|item| condition.holds(item)).collect(),
        Step::Nothing => Vec::new(),
    }
}

impl Condition {
    fn holds(&self, item: &Value) -> bool {
        let found = walk(&self.field, item);
        match &self.compared {
            None => !found.is_empty(),
            Some((equal, value)) => found.first().is_some_and(|f| (*f == value) == *equal),
        }
    }
}

fn steps(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let step;
        (step, rest) = match rest.strip_prefix('[') {
            Some(inside) => bracket(inside)?,
            None => child(rest.strip_prefix('.').unwrap_or(rest))?,
        };
        steps.extend(step);
    }
    Some(steps)
}

/// A name up to the next `.` or `[`, with `\.` for a dot inside it.
fn child(text: &str) -> Option<(Option<Step>, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(c),
        }
    }
    let rest = &text[end..];
    match name.as_str() {
        // A lone dot is the object itself; two in a row would be a descent.
        "" if rest.starts_with('.') => None,
        "" => Some((None, rest)),
        "*" => Some((Some(Step::All), rest)),
        _ => Some((Some(Step::Child(name)), rest)),
    }
}

/// What stands in brackets, and what follows them.
fn bracket(text: &str) -> Option<(Option<Step>, &str)> {
    if let Some(text) = text.strip_prefix("?(") {
        let end = closing(text)?;
        let condition = condition(text[..end].trim())?;
        return Some((Some(Step::Where(condition)), &text[end + 2..]));
    }
    let end = text.find(']')?;
    let inside = &text[..end];
    let rest = &text[end + 1..];
    let step = match (inside, quoted(inside)) {
        ("*", _) => Step::All,
        (_, Some(key)) => Step::Child(key.to_owned()),
        (index, None) => Step::Index(index.parse().ok()?),
    };
    Some((Some(step), rest))
}

/// Where the `)]` of a filter is, past any quoted text.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ')') if text[at..].starts_with(")]") => return Some(at),
            _ => {}
        }
    }
    None
}

fn condition(text: &str) -> Option<Condition> {
    let (field, compared) = match text.split_once("==") {
        Some((field, value)) => (field, Some((true, literal(value.trim())?))),
        None => match text.split_once("!=") {
            Some((field, value)) => (field, Some((false, literal(value.trim())?))),
            None => (text, None),
        },
    };
    let field = steps(field.trim().strip_prefix('@')?)?;
    Some(Condition { field, compared })
}

fn literal(text: &str) -> Option<Value> {
    match quoted(text) {
        Some(text) => Some(text.into()),
        None => serde_json::from_str(text).ok(),
    }
}

fn quoted(text: &str) -> Option<&str> {
    let inside = |quote| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
    inside('"').or_else(|| inside('\''))
}
