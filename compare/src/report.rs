//! What a comparison found, for people: numbers by class, what is expected and why, and the rest
//! grouped by pattern, the most frequent first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

use crate::difference::{Class, Difference};
use crate::expected::Expected;

/// Everything a comparison found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) scenarios: usize,
    /// How many requests were compared.
    pub(crate) requests: usize,
    /// How many could not be, because what they build on differed.
    pub(crate) skipped: usize,
    pub(crate) differences: Vec<Difference>,
}

/// How much a report shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// How many ids of each pattern.
    pub(crate) ids: usize,
    /// How long the texts of both sides may be.
    pub(crate) width: usize,
}

/// Findings, told apart by whether they were expected.
pub(crate) struct Report<'a> {
    findings: &'a Findings,
    unexplained: Vec<&'a Difference>,
    /// By reason and class.
    expected: BTreeMap<(&'a str, Class), usize>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(findings: &'a Findings, expected: &'a Expected) -> Self {
        let mut report = Self { findings, unexplained: Vec::new(), expected: BTreeMap::new() };
        for difference in &findings.differences {
            match expected.reason(difference) {
                Some(reason) => {
                    *report.expected.entry((reason, difference.class)).or_default() += 1;
                }
                None => report.unexplained.push(difference),
            }
        }
        report
    }

    /// Whether the servers agree on every status code and reason, or it is known why not.
    pub(crate) fn agrees(&self) -> bool {
        let grave = [Class::Transport, Class::Status, Class::Reason];
        !self.unexplained.iter().any(|difference| grave.contains(&difference.class))
    }

    /// The whole report as text.
    pub(crate) fn text(&self, extent: Extent) -> String {
        let mut text = self.summary();
        for class in Class::ALL {
            self.class(class, extent, &mut text);
        }
        text
    }

    fn summary(&self) -> String {
        let Findings { scenarios, requests, skipped, .. } = self.findings;
        let differing: BTreeSet<&str> =
            self.unexplained.iter().map(|difference| difference.id.as_str()).collect();
        let mut text = format!(
            "{requests} requests in {scenarios} scenarios; {} of them differ without explanation; \
             {skipped} more were not comparable after an earlier difference\n\n\
             class         all  expected  unexplained  of requests\n",
            differing.len(),
        );
        for class in Class::ALL {
            let expected: usize =
                self.expected.iter().filter(|((_, of), _)| *of == class).map(|(_, n)| n).sum();
            let unexplained: Vec<&str> = self
                .unexplained
                .iter()
                .filter(|difference| difference.class == class)
                .map(|difference| difference.id.as_str())
                .collect();
            let all = expected + unexplained.len();
            let requests = unexplained.iter().collect::<BTreeSet<_>>().len();
            let unexplained = unexplained.len();
            let _ =
                writeln!(text, "{class:<11}{all:>6}{expected:>10}{unexplained:>13}{requests:>13}");
        }
        if !self.expected.is_empty() {
            text.push_str("\nexpected:\n");
        }
        for ((reason, class), count) in &self.expected {
            let _ = writeln!(text, "{count:>6}  {class:<11} {reason}");
        }
        text
    }

    fn class(&self, class: Class, extent: Extent, text: &mut String) {
        let of_class = self.unexplained.iter().filter(|difference| difference.class == class);
        let mut groups: BTreeMap<[String; 3], Vec<&Difference>> = BTreeMap::new();
        for difference in of_class {
            groups.entry(pattern(difference)).or_default().push(difference);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        if groups.is_empty() {
            return;
        }
        groups.sort_by_key(|(_, differences)| std::cmp::Reverse(differences.len()));
        let count: usize = groups.iter().map(|(_, differences)| differences.len()).sum();
        let _ = writeln!(text, "\n== {class}: {count}, in {} patterns", groups.len());
        for (_, differences) in &groups {
            let first = differences[0];
            let _ = writeln!(text, "\n{}× {}", differences.len(), first.place);
            let _ = writeln!(text, "  theirs: {}", short(&first.theirs, extent.width));
            let _ = writeln!(text, "  ours:   {}", short(&first.ours, extent.width));
            let ids: BTreeSet<&str> = differences.iter().map(|d| d.id.as_str()).collect();
            let shown: Vec<&str> = ids.iter().copied().take(extent.ids).collect();
            let more = ids.len() - shown.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(text, "  {}{more}", shown.join(", "));
        }
    }
}

/// What is alike in differences of the same origin: names, numbers and quoted texts do not count.
fn pattern(difference: &Difference) -> [String; 3] {
    let place = match difference.class {
        // The same field at the end of another way.
        Class::Discovery | Class::OpenApi | Class::Description => {
            let mut parts = difference.place.rsplit('.');
            let last = parts.next();
            let before = parts.next();
            format!("{}.{}", before.unwrap_or_default(), last.unwrap_or_default())
        }
        _ => difference.place.clone(),
    };
    [&place, &difference.theirs, &difference.ours].map(|text| alike(text))
}

fn alike(text: &str) -> String {
    static WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r#""(?:[^"\\]|\\.)*""#, "\"\""),
            (r"\b[a-z0-9.]*\bv[0-9][a-z0-9]*\b|[a-z.]+/v[0-9][a-z0-9]*", "VERSION"),
            (r"\[[^\]]*\]", "[]"),
            (r"[A-Za-z]+(?:\.[a-z0-9.]+)? (?:in version )?\x22\x22", "KIND \"\""),
            (r"\b(?:v\d\.|[A-Z])[A-Za-z]+(?:\.[a-zA-Z]+)*\b", "TYPE"),
            (r"\b[0-9]+\b", "N"),
        ]
        .into_iter()
        .filter_map(|(pattern, word)| Some((Regex::new(pattern).ok()?, word)))
        .collect()
    });
    // A whole text is what it says, not just some text.
    let mut text = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
    for (pattern, word) in WORDS.iter() {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    // What follows is the same story about other objects.
    text.chars().take(200).collect()
}

/// A text on one line, no longer than that.
pub(crate) fn short(text: &str, width: usize) -> String {
    let text = text.replace('\n', "\\n");
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(id: &str, class: Class, theirs: &str) -> Difference {
        let ours = "201 Pod".to_owned();
        Difference { id: id.into(), class, place: String::new(), theirs: theirs.into(), ours }
    }

    #[test]
    fn differences_of_the_same_origin_stand_together() {
        let findings = Findings {
            requests: 3,
            differences: vec![
                difference("a", Class::Status, "422 pods \"x\" is invalid"),
                difference("b", Class::Status, "422 deployments.apps \"y\" is invalid"),
                difference("c", Class::Status, "404 not found"),
            ],
            ..Findings::default()
        };
        let expected = Expected::table().unwrap();
        let report = Report::new(&findings, &expected);
        let text = report.text(Extent { ids: 1, width: 80 });
        assert!(text.contains("== status: 3, in 2 patterns"), "{text}");
        assert!(text.contains("2× "), "{text}");
        assert!(text.contains("a and 1 more"), "{text}");
        assert!(!report.agrees());
    }

    #[test]
    fn what_is_expected_does_not_count() {
        let mut audit = difference("a", Class::Header, "x");
        audit.place = "audit-id".into();
        let findings = Findings { differences: vec![audit], ..Findings::default() };
        let expected = Expected::table().unwrap();
        let report = Report::new(&findings, &expected);
        assert!(report.agrees());
        assert!(
            report
                .text(Extent { ids: 1, width: 80 })
                .contains("every request goes by a name of its own")
        );
    }
}
