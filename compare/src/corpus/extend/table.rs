//! Tables of text: a line is a word and what it is about; `#` begins a remark.

use serde_json::Value;
use steersman_rules::patch::merge_patch;

/// The lines of a table: the word, and the rest.
pub(super) fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// The documents that stand one after the other in a text.
pub(super) fn documents(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).collect()
}

/// A name and the documents behind it.
pub(super) fn named(rest: &'static str) -> (&'static str, Vec<Value>) {
    let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
    (name, documents(text))
}

/// A document with a merge patch.
pub(super) fn patched(document: &Value, patch: &Value) -> Value {
    merge_patch(document, patch.to_string().as_bytes()).unwrap_or_else(|_| document.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_whole(text: &str) -> bool {
        let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        documents.into_iter().all(|document| document.is_ok())
    }

    #[test]
    fn every_line_of_the_tables_can_be_read() {
        for table in [include_str!("definitions.txt"), include_str!("policies.txt")] {
            for (word, rest) in lines(table) {
                let (name, text) = rest.split_once(' ').unwrap();
                assert!(read_whole(text), "{word} {name}");
            }
        }
        for (word, rest) in lines(include_str!("objects.txt")) {
            let text = if word == "schema" { rest.split_once(' ').unwrap().1 } else { rest };
            assert!(read_whole(text), "{word} {rest}");
        }
    }
}
