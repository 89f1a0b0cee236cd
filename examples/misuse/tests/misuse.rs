//! Misuse does not compile, and the compiler says what to do instead.

/// The messages are pinned in the `.stderr` files beside the programs. After a change that is
/// meant, or of the compiler: run with `TRYBUILD=overwrite` and read what is different.
#[test]
fn misuse_is_explained_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("programs/*.rs");
}
