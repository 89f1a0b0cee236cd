//! `"%s has %d".format([…])`.
//!
//! cel-go has two of them: an older one, which Kubernetes offers, that quotes what stands in lists
//! and groups digits as Americans do, and a newer one that does neither.

use std::fmt::Write as _;

use crate::effort::{COPY, spend};
use crate::error::Error;
use crate::shape::Type;
use crate::value::Value;

const PRECISION: usize = 6;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Localised,
    Plain,
}

/// Fills a text in.
pub(super) fn format(text: &str, args: &[Value<'_>], style: Style) -> Result<String, Error> {
    let mut out = String::new();
    for piece in Pieces::of(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause(index, clause) => {
                let Some(arg) = args.get(index) else {
                    return Err(Error::new(format!("index {index} out of range")));
                };
                let (verb, precision) = clause.map_err(Error::new)?;
                fill(verb, precision, arg, style, &mut out)?;
            }
        }
    }
    Ok(out)
}

/// A part of a text to be filled in.
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// Which argument, and its verb and precision or what is wrong with them.
    Clause(usize, Result<(char, Option<usize>), String>),
}

/// Goes through a text.
pub(crate) struct Pieces<'t> {
    rest: &'t str,
    next: usize,
}

impl<'t> Pieces<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { rest: text, next: 0 }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(after) = self.rest.strip_prefix('%') else {
            let end = self.rest.find('%').unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(Piece::Text(text));
        };
        if let Some(after) = after.strip_prefix('%') {
            let text = &self.rest[..1];
            self.rest = after;
            return Some(Piece::Text(text));
        }
        let clause = clause(after);
        self.rest = clause.as_ref().map_or("", |(_, _, rest)| rest);
        self.next += 1;
        Some(Piece::Clause(self.next - 1, clause.map(|(verb, precision, _)| (verb, precision))))
    }
}

fn clause(text: &str) -> Result<(char, Option<usize>, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let wrong = |why: &str| format!("could not parse formatting clause: {why}");
    let (mut precision, mut rest) = (None, text);
    if let Some(after) = text.strip_prefix('.') {
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        if length == after.len() {
            let why = "error while parsing precision: could not find end of precision specifier";
            return Err(wrong(why));
        }
        let digits = if length == 0 { "0" } else { &after[..length] };
        // Nobody needs more, and a text must not grow without bound.
        let number = digits.parse::<usize>().ok().filter(|number| *number <= 1_000);
        let why = "error while parsing precision: error while converting precision to integer";
        precision = Some(number.ok_or_else(|| wrong(why))?);
        rest = &after[length..];
    }
    let verb = rest.chars().next().unwrap_or(' ');
    if !"sdfebxXo".contains(verb) {
        return Err(wrong(&format!("unrecognized formatting clause \"{verb}\"")));
    }
    Ok((verb, precision, &rest[verb.len_utf8()..]))
}

