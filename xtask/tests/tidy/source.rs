//! The repository's files, and which of their lines are tests.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Rust code lives that the rules apply to.
const CODE: [&str; 7] = ["attack", "crates", "examples", "bench", "compare", "fuzz", "xtask"];

/// A Rust file.
pub(crate) struct Source {
    /// Relative to the repository, with `/` between.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A line of a Rust file.
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    pub(crate) text: &'a str,
    /// Whether it is compiled for tests only.
    pub(crate) test: bool,
}

impl Source {
    /// Whether the whole file is a test.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// The lines of code, without comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines().filter(|line| !line.text.trim_start().starts_with("//"))
    }

    /// Every line. Test modules inside a file are told by rustfmt's layout: they begin after
    /// `#[cfg(test)]` with `mod … {` and end with a brace in the first column.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let whole = self.is_test();
        let mut inside = false;
        let mut previous = "";
        self.text.lines().enumerate().map(move |(index, text)| {
            let begins = text.starts_with("mod ") && text.ends_with('{');
            inside |= begins && previous == "#[cfg(test)]";
            let test = whole || inside;
            inside &= text != "}";
            previous = text;
            Line { number: index + 1, text, test }
        })
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file, but this test, which has to name what it forbids.
pub(crate) fn rust() -> Vec<Source> {
    let sources: Vec<Source> = files("rs")
        .into_iter()
        .filter(|path| CODE.iter().any(|directory| path.starts_with(&format!("{directory}/"))))
        .filter(|path| !path.starts_with("xtask/tests/tidy/"))
        .map(|path| Source { text: read(&path), path })
        .collect();
    assert!(!sources.is_empty(), "no sources found: the checks would pass on nothing");
    sources
}

/// The paths of all files with an extension, relative to the repository.
pub(crate) fn files(extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(&root(), extension, &mut found);
    found.sort();
    found
}

/// The text of one file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn walk(directory: &Path, extension: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                walk(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            let relative = path.strip_prefix(root()).unwrap();
            found.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
}

#[test]
fn test_modules_inside_a_file_are_told_from_the_rest() {
    let text = "a\n#[cfg(test)]\nmod tests {\n    b\n}\n\nc\n#[cfg(test)]\nmod other;\nd\n";
    let source = Source { path: "crates/x/src/lib.rs".into(), text: text.into() };
    let tests: Vec<&str> =
        source.lines().filter(|line| line.test).map(|line| line.text.trim()).collect();
    assert_eq!(tests, ["mod tests {", "b", "}"]);
}
