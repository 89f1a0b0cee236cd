//! Text to tokens.

use crate::source::Reporter;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    Ident,
    /// A name between backquotes.
    EscapedIdent,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    True,
    False,
    Null,
    In,
    /// An operator or a mark, by its text.
    Mark(&'static str),
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme<'t> {
    pub(crate) token: Token,
    pub(crate) text: &'t str,
    /// Characters before it.
    pub(crate) offset: u32,
}

const MARKS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%",
];

/// Splits a text, reporting what is no token and going on after it.
pub(crate) fn tokens<'t>(text: &'t str, reporter: &mut Reporter<'_>) -> Vec<Lexeme<'t>> {
    let mut lexer = Lexer { rest: text, offset: 0 };
    let mut out = Vec::new();
    loop {
        lexer.skip_blank();
        if lexer.rest.is_empty() {
            out.push(Lexeme { token: Token::End, text: "<EOF>", offset: lexer.offset });
            return out;
        }
        match lexer.next_token() {
            Some((token, length)) => {
                let (offset, text) = lexer.take(length);
                out.push(Lexeme { token, text, offset });
            }
            None => {
                let length = unreadable_length(lexer.rest);
                let (offset, text) = lexer.take(length);
                let message = format!("Syntax error: token recognition error at: '{text}'");
                reporter.report(offset, message);
            }
        }
    }
}

/// How much of a text is refused: up to and with the character that fits no token.
fn unreadable_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let failed = match bytes.first() {
        Some(b'=' | b'&' | b'|') => 1,
        Some(quote @ (b'"' | b'\'')) => failed_string(bytes, *quote),
        Some(b'`') => 1 + rest[1..].bytes().take_while(|b| in_escaped(*b)).count(),
        _ => 0,
    };
    let failed = failed.min(rest.len());
    let failed = (0..=failed).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
    failed + rest[failed..].chars().next().map_or(0, char::len_utf8)
}

/// Where a string stops being one.
fn failed_string(bytes: &[u8], quote: u8) -> usize {
    let triple = bytes.starts_with(&[quote; 3]);
    let mut at = if triple { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\n' | b'\r' if !triple => return at,
            b'\\' => match escape_length(&bytes[at + 1..]) {
                Some(length) => at += 1 + length,
                None => return at + 1,
            },
            _ => at += 1,
        }
    }
    at
}

struct Lexer<'t> {
    rest: &'t str,
    offset: u32,
}

impl<'t> Lexer<'t> {
    fn take(&mut self, length: usize) -> (u32, &'t str) {
        let (text, rest) = self.rest.split_at(length);
        let offset = self.offset;
        self.rest = rest;
        self.offset += u32::try_from(text.chars().count()).unwrap_or(u32::MAX / 2);
        (offset, text)
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.len()
                - self.rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']).len();
            self.take(blank);
            if !self.rest.starts_with("//") {
                return;
            }
            let comment = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take(comment);
        }
    }

    fn next_token(&self) -> Option<(Token, usize)> {
        let rest = self.rest;
        if let Some(found) = string(rest) {
            return Some(found);
        }
        let first = *rest.as_bytes().first()?;
        if first.is_ascii_alphabetic() || first == b'_' {
            return Some(word(rest));
        }
        if let Some(found) = number(rest) {
            return Some(found);
        }
        if first == b'`' {
            return escaped(rest).map(|length| (Token::EscapedIdent, length));
        }
        let mark = MARKS.iter().find(|mark| rest.starts_with(**mark))?;
        Some((Token::Mark(mark), mark.len()))
    }
}

fn word(rest: &str) -> (Token, usize) {
    let length =
        rest.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(rest.len());
    let token = match &rest[..length] {
        "true" => Token::True,
        "false" => Token::False,
        "null" => Token::Null,
        "in" => Token::In,
        _ => Token::Ident,
    };
    (token, length)
}

fn in_escaped(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"_.-/ ".contains(&b)
}

fn escaped(rest: &str) -> Option<usize> {
    let length = rest[1..].bytes().position(|b| !in_escaped(b))?;
    (length > 0 && rest.as_bytes()[length + 1] == b'`').then_some(length + 2)
}

fn number(rest: &str) -> Option<(Token, usize)> {
    let bytes = rest.as_bytes();
    let digits =
        |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count() + from;
    let suffixed = |end: usize| {
        if matches!(bytes.get(end), Some(b'u' | b'U')) {
            (Token::Uint, end + 1)
        } else {
            (Token::Int, end)
        }
    };
    if bytes.starts_with(b"0x") {
        let end = bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count() + 2;
        if end > 2 {
            return Some(suffixed(end));
        }
    }
    let whole = digits(0);
    let mut end = whole;
    let mut double = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
        double = true;
    }
    if end == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        if bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
            end = digits(exponent);
            double = true;
        }
    }
    Some(if double { (Token::Double, end) } else { suffixed(end) })
}

/// A string or bytes, with the marks before it.
fn string(rest: &str) -> Option<(Token, usize)> {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let mut token = Token::String;
    if matches!(bytes.first(), Some(b'b' | b'B')) {
        token = Token::Bytes;
        at = 1;
    }
    let raw = matches!(bytes.get(at), Some(b'r' | b'R'));
    at += usize::from(raw);
    let quote = *bytes.get(at).filter(|b| matches!(b, b'"' | b'\''))?;
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let end = if triple {
        // Where it has no end, the first two quotes are a text without characters.
        end_of_triple(bytes, at + 3, quote, raw).unwrap_or(at + 2)
    } else {
        end_of_line_string(bytes, at + 1, quote, raw)?
    };
    Some((token, end))
}

fn end_of_triple(bytes: &[u8], mut at: usize, quote: u8, raw: bool) -> Option<usize> {
    while at < bytes.len() {
        if bytes[at..].starts_with(&[quote; 3]) {
            return Some(at + 3);
        }
        at += if bytes[at] == b'\\' && !raw { 1 + escape_length(&bytes[at + 1..])? } else { 1 };
    }
    None
}

fn end_of_line_string(bytes: &[u8], mut at: usize, quote: u8, raw: bool) -> Option<usize> {
    while at < bytes.len() {
        match bytes[at] {
            b if b == quote => return Some(at + 1),
            b'\n' | b'\r' => return None,
            b'\\' if !raw => at += 1 + escape_length(&bytes[at + 1..])?,
            _ => at += 1,
        }
    }
    None
}

/// How many bytes the escape takes after its backslash.
fn escape_length(rest: &[u8]) -> Option<usize> {
    let hex = |count: usize| {
        let digits = rest.get(1..=count)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(count + 1)
    };
    match *rest.first()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
            Some(1)
        }
        b'x' | b'X' => hex(2),
        b'u' => hex(4),
        b'U' => hex(8),
        b'0'..=b'3' => {
            let digits = rest.get(1..3)?;
            digits.iter().all(|b| (b'0'..=b'7').contains(b)).then_some(3)
        }
        _ => None,
    }
}
