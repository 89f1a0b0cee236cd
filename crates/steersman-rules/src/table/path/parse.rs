//! How a path is written.

use serde_json::Value;

use super::{Compared, Filter, Operator, Slice, Step, To};

/// How deep filters and names in brackets may stand inside each other.
const DEPTH_MAX: usize = 8;

/// A step and what follows it.
type Read<'a> = (Step, &'a str);

/// The steps of a path.
pub(super) fn path(text: &str) -> Option<Vec<Step>> {
    steps(text, DEPTH_MAX)
}

/// The steps up to the end or a closing brace, behind which nothing counts.
fn steps(text: &str, depth: usize) -> Option<Vec<Step>> {
    let depth = depth.checked_sub(1)?;
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && !rest.starts_with('}') {
        if let Some(inside) = rest.strip_prefix("[?(") {
            let (filter, after) = filter(inside, depth)?;
            steps.push(filter);
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']')?;
            steps.extend(brackets(inside, depth)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            if steps.last() == Some(&Step::Descent) {
                return None;
            }
            steps.push(Step::Descent);
            rest = after;
            if after.starts_with(begins_word) {
                let (named, after) = field(after)?;
                steps.push(named);
                rest = after;
            }
        } else if let Some(after) = rest.strip_prefix([' ', '@', '$']) {
            rest = after;
        } else {
            let (step, after) = simple(rest)?;
            steps.push(step);
            rest = after;
        }
    }
    Some(steps)
}

/// A field, or something that stands for itself.
fn simple(text: &str) -> Option<Read<'_>> {
    let first = text.chars().next()?;
    match first {
        '.' => field(&text[1..]),
        '"' | '\'' => quoted(text, first),
        '+' | '-' => number(text),
        _ if first.is_numeric() => number(text),
        _ if begins_word(first) => Some(word(text)),
        _ => None,
    }
}

fn begins_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// What ends a name.
fn ends_name(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// A name, in which a backslash takes the meaning from what follows.
fn field(text: &str) -> Option<Read<'_>> {
    let mut name = String::new();
    let mut end = text.len();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            let (_, escaped) = chars.next()?;
            name.extend((escaped != '\\').then_some(escaped));
        } else if ends_name(c) {
            end = at;
            break;
        } else {
            name.push(c);
        }
    }
    let (written, rest) = text.split_at(end);
    let step = if written == "*" { Step::Wildcard } else { Step::Field(name) };
    Some((step, rest))
}

fn word(text: &str) -> Read<'_> {
    let (word, rest) = text.split_at(text.find(ends_name).unwrap_or(text.len()));
    let step = match word {
        "true" => Step::Literal(true.into()),
        "false" => Step::Literal(false.into()),
        _ => Step::Word,
    };
    (step, rest)
}

fn number(text: &str) -> Option<Read<'_>> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let end = text[sign..].find(|c: char| c != '.' && !c.is_numeric());
    let (number, rest) = text.split_at(end.map_or(text.len(), |end| sign + end));
    let whole = number.parse::<i64>().map(Value::from).ok();
    let value = whole.or_else(|| number.parse::<f64>().map(Value::from).ok())?;
    Some((Step::Literal(value), rest))
}

/// A text in quotes.
fn quoted(text: &str, quote: char) -> Option<Read<'_>> {
    let mut found = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => return Some((Step::Literal(found.into()), &text[at + 1..])),
            '\n' => return None,
            '\\' => found.push(match chars.next()?.1 {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                escaped if escaped == '\\' || escaped == quote => escaped,
                _ => return None,
            }),
            _ => found.push(c),
        }
    }
    None
}

/// What stands in brackets: names and parts of lists.
fn brackets(text: &str, depth: usize) -> Option<Vec<Step>> {
    if text.contains('\n') {
        return None;
    }
    if text.contains(',') {
        let each = text.split(',').map(|part| format!("[{}]", part.trim_matches(' ')));
        let lists: Option<Vec<_>> = each.map(|part| steps(&part, depth)).collect();
        return Some(vec![Step::Union(lists?)]);
    }
    let name = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    match name.filter(|name| !name.contains('\'')) {
        Some(name) => steps(&format!(".{name}"), depth),
        None => Some(vec![Step::Slice(slice(if text == "*" { ":" } else { text })?)]),
    }
}

fn slice(text: &str) -> Option<Slice> {
    let mut bounds = text.split(':').map(bound);
    let from = bounds.next()??;
    let to = match bounds.next() {
        None => To::One,
        Some(bound) => bound?.map_or(To::End, To::Before),
    };
    let step = bounds.next().unwrap_or(Some(None))?;
    bounds.next().is_none().then_some(Slice { from, to, step })
}

/// A bound of a slice, which may be left out; `None` if it is no number.
fn bound(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).map(Some)
}

fn filter(text: &str, depth: usize) -> Option<Read<'_>> {
    let end = closing(text)?;
    let inside = &text[..end];
    let rest = text[end + 1..].strip_prefix(']')?;
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(at) = inside.find(is_operator) else {
        let filter = Filter { left: steps(inside, depth)?, compared: None };
        return Some((Step::Filter(filter), rest));
    };
    let (left, compared) = inside.split_at(at);
    let right = compared.trim_start_matches(is_operator);
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let operator = match &compared[..compared.len() - right.len()] {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => Operator::Unknown,
    };
    let compared = Some(Compared { operator, right: steps(right, depth)? });
    Some((Step::Filter(Filter { left: steps(left, depth)?, compared }), rest))
}

/// Where the parenthesis of a filter closes, past a quoted text.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_closed = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\n', _) => return None,
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open && before != '\\' => is_closed = true,
            (')', _) if quote.is_some() == is_closed => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}
