//! Texts in quotes, as Go writes them into messages and files.

use std::fmt::Write as _;

/// A text in quotes, as Go's `%q` and `strconv.Quote` write it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => escape(c, &mut out),
        }
    }
    out.push('"');
    out
}

/// JSON as Go writes it: such that it may stand in a page.
pub fn html_escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // A text takes everything.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Whether Go prints a character as it is, even in quotes: Rust would do so where it cannot combine
/// with what stands before.
pub fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~') || (!c.is_ascii() && format!("a{c}").escape_debug().count() == 2)
}

fn escape(c: char, out: &mut String) {
    let code = u32::from(c);
    // A text takes everything.
    let _ = match code {
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::{html_escaped, quoted};

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, shown) in [
            ("object.a == 'x'", r#""object.a == 'x'""#),
            ("a \"b\" \\", r#""a \"b\" \\""#),
            ("a\n\u{1}\u{7f}\u{200b}", r#""a\n\x01\x7f\u200b""#),
            ("\u{e9}e\u{301} \u{1f600}", "\"\u{e9}e\u{301} \u{1f600}\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }

    #[test]
    fn json_may_stand_in_a_page() {
        let json = "{\"if\":\"1 < 2 && 3 > 2\u{2028}\"}";
        let expected = r#"{"if":"1 \u003c 2 \u0026\u0026 3 \u003e 2\u2028"}"#;
        assert_eq!(html_escaped(json), expected);
    }
}
