//! Idioms that do not belong here, each with what to write instead.

use crate::assert_tidy;
use crate::source::{self, Line, Source};

/// An idiom that is banned.
struct Ban {
    idiom: &'static str,
    within: Within,
    instead: &'static str,
}

/// Which code a ban covers.
#[derive(PartialEq)]
enum Within {
    /// Everything.
    Code,
    /// What ends up in the program.
    Product,
    /// The `tests/` directories.
    Tests,
}

const BANS: [Ban; 14] = [
    Ban {
        idiom: "SystemTime::now",
        within: Within::Code,
        instead: "steersman::clock, which follows tokio's clock",
    },
    Ban {
        idiom: "Timestamp::now",
        within: Within::Code,
        instead: "steersman::clock, which follows tokio's clock",
    },
    Ban {
        idiom: "std::time::Instant",
        within: Within::Code,
        instead: "tokio::time::Instant, which follows the virtual clock",
    },
    Ban {
        idiom: "thread::sleep",
        within: Within::Code,
        instead: "tokio::time, so that a cluster can run on virtual time",
    },
    Ban { idiom: "unbounded_channel", within: Within::Code, instead: "tokio::sync::mpsc::channel" },
    Ban { idiom: "mpsc::unbounded", within: Within::Code, instead: "tokio::sync::mpsc::channel" },
    Ban { idiom: "todo!(", within: Within::Code, instead: "an error, or an issue" },
    Ban { idiom: "unimplemented!(", within: Within::Code, instead: "an error, or an issue" },
    Ban { idiom: "dbg!(", within: Within::Code, instead: "tracing::debug!" },
    Ban {
        idiom: ".unwrap()",
        within: Within::Product,
        instead: "`?`, or expect(\"why it cannot fail\")",
    },
    Ban {
        idiom: "sleep(",
        within: Within::Tests,
        instead: "eventually(…), or a condition that is waited for",
    },
    Ban { idiom: "/root/", within: Within::Code, instead: "a path the caller gives" },
    Ban { idiom: "/work/", within: Within::Code, instead: "a path the caller gives" },
    Ban { idiom: "/home/", within: Within::Code, instead: "a path the caller gives" },
];

/// Files, or directories, that may use a banned idiom: path, idiom, reason.
const EXCEPTIONS: [(&str, &str, &str); 8] = [
    ("crates/steersman/src/clock.rs", "SystemTime::now", "where the one clock reads the system's"),
    ("crates/steersman/src/clock.rs", "Timestamp::now", "where the one clock reads the system's"),
    (
        "crates/steersman/src/clock.rs",
        "std::time::Instant",
        "where the one clock reads the system's",
    ),
    ("bench/", "std::time::Instant", "a benchmark measures real time"),
    ("bench/", "SystemTime::now", "a benchmark measures real time"),
    ("examples/tides/src/main.rs", "Timestamp::now", "a server by itself has no framework's clock"),
    ("xtask/src/upstream.rs", "thread::sleep", "programs of others go by the real clock"),
    (
        "crates/steersman-scheduler/src/plugins/dynamic_resources/deadline.rs",
        "std::time::Instant",
        "a search is given up by real time: the virtual clock stands still meanwhile",
    ),
];

impl Ban {
    fn covers(&self, source: &Source, line: &Line<'_>) -> bool {
        match self.within {
            Within::Code => true,
            Within::Product => !line.test,
            Within::Tests => source.path.contains("/tests/"),
        }
    }

    fn excepted(&self, path: &str) -> bool {
        EXCEPTIONS.iter().any(|(file, idiom, _)| path.starts_with(file) && *idiom == self.idiom)
    }

    fn found_in(&self, text: &str) -> bool {
        let named = text.match_indices(self.idiom).any(|(at, _)| {
            // `unsleep(` is no sleep, and `a/work/b` no path on some machine.
            let word = self.idiom.starts_with(|c: char| c == '/' || c.is_alphanumeric());
            !(word && text[..at].ends_with(|c: char| c == '_' || c.is_alphanumeric()))
        });
        named || self.imported_in_a_group(text)
    }

    /// Finds `a::b` in `use a::{b, c}`.
    fn imported_in_a_group(&self, text: &str) -> bool {
        self.idiom.rsplit_once("::").is_some_and(|(path, item)| {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            text.contains(&format!("{path}::{{")) && words.any(|word| word == item)
        })
    }
}

fn problems(source: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for line in source.code() {
        let found = BANS.iter().filter(|ban| ban.covers(source, &line));
        for ban in found.filter(|ban| ban.found_in(line.text) && !ban.excepted(&source.path)) {
            let (path, number) = (&source.path, line.number);
            problems.push(format!("{path}:{number}: no `{}`; use {}", ban.idiom, ban.instead));
        }
    }
    problems
}

#[test]
fn no_banned_idiom_is_used() {
    assert_tidy(&source::rust().iter().flat_map(problems).collect::<Vec<_>>());
}

#[test]
fn every_lint_exception_and_ignored_test_has_a_reason() {
    let mut problems = Vec::new();
    for source in source::rust() {
        let code: Vec<Line<'_>> = source.code().collect();
        for (index, line) in code.iter().enumerate() {
            if let Some(what) = unreasoned(&code[index..]) {
                problems.push(format!("{}:{}: {what}", source.path, line.number));
            }
        }
    }
    assert_tidy(&problems);
}

/// What lacks a reason in the attribute that begins at the first of these lines.
fn unreasoned(code: &[Line<'_>]) -> Option<&'static str> {
    let first = code[0].text.trim_start();
    if first.starts_with("#[ignore]") {
        return Some("an ignored test says why: #[ignore = \"…\"]");
    }
    let excepts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    if !excepts.iter().any(|attribute| first.starts_with(attribute)) {
        return None;
    }
    let end = code.iter().position(|line| line.text.trim_end().ends_with(']'))?;
    let reasoned = code[..=end].iter().any(|line| line.text.contains("reason = "));
    (!reasoned).then_some("a lint exception says why: #[allow(…, reason = \"…\")]")
}

#[test]
fn exceptions_name_files_that_exist() {
    for (path, idiom, reason) in EXCEPTIONS {
        assert!(source::root().join(path).exists(), "{path} is excepted from `{idiom}`: {reason}");
    }
}

#[test]
fn the_checks_find_what_they_look_for() {
    let check =
        |path: &str, text: &str| problems(&Source { path: path.into(), text: text.into() }).len();
    assert_eq!(check("crates/x/src/a.rs", "let now = SystemTime::now();"), 1);
    assert_eq!(check("crates/steersman/src/clock.rs", "let now = SystemTime::now();"), 0);
    assert_eq!(check("crates/x/src/a.rs", "// never SystemTime::now()"), 0);
    assert_eq!(check("crates/x/src/a.rs", "x.unwrap();"), 1);
    assert_eq!(check("crates/x/src/a/tests.rs", "x.unwrap();"), 0);
    assert_eq!(check("crates/x/tests/it/main.rs", "sleep(minute).await;"), 1);
    assert_eq!(check("crates/x/src/a.rs", "tokio::time::sleep(minute).await;"), 0);
    assert_eq!(check("crates/x/src/a.rs", "const PATH: &str = \"/home/me\";"), 1);
}
