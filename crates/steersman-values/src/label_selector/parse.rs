//! The grammar of label selectors, word by word as Kubernetes reads it, with its complaints.
//!
//! `in` and `notin` are operators where an operator may stand and names elsewhere. Values are
//! kept sorted and once, so that matching can search them.

use super::{LabelRequirement, Operator};
use crate::{names, quoted};

/// A word of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// `= == != ! ( ) , > <`
    Symbol(&'a str),
    End,
}

/// The symbols of two characters; those of one are `= ! ( ) , > <`.
const SYMBOLS: [&str; 2] = ["==", "!="];
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// Reads a selector; the error is the text for the client.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Symbol("!") => {}
            other => {
                let found = other.text();
                return Err(format!(
                    "found '{found}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        let requirement = parser.requirement();
        requirements
            .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => {
                let after = parser.peek();
                if !matches!(after, Token::Word(_) | Token::Symbol("!")) {
                    let found = after.text();
                    return Err(format!("found '{found}', expected: identifier after ','"));
                }
            }
            other => {
                return Err(format!("found '{}', expected: ',' or 'end of string'", other.text()));
            }
        }
    }
}

/// Splits a selector into words and symbols.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_symbol = |c: char| "=!(),><".contains(c);
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let token = if is_symbol(first) {
            // Every symbol stands alone, so the longer ones need only be looked for first.
            let pair = rest.get(..2).filter(|pair| SYMBOLS.contains(pair));
            Token::Symbol(pair.unwrap_or(&rest[..1]))
        } else {
            let end = rest.find(|c| is_symbol(c) || is_space(c)).unwrap_or(rest.len());
            Token::Word(&rest[..end])
        };
        let len = token.text().len();
        tokens.push(token);
        rest = rest[len..].trim_start_matches(is_space);
    }
    tokens
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let absent = self.peek() == Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let errors = names::qualified_name(key);
        if !errors.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quoted(key), errors.join("; ")));
        }
        let requirement =
            |operator, values| LabelRequirement { key: key.to_owned(), operator, values };
        // What is absent has no value to compare.
        if absent {
            return Ok(requirement(Operator::DoesNotExist, Vec::new()));
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(requirement(Operator::Exists, Vec::new()));
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        let requirement = requirement(operator, values);
        check_values(&requirement)?;
        Ok(requirement)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=" | "==") => Operator::Equals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return Err(format!("found '{}', expected: {OPERATORS}", other.text())),
        })
    }

    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(value) => {
                self.next();
                Ok(value.to_owned())
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// `(a,b)`; between two commas, and between nothing, stands the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Token::Word(value) => {
                    self.next();
                    values.push(value.to_owned());
                }
                Token::Symbol("," | ")") => values.push(String::new()),
                other => {
                    let expected = if values.is_empty() {
                        "',', ')' or identifier"
                    } else {
                        "',', or identifier"
                    };
                    return Err(format!("found '{}', expected: {expected}", other.text()));
                }
            }
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => break,
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

fn check_values(requirement: &LabelRequirement) -> Result<(), String> {
    let LabelRequirement { key, operator, values } = requirement;
    let ordered = matches!(operator, Operator::GreaterThan | Operator::LessThan);
    let mut errors = Vec::new();
    for (index, value) in values.iter().enumerate() {
        if ordered && value.parse::<i64>().is_err() {
            errors.push(format!(
                "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                quoted(value)
            ));
        }
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            errors.push(format!(
                "values[{index}][{key}]: Invalid value: {}: {}",
                quoted(value),
                wrong.join("; ")
            ));
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
