//! The text of an expression, where things stand in it, and what is wrong with it.
//!
//! Positions are counted in characters, lines from one and columns from zero, and messages show the
//! line with a mark below it: what users of cel-go know.

use std::fmt;

/// The longest line that a message quotes.
const SNIPPET_MAX: usize = 16_384;

/// Where a message points when there is no place to point at.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// One thing that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// What is wrong, without the position.
    pub message: String,
    /// How many characters stand before it; `None` if it concerns the whole.
    pub offset: Option<u32>,
    pub(crate) text: String,
}

/// Everything that is wrong with an expression. Prints as cel-go does, with the line quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Issues {
    /// In the order in which they were found.
    pub issues: Vec<Issue>,
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, issue) in self.issues.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&issue.text)?;
        }
        Ok(())
    }
}

/// Collects issues of one text.
#[derive(Debug)]
pub(crate) struct Reporter<'t> {
    text: &'t str,
    pub(crate) issues: Vec<Issue>,
}

impl<'t> Reporter<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, issues: Vec::new() }
    }

    pub(crate) fn report(&mut self, offset: u32, message: impl Into<String>) {
        // As many as cel-go shows.
        if self.issues.len() > 100 {
            return;
        }
        let message = message.into();
        let text = self.render(offset, &message);
        let offset = (offset != NOWHERE).then_some(offset);
        self.issues.push(Issue { message, offset, text });
    }

    pub(crate) fn finish(mut self) -> Result<(), Issues> {
        self.issues.sort_by_key(|issue| issue.offset);
        if self.issues.is_empty() { Ok(()) } else { Err(Issues { issues: self.issues }) }
    }

    fn render(&self, offset: u32, message: &str) -> String {
        if offset == NOWHERE {
            return format!("ERROR: <input>:-1:0: {message}");
        }
        if self.text.is_empty() {
            return format!("ERROR: <input>:1:0: {message}");
        }
        let (line, column, snippet) = locate(self.text, offset);
        let mut out = format!("ERROR: <input>:{line}:{}: {message}", column + 1);
        if snippet.len() <= SNIPPET_MAX {
            let snippet = snippet.replace('\t', " ");
            out.push_str("\n | ");
            out.push_str(&snippet);
            out.push_str("\n | ");
            let mut rest = snippet.chars();
            for _ in 0..column {
                match rest.next() {
                    Some(c) if c.is_ascii() => out.push('.'),
                    Some(_) => out.push('\u{ff0e}'),
                    None => break,
                }
            }
            out.push(if rest.next().is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' });
        }
        out
    }
}

/// Line (from one), column (from zero) and the line itself.
fn locate(text: &str, offset: u32) -> (usize, usize, &str) {
    let mut left = offset as usize;
    let mut number = 0;
    let mut last = "";
    for line in text.split('\n') {
        number += 1;
        last = line;
        let length = line.chars().count();
        if left <= length {
            return (number, left, line);
        }
        left -= length + 1;
    }
    (number.max(1), last.chars().count(), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_quotes_the_line_and_marks_the_place() {
        let mut reporter = Reporter::new("a +\n  é.b");
        reporter.report(7, "undefined field 'b'");
        let issues = reporter.finish().unwrap_err();
        assert_eq!(
            issues.to_string(),
            "ERROR: <input>:2:4: undefined field 'b'\n |   é.b\n | ..\u{ff0e}^"
        );
    }
}
