//! The repository's rules that a program can check. Each failure names the file, what is
//! wrong and what to do instead; each exception is listed beside its rule, with its reason.
//!
//! Clippy checks what needs types (see `clippy.toml`); this checks what needs the whole
//! repository: dependency edges, features, licenses, circles, names, sizes, links, and idioms in
//! code that clippy skips.
#![allow(clippy::unwrap_used, reason = "the lint's exception for tests misses shared steps")]

mod bans;
mod circles;
mod deny;
mod edges;
mod features;
mod links;
mod manifest;
mod metadata;
mod shape;
mod source;

/// Fails with every problem at once.
fn assert_tidy(problems: &[String]) {
    assert!(problems.is_empty(), "{} to tidy:\n{}\n", problems.len(), problems.join("\n"));
}
