//! Literals: numbers, text, lists, maps, objects.

use std::sync::Arc;

use super::lexer::Token;
use super::{Parser, Read, unescape, unquoted};
use crate::ast::{Construction, Element, Entry, Expr, FieldInit, Kind, Literal};

impl Parser<'_, '_> {
    pub(super) fn literal(&mut self) -> Read {
        let first = self.peek();
        let negative = self.negative_number();
        if negative {
            self.next();
        }
        let lexeme = self.peek();
        let literal = match lexeme.token {
            Token::Int => {
                integer(lexeme.text, negative).map(Literal::Int).ok_or("invalid int literal")
            }
            Token::Uint => unsigned(lexeme.text).map(Literal::Uint).ok_or("invalid uint literal"),
            Token::Double => {
                double(lexeme.text, negative).map(Literal::Double).ok_or("invalid double literal")
            }
            Token::String => unescape::string(lexeme.text).map(|s| Literal::String(s.into())),
            Token::Bytes => unescape::bytes(&lexeme.text[1..]).map(|b| Literal::Bytes(b.into())),
            Token::True => Ok(Literal::Bool(true)),
            Token::False => Ok(Literal::Bool(false)),
            Token::Null => Ok(Literal::Null),
            _ => return self.unexpected(),
        };
        self.next();
        match literal {
            Ok(literal) => Some((self.node(first.offset, Kind::Literal(literal)), 0)),
            Err(message) => {
                self.reporter.report(first.offset, message);
                Some((self.node(first.offset, Kind::Unreadable), 0))
            }
        }
    }

    pub(super) fn list(&mut self) -> Read {
        let open = self.next();
        let id = self.id(open.offset);
        let mut elements = Vec::new();
        let mut below = 0;
        if self.accept(",").is_some() {
            self.expect("]")?;
            return Some((Expr { id, kind: Kind::List(elements) }, below));
        }
        while self.accept("]").is_none() {
            let optional = self.optional_mark()?;
            let besides = if elements.is_empty() { "],?" } else { "]?" };
            let (value, deep) = self.expression_or(besides)?;
            below = below.max(deep);
            elements.push(Element { value, optional });
            if self.accept(",").is_none() {
                self.close("]")?;
                break;
            }
        }
        Some((Expr { id, kind: Kind::List(elements) }, below))
    }

    fn optional_mark(&mut self) -> Option<bool> {
        let Some(mark) = self.accept("?") else {
            return Some(false);
        };
        if !self.syntax.optionals {
            self.reporter.report(mark.offset, "unsupported syntax '?'");
            return None;
        }
        Some(true)
    }

    pub(super) fn map(&mut self) -> Read {
        let open = self.next();
        let id = self.id(open.offset);
        let mut entries = Vec::new();
        let mut below = 0;
        if self.accept(",").is_some() {
            self.expect("}")?;
            return Some((Expr { id, kind: Kind::Map(entries) }, below));
        }
        while self.accept("}").is_none() {
            let optional = self.optional_mark()?;
            let besides = if entries.is_empty() { "},?" } else { "}?" };
            let (key, deep_key) = self.expression_or(besides)?;
            let colon = self.expect(":")?;
            let entry = self.id(colon.offset);
            let (value, deep) = self.expression()?;
            below = below.max(deep).max(deep_key);
            entries.push(Entry { id: entry, key, value, optional });
            if self.accept(",").is_none() {
                self.close("}")?;
                break;
            }
        }
        Some((Expr { id, kind: Kind::Map(entries) }, below))
    }

    pub(super) fn construction(&mut self, named: &Expr) -> Read {
        let name: Arc<str> = named.qualified_name().unwrap_or_default().into();
        let open = self.next();
        let id = self.id(open.offset);
        let mut fields = Vec::new();
        let mut below = 0;
        while self.accept("}").is_none() {
            let optional = self.optional_mark()?;
            let field = self.peek();
            let name: Arc<str> = match field.token {
                Token::Ident => field.text.into(),
                Token::EscapedIdent if self.syntax.escaped_names => unquoted(field.text),
                _ => {
                    return self.mismatch("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}");
                }
            };
            self.next();
            let colon = self.expect(":")?;
            let entry = self.id(colon.offset);
            let (value, deep) = self.expression()?;
            below = below.max(deep);
            fields.push(FieldInit { id: entry, name, value, optional });
            if self.accept(",").is_none() {
                self.close("}")?;
                break;
            }
        }
        Some((Expr { id, kind: Kind::Struct(Box::new(Construction { name, fields })) }, below))
    }
}

fn integer(text: &str, negative: bool) -> Option<i64> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => text.parse::<i128>().ok()?,
    };
    i64::try_from(if negative { -value } else { value }).ok()
}

fn unsigned(text: &str) -> Option<u64> {
    let text = &text[..text.len() - 1];
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn double(text: &str, negative: bool) -> Option<f64> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some(if negative { -value } else { value })
}
