//! cel-go's extension for text. Positions count characters.

use super::format::{Style, format};
use super::operators::{int, list, text};
use super::{Row, no_overload};
use crate::effort::{COPY, spend};
use crate::error::Error;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("charAt", &[("string_char_at_int", ".(string, int) string")], char_at),
    (
        "indexOf",
        &[
            ("string_index_of_string", ".(string, string) int"),
            ("string_index_of_string_int", ".(string, string, int) int"),
        ],
        index_of,
    ),
    (
        "lastIndexOf",
        &[
            ("string_last_index_of_string", ".(string, string) int"),
            ("string_last_index_of_string_int", ".(string, string, int) int"),
        ],
        last_index_of,
    ),
    ("lowerAscii", &[("string_lower_ascii", ".(string) string")], lower),
    ("upperAscii", &[("string_upper_ascii", ".(string) string")], upper),
    (
        "replace",
        &[
            ("string_replace_string_string", ".(string, string, string) string"),
            ("string_replace_string_string_int", ".(string, string, string, int) string"),
        ],
        replace,
    ),
    (
        "split",
        &[
            ("string_split_string", ".(string, string) list(string)"),
            ("string_split_string_int", ".(string, string, int) list(string)"),
        ],
        split,
    ),
    (
        "substring",
        &[
            ("string_substring_int", ".(string, int) string"),
            ("string_substring_int_int", ".(string, int, int) string"),
        ],
        substring,
    ),
    ("trim", &[("string_trim", ".(string) string")], trim),
    ("format", &[("string_format", ".(string, list(dyn)) string")], format_text),
    ("strings.quote", &[("strings_quote", "(string) string")], quote),
    (
        "join",
        &[
            ("list_join", ".(list(string)) string"),
            ("list_join_string", ".(list(string), string) string"),
        ],
        join,
    ),
];

pub(super) const LATER: &[Row] = &[
    ("reverse", &[("string_reverse", ".(string) string")], reverse),
    ("format", &[("string_format", ".(string, list(dyn)) string")], format_text_later),
];

fn out_of_range<T>(index: i64) -> Result<T, Error> {
    Err(Error::new(format!("index out of range: {index}")))
}

fn char_at<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, index] = args else { return no_overload() };
    let (value, index) = (text(value)?, int(index)?);
    let Ok(at) = usize::try_from(index) else { return out_of_range(index) };
    match value.chars().nth(at) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if value.chars().count() == at => Ok(Value::text("")),
        None => out_of_range(index),
    }
}

fn index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, wanted, rest @ ..] = args else { return no_overload() };
    let (value, wanted) = (text(value)?, text(wanted)?);
    let from = rest.first().map_or(Ok(0), int)?;
    if wanted.is_empty() {
        return Ok(Value::Int(from));
    }
    let Ok(start) = usize::try_from(from) else { return out_of_range(from) };
    let Some((byte, _)) = value.char_indices().nth(start) else { return Ok(Value::Int(-1)) };
    let found = value[byte..].find(wanted).map(|at| start + value[byte..byte + at].chars().count());
    Ok(Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, wanted, rest @ ..] = args else { return no_overload() };
    let (value, wanted) = (text(value)?, text(wanted)?);
    let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
    let from = match rest.first() {
        Some(from) => int(from)?,
        None if wanted.is_empty() => length,
        None if value.len() < wanted.len() => return Ok(Value::Int(-1)),
        None => length - 1,
    };
    if wanted.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    if from >= length {
        return Ok(Value::Int(-1));
    }
    // The match may start at `from` and end behind it.
    let start = usize::try_from(from).unwrap_or(0);
    let start_byte = value.char_indices().nth(start).map_or(value.len(), |(byte, _)| byte);
    let end = (start_byte + wanted.len()).min(value.len());
    let end = (0..=end).rev().find(|at| value.is_char_boundary(*at)).unwrap_or(0);
    let found = value[..end].rfind(wanted).map(|at| value[..at].chars().count());
    let found = found.filter(|at| *at <= start);
    Ok(Value::Int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}

fn lower<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::text(text(value)?.to_ascii_lowercase())),
        _ => no_overload(),
    }
}

fn upper<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::text(text(value)?.to_ascii_uppercase())),
        _ => no_overload(),
    }
}

/// How many times, where a negative number means always.
fn limit(args: &[Value<'_>], at: usize) -> Result<usize, Error> {
    let number = args.get(at).map_or(Ok(-1), int)?;
    Ok(usize::try_from(number).unwrap_or(usize::MAX))
}

fn replace<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, old, new, ..] = args else { return no_overload() };
    let (value, old, new) = (text(value)?, text(old)?, text(new)?);
    let limit = limit(args, 3)?;
    let found = value.matches(old).count().min(limit);
    spend(value.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(Value::text(value.replacen(old, new, limit)))
}

fn split<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, separator, ..] = args else { return no_overload() };
    let (value, separator) = (text(value)?, text(separator)?);
    let limit = limit(args, 2)?;
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    spend(COPY * value.matches(separator).count().min(limit))?;
    let parts: Vec<Value<'a>> = if separator.is_empty() {
        characters(value, limit)
    } else {
        value.splitn(limit, separator).map(Value::from).collect()
    };
    Ok(Value::list(parts))
}

/// One by one, the rest in the last.
fn characters<'a>(value: &str, limit: usize) -> Vec<Value<'a>> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some(c) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(Value::from(rest));
            break;
        }
        let (first, after) = rest.split_at(c.len_utf8());
        parts.push(Value::from(first));
        rest = after;
    }
    parts
}

fn substring<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, start, rest @ ..] = args else { return no_overload() };
    let (value, start) = (text(value)?, int(start)?);
    let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
    let end = rest.first().map(int).transpose()?;
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    if !(0..=length).contains(&start) {
        return out_of_range(start);
    }
    let end = end.unwrap_or(length);
    if !(0..=length).contains(&end) {
        return out_of_range(end);
    }
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    Ok(Value::text(value.chars().skip(start).take(end - start).collect::<String>()))
}

fn trim<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::text(text(value)?.trim())),
        _ => no_overload(),
    }
}

fn reverse<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::text(text(value)?.chars().rev().collect::<String>())),
        _ => no_overload(),
    }
}

fn quote<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let mut out = String::from("\"");
    for c in text(value)?.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(Value::text(out))
}

fn join<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, rest @ ..] = args else { return no_overload() };
    let separator = rest.first().map_or(Ok(""), text)?;
    let mut out = String::new();
    for (at, item) in list(items)?.iter().enumerate() {
        let item = item?;
        match item.as_str() {
            Some(text) => {
                spend(text.len().saturating_add(separator.len()))?;
                out.push_str(if at > 0 { separator } else { "" });
                out.push_str(text);
            }
            None => return Err(Error::new(format!("join: invalid input: {item}"))),
        }
    }
    Ok(Value::text(out))
}

fn format_text<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value, items] => {
            format(text(value)?, &list(items)?.to_vec()?, Style::Localised).map(Value::text)
        }
        _ => no_overload(),
    }
}

fn format_text_later<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value, items] => {
            format(text(value)?, &list(items)?.to_vec()?, Style::Plain).map(Value::text)
        }
        _ => no_overload(),
    }
}
