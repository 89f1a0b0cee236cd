//! The text format of Prometheus, version 0.0.4, as Go's library writes it.

use std::fmt::{Display, Write};

/// The labels of a sample, in the order of their names.
pub(crate) type Labels<'a> = [(&'a str, &'a str)];

/// One family on its way out.
pub(crate) struct Page<'a> {
    name: &'a str,
    out: &'a mut String,
}

impl<'a> Page<'a> {
    /// Begins a family.
    pub(crate) fn begin(out: &'a mut String, name: &'a str, kind: &str, help: &str) -> Self {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Self { name, out }
    }

    /// Appends a sample.
    pub(crate) fn sample(&mut self, suffix: &str, labels: &Labels<'_>, value: impl Number) {
        let _ = write!(self.out, "{}{suffix}", self.name);
        self.labels(labels, None);
        let _ = writeln!(self.out, " {}", value.written());
    }

    /// Appends how many numbers were at most so large.
    pub(super) fn bucket(&mut self, labels: &Labels<'_>, end: f64, count: u64) {
        let _ = write!(self.out, "{}_bucket", self.name);
        self.labels(labels, Some(&number(end)));
        let _ = writeln!(self.out, " {count}");
    }

    fn labels(&mut self, labels: &Labels<'_>, end: Option<&str>) {
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(end.map(|end| ("le", end))) {
            let _ = write!(self.out, "{separator}{label}=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.out.push_str("\\\\"),
                    '"' => self.out.push_str("\\\""),
                    '\n' => self.out.push_str("\\n"),
                    other => self.out.push(other),
                }
            }
            self.out.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.out.push('}');
        }
    }
}

/// What a sample can be.
pub(crate) trait Number: Copy {
    fn written(&self) -> impl Display;
}

impl Number for u64 {
    fn written(&self) -> impl Display {
        *self
    }
}

impl Number for i64 {
    fn written(&self) -> impl Display {
        *self
    }
}

impl Number for f64 {
    fn written(&self) -> impl Display {
        number(*self)
    }
}

/// A number as Go writes it: large ones with an exponent.
fn number(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    if size == 0.0 || number.is_nan() || (1e-4..1e21).contains(&size) && size < 1e6 {
        return number.to_string();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::{Page, number};

    #[test]
    fn numbers_are_written_as_go_does() {
        for (value, expected) in [
            (0.0, "0"),
            (0.005, "0.005"),
            (1.0, "1"),
            (2.5, "2.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (1e9, "1e+09"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "+Inf"),
            (-1.0, "-1"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn what_a_label_says_cannot_end_it() {
        let mut out = String::new();
        let mut page = Page::begin(&mut out, "odd_total", "counter", "A \\ and\na line.");
        page.sample("", &[("a", "x\"y\\z\n"), ("b", "")], 3_u64);
        page.sample("", &[], 1_u64);
        assert_eq!(
            out,
            "# HELP odd_total A \\\\ and\\na line.\n# TYPE odd_total counter\n\
             odd_total{a=\"x\\\"y\\\\z\\n\",b=\"\"} 3\nodd_total 1\n"
        );
    }
}
