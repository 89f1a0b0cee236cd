//! The examples, run on a cluster inside the test.

mod app_service;
mod manifests;
mod replica_set;
mod thrifty;

/// The README promises that its example is compiled and run: it is that of `examples/shop`.
#[test]
fn the_readme_shows_the_example_that_is_tested() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("../../shop/src/main.rs");
    assert!(
        readme.contains(&format!("```rust\n{example}```")),
        "README.md differs from examples/shop"
    );
}
