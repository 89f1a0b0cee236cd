//! The examples, run on a cluster inside the test.

mod app_service;
mod manifests;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "it is printed in the README, as a program's own file"
)]
mod readme;

/// The README promises that its example is compiled and run: it is the module above.
#[test]
fn the_readme_shows_the_example_that_is_tested() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("readme.rs");
    assert!(readme.contains(&format!("```rust\n{example}```")), "README.md differs from readme.rs");
}
