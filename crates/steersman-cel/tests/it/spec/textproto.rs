//! Protobuf's text format, as much as the suite uses.

/// A message: its fields in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) fields: Vec<(String, Field)>,
}

#[derive(Clone, Debug)]
pub(super) enum Field {
    /// A number, a name or text; text as its bytes.
    Scalar(Vec<u8>),
    Message(Message),
}

impl Message {
    fn all<'m, 'n>(&'m self, name: &'n str) -> impl Iterator<Item = &'m Field> + use<'m, 'n> {
        self.fields.iter().filter(move |(known, _)| known == name).map(|(_, field)| field)
    }

    pub(super) fn message(&self, name: &str) -> Option<&Message> {
        self.messages(name).next()
    }

    pub(super) fn messages<'m, 'n>(
        &'m self,
        name: &'n str,
    ) -> impl Iterator<Item = &'m Message> + use<'m, 'n> {
        self.all(name).filter_map(|field| match field {
            Field::Message(message) => Some(message),
            Field::Scalar(_) => None,
        })
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all(name).find_map(|field| match field {
            Field::Scalar(bytes) => Some(bytes.as_slice()),
            Field::Message(_) => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Reads a file.
pub(super) fn parse(text: &str) -> Message {
    Reader { rest: text }.fields()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        loop {
            self.rest =
                self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ';');
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]);
        }
    }

    fn fields(&mut self) -> Message {
        let mut message = Message::default();
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with(['}', '>']) {
                self.rest = self.rest.get(1..).unwrap_or("");
                return message;
            }
            let name = self.name();
            self.skip();
            self.rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
            self.skip();
            if let Some(rest) = self.rest.strip_prefix('[') {
                self.rest = rest;
                loop {
                    self.skip();
                    if let Some(rest) = self.rest.strip_prefix(']') {
                        self.rest = rest;
                        break;
                    }
                    let field = self.field();
                    message.fields.push((name.clone(), field));
                }
            } else {
                let field = self.field();
                message.fields.push((name, field));
            }
        }
    }

    fn name(&mut self) -> String {
        if self.rest.starts_with('[') {
            let end = self.rest.find(']').unwrap();
            let name = self.rest[1..end].to_owned();
            self.rest = &self.rest[end + 1..];
            return name;
        }
        let end =
            self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        assert!(end > 0, "a name before {:?}", &self.rest[..self.rest.len().min(60)]);
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    fn field(&mut self) -> Field {
        if self.rest.starts_with(['{', '<']) {
            self.rest = &self.rest[1..];
            return Field::Message(self.fields());
        }
        if self.rest.starts_with(['"', '\'']) {
            let mut bytes = Vec::new();
            while self.rest.starts_with(['"', '\'']) {
                self.string(&mut bytes);
                self.skip();
            }
            return Field::Scalar(bytes);
        }
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || ",;]}>".contains(c))
            .unwrap_or(self.rest.len());
        let (scalar, rest) = self.rest.split_at(end);
        self.rest = rest;
        Field::Scalar(scalar.as_bytes().to_vec())
    }

    fn string(&mut self, out: &mut Vec<u8>) {
        let quote = self.rest.as_bytes()[0];
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        while bytes[at] != quote {
            if bytes[at] != b'\\' {
                out.push(bytes[at]);
                at += 1;
                continue;
            }
            at += 1;
            let digits = |radix: u32, max: usize| {
                bytes[at..]
                    .iter()
                    .skip(usize::from(radix == 16))
                    .take(max)
                    .take_while(|b| char::from(**b).is_digit(radix))
                    .count()
            };
            match bytes[at] {
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'a' => out.push(7),
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'v' => out.push(11),
                b'0'..=b'7' => {
                    let length = digits(8, 3);
                    let text = &self.rest[at..at + length];
                    out.push(u8::from_str_radix(text, 8).unwrap());
                    at += length - 1;
                }
                b'x' | b'X' => {
                    let length = digits(16, 2);
                    out.push(u8::from_str_radix(&self.rest[at + 1..at + 1 + length], 16).unwrap());
                    at += length;
                }
                marker @ (b'u' | b'U') => {
                    let length = if marker == b'u' { 4 } else { 8 };
                    let code =
                        u32::from_str_radix(&self.rest[at + 1..at + 1 + length], 16).unwrap();
                    let c = char::from_u32(code).unwrap_or('\u{fffd}');
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    at += length;
                }
                other => out.push(other),
            }
            at += 1;
        }
        self.rest = &self.rest[at + 1..];
    }
}
