//! What readers of foreign bytes must hold to, each as a function of bytes that panics if it does
//! not: `cargo xtask fuzz` looks for bytes with which it does, guided by what they reach in the
//! code, and the tests run the corpora.
//!
//! A target is a file here, a line in [`TARGETS`], and a folder in `corpus`. What is asked is more
//! than that nothing panics: what is written is read as it was, and what is done twice is done
//! once. Targets call pure functions of the rules, the store and the API server; nothing listens.

mod apply;
mod body;
mod cel;
mod files;
mod patch;
mod path;
mod protobuf;
mod schema;
mod selector;
mod text;

/// Something that reads foreign bytes.
pub struct Target {
    /// Its name on the command line, and that of the folder of its corpus.
    pub name: &'static str,
    /// Reads the bytes; panics if it does not hold to what it must.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "path", run: path::run },
    Target { name: "json", run: body::json },
    Target { name: "yaml", run: body::yaml },
    Target { name: "protobuf", run: protobuf::run },
    Target { name: "json-patch", run: patch::json },
    Target { name: "merge-patch", run: patch::merge },
    Target { name: "strategic-merge-patch", run: patch::strategic },
    Target { name: "apply", run: apply::run },
    Target { name: "selector", run: selector::run },
    Target { name: "schema", run: schema::run },
    Target { name: "cel", run: cel::run },
    Target { name: "log", run: files::log },
    Target { name: "snapshot", run: files::snapshot },
];
