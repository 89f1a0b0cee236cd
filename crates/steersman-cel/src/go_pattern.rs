//! Regular expressions as Go writes them, written as the crate `regex` does. Both match in linear
//! time; they differ in what a class may contain, in what an escape stands for and in what is a
//! mistake, and Go's words for mistakes are Kubernetes'.

use std::fmt::Write;

use regex::Regex;

/// How often anything is repeated at most, nested repetitions multiplied.
const REPEAT_MAX: u64 = 1_000;

/// A pattern of Go's for the crate `regex`, or why it is none, in Go's words.
///
/// Groups lose their names: they mean nothing to whether a text matches.
pub fn translate_pattern(pattern: &str) -> Result<String, String> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        out: String::with_capacity(pattern.len()),
        groups: Vec::new(),
        group: Group::default(),
    };
    match parser.parse() {
        Ok(()) => Ok(parser.out),
        Err(Mistake { what, text }) => Err(format!("error parsing regexp: {what}: `{text}`")),
    }
}

/// What is wrong, and the part of the pattern that Go quotes.
struct Mistake<'t> {
    what: &'static str,
    text: &'t str,
}

fn mistake<'t, T>(what: &'static str, text: &'t str) -> Parsed<'t, T> {
    Err(Mistake { what, text })
}

type Parsed<'t, T> = Result<T, Mistake<'t>>;

/// What an open group has so far. A weight is how often the innermost part of something is repeated,
/// nested counts multiplied.
#[derive(Default)]
struct Group {
    /// The largest weight.
    weight: u64,
    /// The weight of what a repetition would repeat.
    last: Option<u64>,
}

impl Group {
    fn add(&mut self, weight: u64) {
        self.weight = self.weight.max(weight);
        self.last = Some(weight);
    }
}

struct Parser<'t> {
    whole: &'t str,
    rest: &'t str,
    out: String,
    /// The groups around this one.
    groups: Vec<Group>,
    group: Group,
}

/// The text before a rest of it.
fn before<'t>(text: &'t str, rest: &str) -> &'t str {
    &text[..text.len() - rest.len()]
}

fn split_first(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    chars.next().map(|first| (first, chars.as_str()))
}

