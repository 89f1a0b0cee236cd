//! YAML into a document, and the keys in it that stand twice.
//!
//! Lenient readers take the last of two equal keys. Strict ones name the line, so the events of
//! the parser are looked through; only bodies in YAML pay for that second look.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser};
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{FINDINGS_MAX, Finding, clip};

/// The most that the texts of a document may come to when aliases are expanded: what a body may
/// have without them.
const EXPANDED_MAX: u64 = 3 << 20;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// Aliases of aliases make far more of it than it has.
    #[error("document contains excessive aliasing")]
    Aliasing,
    /// It is not YAML, or not as plain as JSON.
    #[error(transparent)]
    Syntax(#[from] serde_saphyr::Error),
}

/// Reads a body. Aliases are expanded as far as Go's reader expands them. Numbers with a leading
/// zero are octal, as in every `defaultMode: 0644`.
pub fn read(body: &[u8]) -> Result<Value, YamlError> {
    let body = first_document(body);
    if is_excessive(body) {
        return Err(YamlError::Aliasing);
    }
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
    };
    Ok(serde_saphyr::from_slice_with_options(body, options)?)
}

/// The first document of a body: Go's reader does not look at others.
fn first_document(body: &[u8]) -> &[u8] {
    let Ok(text) = std::str::from_utf8(body) else { return body };
    if !(text.contains("\n---") || text.contains("\n...")) {
        return body;
    }
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::DocumentEnd, span)) => {
                return span.start.byte_offset().and_then(|end| body.get(..end)).unwrap_or(body);
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    body
}

/// What a value comes to with its aliases expanded.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: u64,
    bytes: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Whether aliases make too much of a document. It is counted what they would make of it: eight
/// aliases of eight aliases, and so on, are a short text and a number that nobody can hold.
fn is_excessive(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    if !(text.contains('&') && text.contains('*')) {
        return false;
    }
    let mut anchors: HashMap<usize, Size> = HashMap::new();
    // What is open: its anchor, and what is in it so far. The first is the document.
    let mut open = vec![(0, Size::default())];
    let mut all = Size::default();
    let mut aliased = 0_u64;
    for event in Parser::new_from_str(text) {
        // What cannot be read is told by whoever reads it for its content.
        let Ok((event, _)) = event else { return false };
        let one = Size { nodes: 1, bytes: 0 };
        let (anchor, size) = match event {
            Event::MappingStart(_, anchor, _) | Event::SequenceStart(_, anchor, _) => {
                all.add(one);
                open.push((anchor, one));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => open.pop().unwrap_or_default(),
            Event::Scalar(text, _, anchor, _) => {
                let size = Size { bytes: text.len() as u64, ..one };
                all.add(size);
                (anchor, size)
            }
            Event::Alias(anchor) => {
                let mut size = anchors.get(&anchor).copied().unwrap_or_default();
                aliased = aliased.saturating_add(size.nodes);
                size.add(one);
                all.add(size);
                if exceeds(all, aliased) {
                    return true;
                }
                (0, size)
            }
            _ => continue,
        };
        if let Some((_, parent)) = open.last_mut() {
            parent.add(size);
        }
        if anchor != 0 {
            anchors.insert(anchor, size);
        }
    }
    false
}

/// The rule of Go's reader: of a small document almost all may come from aliases, of a large one a
/// tenth.
fn exceeds(all: Size, aliased: u64) -> bool {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let nodes = all.nodes as f64;
    let allowed = 0.99 - 0.89 * ((nodes - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    let many = aliased > 100 && all.nodes > 1000 && aliased as f64 / nodes > allowed;
    many || all.bytes > EXPANDED_MAX
}

/// What is wrong with a body that cannot be read, in one line and, where they are known, in the
/// words of Go's reader. That counts the lines of some complaints from zero, and says nothing of
/// the first.
pub fn complaint(body: &[u8], error: &YamlError) -> String {
    if let YamlError::Aliasing = error {
        return format!("yaml: {error}");
    }
    let body = first_document(body);
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
    let body = first_document(body);
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
    use super::{YamlError, complaint, read, repeated};
    use serde_json::{Value, json};

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

    /// A list of `width` texts, and `levels` lists of as many aliases of the one before.
    fn bomb(levels: usize, width: usize) -> String {
        let list = |item: &str| format!("[{}]", vec![item; width].join(","));
        let mut body = format!("a0: &a0 {}\n", list("x"));
        for level in 1..=levels {
            let below = list(&format!("*a{}", level - 1));
            body += &format!("a{level}: &a{level} {below}\n");
        }
        body
    }

    #[test]
    fn aliases_are_expanded_as_far_as_go_expands_them() {
        let small = "a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a, e: 2}\n";
        let expanded = json!({
            "a": {"b": 1}, "c": [{"b": 1}, {"b": 1}], "d": {"b": 1, "e": 2},
        });
        assert_eq!(read(small.as_bytes()).unwrap(), expanded);
        assert!(read(bomb(2, 8).as_bytes()).is_ok());
        for (levels, width) in [(5, 8), (8, 6), (60, 8), (3, 100)] {
            let body = bomb(levels, width);
            let error = read(body.as_bytes()).unwrap_err();
            assert!(matches!(error, YamlError::Aliasing), "{levels} x {width}: {error}");
            let told = complaint(body.as_bytes(), &error);
            assert_eq!(told, "yaml: document contains excessive aliasing");
        }
    }

    #[test]
    fn aliases_of_a_long_text_are_bounded_by_what_they_come_to() {
        let body = |times: usize| {
            let aliases = vec!["*a"; times].join(",");
            format!("a: &a {}\nb: [{aliases}]\n", "x".repeat(100_000))
        };
        assert!(read(body(20).as_bytes()).is_ok());
        assert!(matches!(read(body(1000).as_bytes()), Err(YamlError::Aliasing)));
    }

    #[test]
    fn only_the_first_document_counts() {
        for (body, expected) in [
            ("a: 1\n---\nb: 2\n", json!({"a": 1})),
            ("---\na: 1\n---\nb: 2\nb: 3\n", json!({"a": 1})),
            ("# all\n---\na: \"ü\"\n...\nb: [\n", json!({"a": "ü"})),
            ("a: |\n  x\n  ---\n  y\n---\nb: *c\n", json!({"a": "x\n---\ny\n"})),
            ("a: 1\n---\nb: [\n", json!({"a": 1})),
            ("a: 1\n---\n", json!({"a": 1})),
            ("---\n---\na: 1\n", Value::Null),
            ("a: 1\n... # done\n", json!({"a": 1})),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap(), expected, "{body:?}");
            assert!(repeated(body.as_bytes()).is_empty(), "{body:?}");
        }
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