/// What is wrong with giving a verb something of a type, in the words of the older of the two.
pub(crate) fn complaint(verb: char, ty: &Type) -> Option<String> {
    let (fits, rule) = match verb {
        's' => (
            !matches!(ty, Type::Object(_) | Type::Opaque(..)),
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
             types, durations, and timestamps",
        ),
        'd' => {
            (matches!(ty, Type::Int | Type::Uint), "decimal clause can only be used on integers")
        }
        'f' => (
            matches!(ty, Type::Double | Type::String),
            "fixed-point clause can only be used on doubles",
        ),
        'e' => (
            matches!(ty, Type::Double | Type::String),
            "scientific clause can only be used on doubles",
        ),
        'b' => (
            matches!(ty, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'o' => (matches!(ty, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        _ => (
            matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    if fits || matches!(ty, Type::Dyn) {
        return None;
    }
    Some(format!("error during formatting: {rule}, was given {}", ty.name()))
}

fn fill(
    verb: char,
    precision: Option<usize>,
    arg: &Value<'_>,
    style: Style,
    out: &mut String,
) -> Result<(), Error> {
    let precision = precision.unwrap_or(PRECISION);
    let text = match (verb, arg) {
        ('s', arg) => return shown(arg, style, false, out),
        ('d', Value::Int(number)) => number.to_string(),
        ('d', Value::Uint(number)) => number.to_string(),
        ('d', Value::Double(number)) if style == Style::Plain => double(*number),
        ('f' | 'e', arg) => match number(arg, style) {
            Some(number) if !number.is_finite() => double(number),
            Some(number) if verb == 'f' => fixed(number, precision, style),
            Some(number) => scientific(number, precision, style),
            None => return refused(verb, arg),
        },
        ('b', Value::Int(number)) => signed(*number, |n| format!("{n:b}")),
        ('b', Value::Uint(number)) => format!("{number:b}"),
        ('b', Value::Bool(answer)) => u8::from(*answer).to_string(),
        ('o', Value::Int(number)) => signed(*number, |n| format!("{n:o}")),
        ('o', Value::Uint(number)) => format!("{number:o}"),
        ('x' | 'X', arg) => match hexadecimal(arg) {
            Some(hex) if verb == 'X' => hex.to_ascii_uppercase(),
            Some(hex) => hex,
            None => return refused(verb, arg),
        },
        (verb, arg) => return refused(verb, arg),
    };
    out.push_str(&text);
    Ok(())
}

fn refused(verb: char, arg: &Value<'_>) -> Result<(), Error> {
    let complaint = complaint(verb, &arg.type_of());
    Err(complaint.map_or_else(Error::no_such_overload, Error::new))
}

/// As text; what stands within something is quoted in the older style.
fn shown(arg: &Value<'_>, style: Style, within: bool, out: &mut String) -> Result<(), Error> {
    spend(COPY + arg.as_str().map_or(0, str::len))?;
    let quoted = within && style == Style::Localised;
    match arg {
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                shown(&item?, style, true, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                let (mut key_text, mut value_text) = (String::new(), String::new());
                shown(&key, style, true, &mut key_text)?;
                shown(&value?, style, true, &mut value_text)?;
                entries.push((key_text, value_text));
            }
            entries.sort();
            let colon = if style == Style::Localised { ":" } else { ": " };
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}{colon}{value}")).collect();
            let _ = write!(out, "{{{}}}", entries.join(", "));
        }
        Value::String(text) if quoted => {
            let _ = write!(out, "{:?}", text.as_str());
        }
        Value::Bytes(_) if quoted => {
            let _ = write!(out, "b{:?}", arg.to_string());
        }
        Value::Timestamp(at) if quoted => {
            let _ = write!(out, "timestamp(\"{at}\")");
        }
        Value::Duration(span) if quoted => {
            let _ = write!(out, "duration(\"{}\")", span.in_seconds());
        }
        Value::Double(number) if quoted && number.is_finite() => {
            let _ = write!(out, "{number:.PRECISION$}");
        }
        Value::Duration(span) => out.push_str(&span.in_seconds()),
        Value::Double(number) if style == Style::Plain => out.push_str(&double(*number)),
        Value::Struct(_) | Value::Optional(_) | Value::Extension(_) => return refused('s', arg),
        arg => {
            let _ = write!(out, "{arg}");
        }
    }
    Ok(())
}

fn double(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    Value::Double(number).to_string()
}

fn number(arg: &Value<'_>, style: Style) -> Option<f64> {
    match arg {
        Value::Double(number) => Some(*number),
        Value::Int(number) if style == Style::Plain => Some(*number as f64),
        Value::Uint(number) if style == Style::Plain => Some(*number as f64),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn fixed(number: f64, precision: usize, style: Style) -> String {
    let text = format!("{number:.precision$}");
    if style == Style::Plain {
        return text;
    }
    // A comma before every third digit.
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

fn scientific(number: f64, precision: usize, style: Style) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain = format!("{:02}", exponent.abs());
    if style == Style::Plain {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{plain}");
    }
    let raised =
        |c: char| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][c as usize - '0' as usize];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised: String = plain.chars().map(raised).collect();
    format!("{digits}×10{sign}{raised}")
}

fn hexadecimal(arg: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    Some(match arg {
        Value::Int(number) => signed(*number, |n| format!("{n:x}")),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_str().as_bytes()),
        Value::Bytes(data) => bytes(data),
        _ => return None,
    })
}

fn signed(number: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}