impl<'t> Parser<'t> {
    fn parse(&mut self) -> Parsed<'t, ()> {
        // The text from the last repetition on, if nothing stands behind it.
        let mut repeated = None;
        while let Some((c, after)) = split_first(self.rest) {
            let here = self.rest;
            let last = repeated.take();
            self.rest = after;
            match c {
                '(' if after.starts_with('?') => self.flags(here)?,
                '(' => self.open("("),
                ')' => self.close()?,
                '|' => {
                    self.out.push('|');
                    self.group.last = None;
                }
                '^' | '$' | '.' => self.simple(&c.to_string()),
                '[' => self.class(here)?,
                '\\' => self.escaped(here)?,
                '*' | '+' | '?' => {
                    self.repeat(here, last, None)?;
                    repeated = Some(here);
                }
                '{' => match Count::of(here) {
                    None => self.literal(c),
                    Some((count, rest)) => {
                        self.rest = rest;
                        self.repeat(here, last, Some(count))?;
                        repeated = Some(here);
                    }
                },
                c => self.literal(c),
            }
        }
        match self.groups.is_empty() {
            true => Ok(()),
            false => mistake("missing closing )", self.whole),
        }
    }

    /// Writes something that counts as one.
    fn simple(&mut self, text: &str) {
        self.out.push_str(text);
        self.group.add(1);
    }

    fn literal(&mut self, c: char) {
        self.simple(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    fn open(&mut self, text: &str) {
        self.out.push_str(text);
        self.groups.push(std::mem::take(&mut self.group));
    }

    fn close(&mut self) -> Parsed<'t, ()> {
        let Some(outer) = self.groups.pop() else { return mistake("unexpected )", self.whole) };
        let inner = std::mem::replace(&mut self.group, outer);
        self.out.push(')');
        self.group.add(inner.weight.max(1));
        Ok(())
    }

    /// A repetition: its operator begins here, and what is left follows it.
    fn repeat(
        &mut self,
        here: &'t str,
        last: Option<&'t str>,
        count: Option<Count>,
    ) -> Parsed<'t, ()> {
        if let Some(count) = &count
            && !count.is_possible()
        {
            return mistake("invalid repeat count", before(here, self.rest));
        }
        self.rest = self.rest.strip_prefix('?').unwrap_or(self.rest);
        if let Some(last) = last {
            return mistake("invalid nested repetition operator", before(last, self.rest));
        }
        let operator = before(here, self.rest);
        let Some(weight) = self.group.last else {
            return mistake("missing argument to repetition operator", operator);
        };
        let weight = count.as_ref().map_or(weight, |count| count.weight(weight));
        if weight > REPEAT_MAX && count.is_some_and(|count| count.is_several()) {
            return mistake("invalid repeat count", operator);
        }
        self.out.push_str(operator);
        self.group.add(weight);
        Ok(())
    }

    /// What begins with `(?`: a name, or flags.
    fn flags(&mut self, here: &'t str) -> Parsed<'t, ()> {
        let inner = &here[2..];
        let name = inner.strip_prefix("P<").filter(|name| !name.is_empty());
        let name = name.or_else(|| inner.strip_prefix('<').filter(|name| !name.is_empty()));
        if let Some(name) = name {
            let Some((name, rest)) = name.split_once('>') else {
                return mistake("invalid named capture", here);
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return mistake("invalid named capture", before(here, rest));
            }
            self.rest = rest;
            self.open("(");
            return Ok(());
        }
        let mut set = String::new();
        let mut unset: Option<String> = None;
        self.rest = inner;
        while let Some((c, rest)) = split_first(self.rest) {
            self.rest = rest;
            match c {
                'i' | 'm' | 's' | 'U' => unset.as_mut().unwrap_or(&mut set).push(c),
                '-' if unset.is_none() => unset = Some(String::new()),
                ':' | ')' if unset.as_ref().is_none_or(|unset| !unset.is_empty()) => {
                    let flags = flags(&set, unset.as_deref().unwrap_or_default());
                    if c == ':' {
                        self.open(&format!("(?{flags}:"));
                    } else if !flags.is_empty() {
                        let _ = write!(self.out, "(?{flags})");
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        mistake("invalid or unsupported Perl syntax", before(here, self.rest))
    }

    /// What begins with a backslash, outside of a class.
    fn escaped(&mut self, here: &'t str) -> Parsed<'t, ()> {
        let after = &here[1..];
        if let Some((c @ ('A' | 'z' | 'b' | 'B'), rest)) = split_first(after) {
            self.rest = rest;
            // What a word is, ASCII alone decides.
            let text =
                if matches!(c, 'A' | 'z') { format!("\\{c}") } else { format!("(?-u:\\{c})") };
            self.simple(&text);
            return Ok(());
        }
        if let Some(quoted) = after.strip_prefix('Q') {
            let (quoted, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.rest = rest;
            quoted.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        if let Some((set, rest)) = unicode_class(here)? {
            self.rest = rest;
            self.simple(&set);
            return Ok(());
        }
        if let Some((set, rest)) = ascii_class(here) {
            self.rest = rest;
            self.simple(&format!("[{set}]"));
            return Ok(());
        }
        let (code, rest) = escape(here)?;
        self.rest = rest;
        match char::from_u32(code) {
            Some(c) => self.literal(c),
            None => self.simple("[^\\x00-\\x{10FFFF}]"), // half a character is nowhere in a text
        }
        Ok(())
    }

    /// A class in brackets, which begins here.
    fn class(&mut self, here: &'t str) -> Parsed<'t, ()> {
        let mut out = String::from("[");
        let mut rest = &here[1..];
        if let Some(after) = rest.strip_prefix('^') {
            out.push('^');
            rest = after;
        }
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            if let Some((name, after)) = named_class(rest)? {
                out.push_str(name);
                rest = after;
            } else if let Some((set, after)) = unicode_class(rest)? {
                out.push_str(&set);
                rest = after;
            } else if let Some((set, after)) = ascii_class(rest) {
                out.push_str(set);
                rest = after;
            } else {
                let range = rest;
                let low;
                (low, rest) = class_char(rest, here)?;
                let mut high = low;
                if let Some(after) = rest.strip_prefix('-')
                    && !after.is_empty()
                    && !after.starts_with(']')
                {
                    (high, rest) = class_char(after, here)?;
                    if high < low {
                        return mistake("invalid character class range", before(range, rest));
                    }
                }
                push_range(&mut out, low, high);
            }
        }
        out.push(']');
        self.rest = &rest[1..];
        self.simple(&out);
        Ok(())
    }
}

/// How often something is repeated at least and at most.
struct Count {
    least: u64,
    /// Without a limit if there is none.
    most: Option<u64>,
}

impl Count {
    /// The count that begins here, and what follows it; any other brace is a brace.
    fn of(here: &str) -> Option<(Self, &str)> {
        let (least, rest) = number(here.strip_prefix('{')?)?;
        let (most, rest) = match rest.strip_prefix(',') {
            None => (Some(least), rest),
            Some(rest) if rest.starts_with('}') => (None, rest),
            Some(rest) => {
                let (most, rest) = number(rest)?;
                (Some(most), rest)
            }
        };
        Some((Self { least, most }, rest.strip_prefix('}')?))
    }

    fn is_possible(&self) -> bool {
        self.most.unwrap_or(self.least) <= REPEAT_MAX
            && self.least <= self.most.unwrap_or(REPEAT_MAX)
    }

    /// Whether it says more than whether something is there.
    fn is_several(&self) -> bool {
        self.least >= 2 || self.most.is_some_and(|most| most >= 2)
    }

    fn weight(&self, of: u64) -> u64 {
        match self.most {
            Some(0) => 1,
            most => of.saturating_mul(most.unwrap_or(self.least).max(1)),
        }
    }
}

/// A number without leading zeros, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_number = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
    is_number.then(|| (digits.parse().unwrap_or(u64::MAX), rest))
}

/// Flags to set and to unset, each once.
fn flags(set: &str, unset: &str) -> String {
    let known = ['i', 'm', 's', 'U'];
    let mut flags: String =
        known.into_iter().filter(|f| set.contains(*f) && !unset.contains(*f)).collect();
    if !unset.is_empty() {
        flags.push('-');
        flags.extend(known.into_iter().filter(|flag| unset.contains(*flag)));
    }
    flags
}

const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// A class by its name, such as `[:alpha:]`, and what follows it.
fn named_class(text: &str) -> Parsed<'_, Option<(&str, &str)>> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|inner| inner.split_once(":]"))
    else {
        return Ok(None);
    };
    let whole = before(text, rest);
    match NAMED_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        true => Ok(Some((whole, rest))),
        false => mistake("invalid character class range", whole),
    }
}

/// A class of Unicode, such as `\pL` or `\p{Greek}`, as a class, and what follows it.
fn unicode_class(text: &str) -> Parsed<'_, Option<(String, &str)>> {
    let Some(inner) = text.strip_prefix("\\p").or_else(|| text.strip_prefix("\\P")) else {
        return Ok(None);
    };
    let (name, rest) = match inner.strip_prefix('{') {
        Some(braced) => match braced.split_once('}') {
            Some(parts) => parts,
            None => return mistake("invalid character class range", text),
        },
        None => inner.split_at(inner.chars().next().map_or(0, char::len_utf8)),
    };
    let mut negated = text.starts_with("\\P");
    let mut plain = name;
    if let Some(inverse) = name.strip_prefix('^') {
        negated = !negated;
        plain = inverse;
    }
    let letter = if negated { 'P' } else { 'p' };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let known = !plain.is_empty() && plain.chars().all(is_name);
    // Go knows categories and scripts, and no other properties.
    let set = ["gc", "sc"].into_iter().map(|of| format!("\\{letter}{{{of}={plain}}}"));
    let set = set.filter(|_| known).find(|set| Regex::new(set).is_ok());
    match set {
        Some(set) => Ok(Some((set, rest))),
        None => mistake("invalid character class range", before(text, rest)),
    }
}

/// A class by a letter, which Go knows as one of ASCII, as what stands in brackets, and what follows.
fn ascii_class(text: &str) -> Option<(&'static str, &str)> {
    let (letter, rest) = split_first(text.strip_prefix('\\')?)?;
    let set = match letter {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0c\\r\\x20",
        'D' => "\\x00-/:-\\x{10FFFF}",
        'W' => "\\x00-/:-@\\[-\\^`\\{-\\x{10FFFF}",
        'S' => "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\x{10FFFF}",
        _ => return None,
    };
    Some((set, rest))
}

/// One character of a class, by its code, and what follows it.
fn class_char<'t>(text: &'t str, class: &'t str) -> Parsed<'t, (u32, &'t str)> {
    match split_first(text) {
        None => mistake("missing closing ]", class),
        Some(('\\', _)) => escape(text),
        Some((c, rest)) => Ok((u32::from(c), rest)),
    }
}

/// Writes a range without the halves of characters that are none by themselves.
fn push_range(out: &mut String, low: u32, high: u32) {
    for (from, to) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
        if from <= to {
            let _ = write!(out, "\\x{{{from:x}}}-\\x{{{to:x}}}");
        }
    }
}

/// The code of an escaped character, and what follows it.
fn escape(text: &str) -> Parsed<'_, (u32, &str)> {
    let Some((c, mut rest)) = split_first(&text[1..]) else {
        return mistake("trailing backslash at end of expression", "");
    };
    let octal = |rest: &str| rest.bytes().next().filter(|b| (b'0'..=b'7').contains(b));
    let code = match c {
        // A single digit would refer to a group.
        '0'..='7' if c == '0' || octal(rest).is_some() => {
            let mut code = u32::from(c) - u32::from('0');
            for _ in 0..2 {
                let Some(digit) = octal(rest) else { break };
                code = code * 8 + u32::from(digit - b'0');
                rest = &rest[1..];
            }
            Some(code)
        }
        'x' => hexadecimal(&mut rest),
        'a' => Some(7),
        'f' => Some(12),
        't' => Some(9),
        'n' => Some(10),
        'r' => Some(13),
        'v' => Some(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    match code {
        Some(code) => Ok((code, rest)),
        None => mistake("invalid escape sequence", before(text, rest)),
    }
}

/// Two hexadecimal digits, or any number of them in braces; takes from the rest what was looked at.
fn hexadecimal(rest: &mut &str) -> Option<u32> {
    let mut next = || {
        let (c, after) = split_first(rest)?;
        *rest = after;
        Some(c)
    };
    let first = next()?;
    if first != '{' {
        let second = next();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut code = None;
    loop {
        let c = next()?;
        if c == '}' {
            return code;
        }
        let more = code.unwrap_or(0) * 16 + c.to_digit(16)?;
        code = Some(more).filter(|code| *code <= u32::from(char::MAX));
        code?;
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::translate_pattern;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let cases = include_str!("go_pattern_matches.txt").lines();
        let mut count = 0;
        for line in cases.filter(|line| !line.starts_with('#')) {
            let mut words = line.split('\t');
            let [pattern, text, expected] = [(); 3].map(|()| words.next().unwrap_or_default());
            let translated = translate_pattern(pattern).unwrap();
            let regex = Regex::new(&translated).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert_eq!(regex.is_match(text).to_string(), expected, "{pattern} {text:?}");
            count += 1;
        }
        assert!(count > 50, "{count}");
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_go() {
        let mut count = 0;
        for line in include_str!("go_pattern_mistakes.txt").lines() {
            if line.starts_with('#') {
                continue;
            }
            let (pattern, expected) = line.split_once('\t').unwrap();
            let found = translate_pattern(pattern).err().unwrap_or_default();
            assert_eq!(found, format!("error parsing regexp: {expected}"), "{pattern}");
            count += 1;
        }
        assert!(count > 50, "{count}");
    }
}
