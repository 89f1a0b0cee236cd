//! The check on crates that are made up.

use std::collections::BTreeMap;

use super::ties::Crate;
use super::{arrows, circles, problems, shown};
use crate::source::Source;

/// A crate of these files beneath `src`.
fn made_up(files: &[(&str, &str)]) -> Crate {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| Source { path: format!("x/src/{path}"), text: (*text).to_owned() })
        .collect();
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    Crate::read("x/src/lib.rs", &by_path)
}

/// The arrows of a crate of `a`, `b` and what is given, as `from → to`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let read = made_up(files);
    arrows(&read).keys().map(|(from, to)| format!("{} → {}", shown(from), shown(to))).collect()
}

/// The arrows of a crate in which `a` has this text and `b` defines something.
fn found_in_a(text: &str) -> Vec<String> {
    found(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "pub struct B;")])
}

#[test]
fn every_way_to_name_something_is_an_arrow() {
    for text in [
        "use crate::b::B;",
        "use crate::{b::B as C};",
        "use super::{self, b::{B}};",
        "pub use crate::b::B;",
        "use crate::b::*;",
        "fn f(x: &crate::b::B) {}",
        "fn f() { use crate::b; g::<_>(b::B) }",
        "use crate::b; fn f() { log!(\"{}\", b::B) }",
        "use crate::b as other; impl other::B {}",
        "mod inner { use super::super::b::B; }",
        "macro_rules! m { () => { $crate::b::B } }",
    ] {
        assert_eq!(found_in_a(text), ["a → b"], "{text}");
    }
}

#[test]
fn what_names_nothing_is_no_arrow() {
    for text in [
        "pub(in crate::b) struct A;",
        "pub(crate) struct A; pub(super) fn f() {}",
        "//! See [`crate::b::B`].\n/// And crate::b::B.\n// crate::b::B\nstruct A;",
        "const TEXT: &str = \"crate::b::B\";",
        "use b::B; use ::b::B; use b::{self, B};",
        "fn f() -> impl Sized + use<'_> {}",
        "use crate::b;",
        "use self::A; struct A; fn f() -> crate::a::A {}",
    ] {
        assert_eq!(found_in_a(text), [""; 0], "{text}");
    }
}

#[test]
fn tests_are_no_arrows() {
    for text in [
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] mod tests;",
        "#[cfg(test)] use crate::{b::B};",
        "#[cfg(test)] pub(crate) fn f(b: crate::b::B) {}",
        "struct A { #[cfg(test)] b: crate::b::B, c: C }",
        "fn f() { #[cfg(test)] if crate::b::B::is() { return; } }",
        "#[test] fn f() { crate::b::B; }",
    ] {
        assert_eq!(found_in_a(text), [""; 0], "{text}");
    }
    let after = "#[cfg(test)] fn f() {} fn g(b: crate::b::B) {}";
    assert_eq!(found_in_a(after), ["a → b"]);
}

#[test]
fn a_name_that_is_passed_on_leads_to_where_it_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use b::B; pub use c::*; pub struct Own;"),
        ("a.rs", "use crate::{B, C, D};"),
        ("b.rs", "pub struct B;"),
        ("c/mod.rs", "mod d; pub use d::D; pub struct C; pub use crate::c as again;"),
        ("c/d.rs", "pub struct D;"),
    ];
    let expected = ["crate → b", "crate → c", "a → b", "a → c", "c → c::d"];
    assert_eq!(found(&files), expected);
    let own = [("lib.rs", "mod a; pub struct Own;"), ("a.rs", "use super::Own;")];
    assert_eq!(found(&own), ["a → crate"]);
}

#[test]
fn a_circle_of_top_modules_is_told_with_a_place_for_each_arrow() {
    let read = made_up(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B;\nuse crate::c::C;"),
        ("b.rs", "\nfn b() { crate::a::A; crate::a::A }"),
        ("c.rs", "pub struct C;"),
    ]);
    let [problem] = problems("x", &read, &[]).try_into().unwrap();
    let lines: Vec<&str> = problem.lines().collect();
    assert!(lines[0].starts_with("x: 2 modules in a circle: a, b; "), "{problem}");
    let arrows = [
        "    a → b: x/src/a.rs:1: crate::b::B",
        "    b → a: x/src/b.rs:2: crate::a::A, and 1 more",
    ];
    assert_eq!(lines[1..], arrows);
}

#[test]
fn files_of_one_folder_may_need_each_other_and_sub_folders_may_not() {
    let files = [
        ("lib.rs", "mod f;"),
        ("f/mod.rs", "mod a; mod b; pub struct F; fn f() { a::A; b::B }"),
        ("f/a.rs", "use super::b::B; use super::F;"),
        ("f/b.rs", "use super::a::A;"),
    ];
    let read = made_up(&files);
    assert_eq!(problems("x", &read, &[]), [""; 0]);
    let [circle] = circles(&read, &arrows(&read)).try_into().ok().unwrap();
    assert_eq!(circle.modules.len(), 3);

    let mut deeper = files.to_vec();
    deeper[3] = ("f/b/mod.rs", "mod c; use super::a::A;");
    deeper.push(("f/b/c.rs", ""));
    let [problem] = problems("x", &made_up(&deeper), &[]).try_into().unwrap();
    assert!(problem.starts_with("x: 2 modules in a circle: f::a, f::b; "), "{problem}");

    // A sub-folder and the folder's own `mod.rs` may.
    deeper[3] = ("f/b/mod.rs", "mod c; use super::F;");
    assert_eq!(problems("x", &made_up(&deeper), &[]), [""; 0]);
}

#[test]
fn the_root_of_a_crate_is_on_a_circle_as_any_other() {
    let files = [("lib.rs", "mod a; pub use a::A; pub struct B;"), ("a.rs", "use crate::B;")];
    assert_eq!(problems("x", &made_up(&files), &[]).len(), 1);
}

#[test]
fn an_exception_allows_one_arrow_while_it_closes_a_circle() {
    let files =
        [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
    let excepted = [("b", "a", "they are twins")];
    assert_eq!(problems("x", &made_up(&files), &excepted), [""; 0]);
    let cut = [files[0], ("a.rs", ""), files[2]];
    let [stale] = problems("x", &made_up(&cut), &excepted).try_into().unwrap();
    assert!(stale.contains("b → a closes no circle any more"), "{stale}");
}
