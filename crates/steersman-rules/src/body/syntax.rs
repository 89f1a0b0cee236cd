//! What is wrong with JSON that cannot be read, in the words of Go's scanner: clients see them.

use steersman_values::quoted;

/// Nesting that Go's scanner refuses.
const DEPTH_MAX: usize = 10_000;

/// The first mistake in a text that should be one JSON value; `None` if it is one.
pub(crate) fn mistake(body: &[u8]) -> Option<String> {
    let mut scanner = Scanner { body, at: 0, depth: 0 };
    let scanned = scanner.value().and_then(|()| {
        scanner.space();
        scanner.next().map_or(Ok(()), |byte| Err(odd(byte, "after top-level value")))
    });
    scanned.err()
}

/// What is wrong with a body that serde refused, for `reason`, where Go has no words of its own.
pub fn complaint(body: &[u8], reason: &serde_json::Error) -> String {
    mistake(body).unwrap_or_else(|| reason.to_string())
}

struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
    depth: usize,
}

type Scanned = Result<(), String>;

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

fn odd(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        byte => format!("'{}'", quoted(&char::from(byte).to_string()).trim_matches('"')),
    };
    format!("invalid character {shown} {context}")
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn needed(&mut self) -> Result<u8, String> {
        self.next().ok_or_else(end)
    }

    /// Containers are walked with a counter instead of by recursion, so that nobody's nesting
    /// costs stack.
    fn value(&mut self) -> Scanned {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.space();
            match self.needed()? {
                b'{' => {
                    self.enter(&mut open, b'{')?;
                    self.space();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.leave(&mut open);
                    } else {
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.enter(&mut open, b'[')?;
                    self.space();
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.at += 1;
                    self.leave(&mut open);
                }
                byte => self.scalar(byte)?,
            }
            if !self.after_value(&mut open)? {
                return Ok(());
            }
        }
    }

    fn enter(&mut self, open: &mut Vec<u8>, kind: u8) -> Scanned {
        open.push(kind);
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err("exceeded max depth".to_owned()) } else { Ok(()) }
    }

    fn leave(&mut self, open: &mut Vec<u8>) {
        open.pop();
        self.depth -= 1;
    }

    /// Goes on behind a value; tells whether another one follows.
    fn after_value(&mut self, open: &mut Vec<u8>) -> Result<bool, String> {
        while let Some(kind) = open.last().copied() {
            self.space();
            match (kind, self.needed()?) {
                (b'{', b',') => {
                    self.space();
                    self.key()?;
                    return Ok(true);
                }
                (b'[', b',') => return Ok(true),
                (b'{', b'}') | (b'[', b']') => self.leave(open),
                (b'{', byte) => return Err(odd(byte, "after object key:value pair")),
                (_, byte) => return Err(odd(byte, "after array element")),
            }
        }
        Ok(false)
    }

    fn key(&mut self) -> Scanned {
        match self.needed()? {
            b'"' => self.string()?,
            byte => return Err(odd(byte, "looking for beginning of object key string")),
        }
        self.space();
        match self.needed()? {
            b':' => Ok(()),
            byte => Err(odd(byte, "after object key")),
        }
    }

    fn scalar(&mut self, first: u8) -> Scanned {
        match first {
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(first),
            byte => Err(odd(byte, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes().skip(1) {
            let byte = self.needed()?;
            if byte != expected {
                let expected = char::from(expected);
                return Err(odd(byte, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Scanned {
        let first = if first == b'-' { self.needed()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            byte => return Err(odd(byte, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            match self.needed()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(odd(byte, "after decimal point in numeric literal")),
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            match self.needed()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(odd(byte, "in exponent of numeric literal")),
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Scanned {
        loop {
            match self.needed()? {
                b'"' => return Ok(()),
                b'\\' => match self.needed()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.needed()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(odd(byte, r"in \u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(odd(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(odd(byte, "in string literal")),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mistake;

    #[test]
    fn mistakes_in_json_are_told_in_the_words_of_go() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{\"a\"", "unexpected end of JSON input"),
            ("[1,", "unexpected end of JSON input"),
            ("no json", "invalid character 'o' in literal null (expecting 'u')"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{a}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("'x'", r"invalid character '\'' looking for beginning of value"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", r"invalid character 'g' in \u hexadecimal character escape"),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+x", "invalid character 'x' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            ("tru", "unexpected end of JSON input"),
            ("\u{ff}", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(mistake(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        for text in ["null", " {\"a\": [1, -0.5e3, \"\\u00e9\", {}], \"b\": []} ", "\"x\"", "0"] {
            assert_eq!(mistake(text.as_bytes()), None, "{text}");
        }
        assert_eq!(mistake(&b"[".repeat(20_000)).as_deref(), Some("exceeded max depth"));
    }
}
