//! YAML into a document, and the keys in it that stand twice.
//!
//! Lenient readers take the last of two equal keys. Strict ones name the line, so the events of
//! the parser are looked through; only bodies in YAML pay for that second look.

use std::collections::HashSet;

use granit_parser::{Event, Parser};
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{FINDINGS_MAX, Finding, clip};

/// Reads a body. Aliases are expanded within the bounds that the reader has by default. Numbers
/// with a leading zero are octal, as in every `defaultMode: 0644`.
pub fn read(body: &[u8]) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
    };
    serde_saphyr::from_slice_with_options(body, options)
}

/// What is wrong with a body that cannot be read, in one line and, where they are known, in the
/// words of Go's reader. That counts the lines of some complaints from zero, and says nothing of
/// the first.
pub fn complaint(body: &[u8], error: &serde_saphyr::Error) -> String {
    let text = String::from_utf8_lossy(body);
    let mut events = Parser::new_from_str(&text);
    let Some(mistake) = events.find_map(Result::err) else {
        return format!("yaml: {}", error.to_string().lines().next().unwrap_or_default());
    };
    let ours = mistake.kind().to_string();
    let line = mistake.marker().line();
    if ours.contains("mapping values are not allowed") {
        return at_line(line, "mapping values are not allowed in this context");
    }
    if ours.contains("tabs disallowed") {
        return at_line(line, "found character that cannot start any token");
    }
    if ours.contains("unclosed bracket") && body.trim_ascii_end().ends_with(b"{") {
        let lines = text.trim_end().lines().count();
        return format!("yaml: line {lines}: did not find expected node content");
    }
    at_line(line, &ours)
}

fn at_line(line: usize, what: &str) -> String {
    if line > 1 { format!("yaml: line {line}: {what}") } else { format!("yaml: {what}") }
}

/// The keys that stand twice in one mapping, by line.
pub fn repeated(body: &[u8]) -> Vec<Finding> {
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open: Vec<Level> = Vec::new();
    for event in Parser::new_from_str(text) {
        // What cannot be read is told by whoever reads it for its content.
        let Ok((event, span)) = event else { return found };
        match event {
            Event::MappingStart(..) => {
                next(&mut open);
                open.push(Level::Mapping { keys: HashSet::new(), key_next: true });
            }
            Event::SequenceStart(..) => {
                next(&mut open);
                open.push(Level::Sequence);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
            }
            Event::Scalar(text, ..) => {
                if next(&mut open)
                    && let Some(Level::Mapping { keys, .. }) = open.last_mut()
                    && !keys.insert(text.to_string())
                    && found.len() < FINDINGS_MAX
                {
                    let key = clip(&text).to_owned();
                    found.push(Finding::Repeated { line: span.start.line(), key });
                }
            }
            Event::Alias(..) => {
                next(&mut open);
            }
            _ => {}
        }
    }
    found
}

/// A mapping or sequence that has begun.
enum Level {
    Mapping { keys: HashSet<String>, key_next: bool },
    Sequence,
}

/// Counts a node that begins; says whether it is the key of a mapping.
fn next(open: &mut [Level]) -> bool {
    let Some(Level::Mapping { key_next, .. }) = open.last_mut() else { return false };
    *key_next = !*key_next;
    !*key_next
}

#[cfg(test)]
mod tests {
    use super::{complaint, read, repeated};
    use serde_json::json;

    #[test]
    fn the_last_of_two_keys_counts_and_both_are_told_by_line() {
        let body = "a: 1\nb:\n  c: [{d: 1, d: 2}]\n  a: 3\na: 4\n? {x: 1}\n: y\n";
        let texts: Vec<String> =
            repeated(body.as_bytes()).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [r#"line 3: key "d" already set in map"#, r#"line 5: key "a" already set in map"#]
        );
        let plain = "a: 1\nb: {c: 1, c: 2}\na: 4\n";
        assert_eq!(read(plain.as_bytes()).unwrap(), json!({"a": 4, "b": {"c": 2}}));
    }

    #[test]
    fn the_modes_of_files_are_octal() {
        let body = "a: 0644\nb: 0o644\nc: \"0644\"\nd: 644\ne: 0\n";
        let modes = json!({"a": 420, "b": 420, "c": "0644", "d": 644, "e": 0});
        assert_eq!(read(body.as_bytes()).unwrap(), modes);
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_go() {
        for (body, expected) in [
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
            ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
            ("{", "yaml: line 1: did not find expected node content"),
        ] {
            let error = read(body.as_bytes()).unwrap_err();
            assert_eq!(complaint(body.as_bytes(), &error), expected, "{body:?}");
        }
        for body in ["a: [", "a: *b", "- a\nb", "a: &a [*a]", "\"", "%"] {
            let told = read(body.as_bytes()).map_err(|error| complaint(body.as_bytes(), &error));
            let told = told.unwrap_err();
            assert!(told.starts_with("yaml: ") && !told.contains('\n'), "{body:?}: {told}");
        }
    }

    #[test]
    fn broken_yaml_ends_the_search() {
        for body in ["a: [", "\t", "a: *b", "- a\nb", ": :", "a: &a [*a]"] {
            let _ = repeated(body.as_bytes());
        }
        assert!(repeated(&[0xff, 0xfe]).is_empty());
    }
}
