//! Regular expressions in Go's syntax, matched in linear time.

use regex::{Regex, RegexBuilder};

/// A compiled pattern.
pub(crate) type Pattern = Regex;

/// How many bytes a compiled pattern may take.
const SIZE_MAX: usize = 4 << 20;
/// How often Go repeats at most.
const REPEAT_MAX: u32 = 1_000;

/// Compiles a pattern, or says as Go does why not.
pub(crate) fn compile(pattern: &str) -> Result<Pattern, String> {
    let wrong = |why: &str| format!("error parsing regexp: {why}");
    let translated = translate(pattern).map_err(|why| wrong(&why))?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_MAX)
        .dfa_size_limit(SIZE_MAX)
        .nest_limit(250)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => wrong("expression too large"),
            error => wrong(&reason(pattern, &error)),
        })
}

/// The last line of what the crate says, and the pattern: Go names both.
fn reason(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let go = match last {
        last if last.contains("unclosed group") => "missing closing )",
        last if last.contains("unopened group") => "unexpected )",
        last if last.contains("unclosed character class") => "missing closing ]",
        last if last.contains("repetition operator missing") => {
            "missing argument to repetition operator"
        }
        last if last.contains("invalid character class range") => "invalid character class range",
        last if last.contains("look-around") => "invalid or unsupported Perl syntax",
        last if last.contains("unrecognized escape") => "invalid escape sequence",
        last => last,
    };
    format!("{go}: `{pattern}`")
}

/// What Go writes differently from the crate.
fn translate(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // Repeating what already repeats is a mistake in Go.
    let mut repeated = false;
    while let Some(c) = rest.chars().next() {
        let repeats = matches!(c, '*' | '+' | '?') || (c == '{' && is_repetition(rest));
        if repeats && repeated {
            return Err(format!("invalid nested repetition operator: `{c}`"));
        }
        let lazy = repeats && c != '{' && rest[1..].starts_with('?');
        if lazy {
            out.push_str(&rest[..2]);
            (rest, repeated) = (&rest[2..], true);
            continue;
        }
        // A question mark behind a parenthesis repeats nothing.
        repeated = repeats && !out.ends_with('(');
        rest = match c {
            '\\' => escape(rest, false, &mut out)?,
            '[' => class(rest, &mut out)?,
            '{' => {
                let after = repetition(rest, &mut out)?;
                let lazy = repeats && after.starts_with('?');
                out.push_str(if lazy { "?" } else { "" });
                if lazy { &after[1..] } else { after }
            }
            c => {
                out.push(c);
                &rest[c.len_utf8()..]
            }
        };
    }
    Ok(out)
}

/// An escape: classes of ASCII, quoted text, octal numbers.
fn escape<'t>(rest: &'t str, in_class: bool, out: &mut String) -> Result<&'t str, String> {
    let Some(c) = rest[1..].chars().next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let after = &rest[1 + c.len_utf8()..];
    let set = match c {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0c\\r ",
        'D' => "\\x00-/:-\\x{10FFFF}",
        'W' => "\\x00-/:-@\\[-\\^`\\{-\\x{10FFFF}",
        'S' => "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\x{10FFFF}",
        'b' | 'B' if !in_class => {
            out.push_str(&format!("(?-u:\\{c})"));
            return Ok(after);
        }
        'Q' if !in_class => {
            let end = after.find("\\E").unwrap_or(after.len());
            out.push_str(&regex::escape(&after[..end]));
            return Ok(after[end..].strip_prefix("\\E").unwrap_or(&after[end..]));
        }
        'C' => return Err("invalid escape sequence: `\\C`".to_owned()),
        '0'..='7' => {
            let length = after.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
            if c != '0' && length == 0 {
                return Err(format!("invalid escape sequence: `\\{c}`"));
            }
            let value = u32::from_str_radix(&rest[1..2 + length], 8).unwrap_or(0);
            out.push_str(&format!("\\x{{{value:x}}}"));
            return Ok(&after[length..]);
        }
        'x' | 'p' | 'P' | 'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'A' | 'z' => {
            out.push('\\');
            out.push(c);
            // What stands between braces is not a repetition.
            if let Some(inner) = after.strip_prefix('{') {
                let end = inner.find('}').map_or(inner.len(), |end| end + 1);
                out.push('{');
                out.push_str(&inner[..end]);
                return Ok(&inner[end..]);
            }
            return Ok(after);
        }
        c if c.is_ascii_punctuation() => {
            out.push_str(&regex::escape(&c.to_string()));
            return Ok(after);
        }
        c => return Err(format!("invalid escape sequence: `\\{c}`")),
    };
    if in_class {
        out.push_str(set);
    } else {
        out.push_str(&format!("[{set}]"));
    }
    Ok(after)
}

/// A bracketed class: in Go a bracket inside is a bracket, and there is no arithmetic.
fn class<'t>(rest: &'t str, out: &mut String) -> Result<&'t str, String> {
    let whole = rest;
    out.push('[');
    let mut rest = &rest[1..];
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let Some(c) = rest.chars().next() else {
            return Err(format!("missing closing ]: `{whole}`"));
        };
        rest = match c {
            ']' if !first => {
                out.push(']');
                return Ok(&rest[1..]);
            }
            '\\' => escape(rest, true, out)?,
            '[' if rest.starts_with("[:") && rest.contains(":]") => {
                let end = rest.find(":]").map_or(rest.len(), |at| at + 2);
                out.push_str(&rest[..end]);
                &rest[end..]
            }
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(c);
                &rest[1..]
            }
            '-' if first || rest.starts_with("-]") || rest.starts_with("--") => {
                out.push_str("\\-");
                &rest[1..]
            }
            c => {
                out.push(c);
                &rest[c.len_utf8()..]
            }
        };
        first = false;
    }
}

/// Whether a brace starts a count.
fn is_repetition(rest: &str) -> bool {
    let Some(inner) = rest.find('}').map(|end| &rest[1..end]) else { return false };
    let (min, max) = inner.split_once(',').unwrap_or((inner, "0"));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !min.is_empty() && digits(min) && digits(max)
}

/// `{2,3}` repeats, any other brace is a brace.
fn repetition<'t>(rest: &'t str, out: &mut String) -> Result<&'t str, String> {
    if !is_repetition(rest) {
        out.push_str("\\{");
        return Ok(&rest[1..]);
    }
    let inner = rest.find('}').map_or("", |end| &rest[1..end]);
    let (min, max) = inner.split_once(',').unwrap_or((inner, inner));
    let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
    if number(min) > REPEAT_MAX
        || (!max.is_empty() && (number(max) > REPEAT_MAX || number(max) < number(min)))
    {
        return Err(format!("invalid repeat count: `{{{inner}}}`"));
    }
    out.push_str(&rest[..inner.len() + 2]);
    Ok(&rest[inner.len() + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w$", "é", false),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            ("a{,2}", "a{,2}", true),
            ("x{", "x{", true),
            ("^[[]$", "[", true),
            ("^[a&&b]+$", "a&b", true),
            (r"^[\d-]+$", "1-2", true),
            (r"^\101$", "A", true),
            (r"^[^\s]+$", "ab", true),
            (r"^\pL+$", "äb", true),
            ("^a+?b*?$", "ab", true),
            ("^(?i)AB{2}?$", "abb", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} {text}");
        }
        for bad in ["(", "a{1001}", "[a", r"\", "(?=a)", "*a", r"\C", "x++", "a**", "a{2}*"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }
}
