//! No circles: what two modules of a crate know of each other has a direction.
//!
//! The children of a folder are its files and its sub-folders, each sub-folder as one with all
//! beneath it. A child that names what another one defines points to it. Two rules:
//!
//! - At the top of a crate these arrows form no circle; `lib.rs` or `main.rs` is one of the
//!   children.
//! - In a folder beneath, no circle goes through a sub-folder. Files that lie side by side may
//!   need each other, as they are read together, and everything in a folder may name its
//!   `mod.rs`, which may name everything: it is the folder's face.
//!
//! Only names count: calling a method of a value that was handed in is no arrow, which is
//! what traits are for. Tests do not count.

mod graph;
mod names;
mod tests;
mod ties;

use std::collections::{BTreeMap, BTreeSet};

use graph::Graph;
use ties::{Crate, Path, Tie};

use crate::assert_tidy;
use crate::source::{self, Source};

/// Arrows that may close a circle: crate, from, to, reason.
const EXCEPTIONS: [(&str, &str, &str, &str); 0] = [];

/// Modules that reach each other, all of them children of one folder.
struct Circle {
    modules: BTreeSet<Path>,
    /// Whether no rule is against it.
    tolerated: bool,
    /// The ties between them, by who uses whom.
    arrows: BTreeMap<Arrow, Vec<Tie>>,
}

type Arrow = (Path, Path);

impl Circle {
    fn of(modules: &BTreeSet<Path>, tolerated: bool, arrows: &BTreeMap<Arrow, Vec<Tie>>) -> Self {
        let inside = |(from, to): &Arrow| modules.contains(from) && modules.contains(to);
        let arrows = arrows.iter().filter(|(arrow, _)| inside(arrow));
        Self {
            modules: modules.clone(),
            tolerated,
            arrows: arrows.map(|(arrow, ties)| (arrow.clone(), ties.clone())).collect(),
        }
    }
}

/// Every tie of a crate as an arrow between the children of the folder that both lie in.
fn arrows(read: &Crate) -> BTreeMap<Arrow, Vec<Tie>> {
    let mut arrows: BTreeMap<Arrow, Vec<Tie>> = BTreeMap::new();
    for tie in read.ties() {
        let shared = tie.from.iter().zip(&tie.to).take_while(|(from, to)| from == to).count();
        let child = |path: &Path| path[..path.len().min(shared + 1)].to_vec();
        arrows.entry((child(&tie.from), child(&tie.to))).or_default().push(tie);
    }
    arrows
}

/// The folder whose children an arrow joins.
fn folder((from, to): &Arrow) -> Path {
    from.iter().zip(to).take_while(|(from, to)| from == to).map(|(name, _)| name.clone()).collect()
}

fn circles(read: &Crate, arrows: &BTreeMap<Arrow, Vec<Tie>>) -> Vec<Circle> {
    let mut folders: BTreeMap<Path, Graph<Path>> = BTreeMap::new();
    for arrow in arrows.keys() {
        let graph = folders.entry(folder(arrow)).or_default();
        graph.entry(arrow.0.clone()).or_default().insert(arrow.1.clone());
    }
    let mut found = Vec::new();
    for (folder, graph) in &folders {
        let is_folder = |path: &Path| path != folder && read.is_folder(path);
        let forbidden: Vec<BTreeSet<Path>> = if folder.is_empty() {
            graph::circles(graph)
        } else {
            let mut circles = graph::circles(&without(graph, folder));
            circles.retain(|modules| modules.iter().any(is_folder));
            circles
        };
        let known = |modules: &BTreeSet<Path>| forbidden.iter().any(|few| few.is_subset(modules));
        let mut tolerated = graph::circles(graph);
        tolerated.retain(|modules| !known(modules));
        found.extend(forbidden.iter().map(|modules| Circle::of(modules, false, arrows)));
        found.extend(tolerated.iter().map(|modules| Circle::of(modules, true, arrows)));
    }
    found
}

/// A graph without one of its nodes.
fn without(graph: &Graph<Path>, left_out: &Path) -> Graph<Path> {
    let mut rest = graph.clone();
    rest.remove(left_out);
    rest.values_mut().for_each(|to| {
        to.remove(left_out);
    });
    rest
}

/// What is wrong with a crate, given the arrows that are excepted in it.
fn problems(name: &str, read: &Crate, excepted: &[(&str, &str, &str)]) -> Vec<String> {
    let all = arrows(read);
    let is = |arrow: &Arrow, (from, to, _): &(&str, &str, &str)| {
        shown(&arrow.0) == *from && shown(&arrow.1) == *to
    };
    let kept: BTreeMap<Arrow, Vec<Tie>> = all
        .iter()
        .filter(|(arrow, _)| !excepted.iter().any(|exception| is(arrow, exception)))
        .map(|(arrow, ties)| (arrow.clone(), ties.clone()))
        .collect();
    let left = circles(read, &kept);
    let mut problems: Vec<String> = left
        .iter()
        .filter(|circle| !circle.tolerated)
        .map(|circle| described(name, circle))
        .collect();
    for exception in excepted {
        // It is needed if it would close a circle that the others leave open.
        let mut with = kept.clone();
        let back = all.iter().filter(|(arrow, _)| is(arrow, exception));
        with.extend(back.map(|(arrow, ties)| (arrow.clone(), ties.clone())));
        let needed = circles(read, &with).iter().any(|circle| {
            !circle.tolerated && circle.arrows.keys().any(|arrow| is(arrow, exception))
        });
        if !needed {
            let (from, to, reason) = exception;
            problems.push(format!(
                "{name}: {from} → {to} closes no circle any more, take it off the list: {reason}"
            ));
        }
    }
    problems
}

/// One line for the circle and one for each of its arrows.
fn described(name: &str, circle: &Circle) -> String {
    let modules: Vec<String> = circle.modules.iter().map(shown).collect();
    let mut text = format!(
        "{name}: {} modules in a circle: {}; move what both ends of an arrow need below them, \
         or hand it in as a trait",
        modules.len(),
        modules.join(", ")
    );
    for ((from, to), ties) in &circle.arrows {
        let Tie { place, name, .. } = &ties[0];
        let (from, to) = (shown(from), shown(to));
        text.push_str(&format!("\n    {from} → {to}: {place}: {name}"));
        if ties.len() > 1 {
            text.push_str(&format!(", and {} more", ties.len() - 1));
        }
    }
    text
}

/// A module's path; the file at the root of a crate is `crate`.
fn shown(path: &Path) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// Every library and program of the repository, by its directory.
fn crates() -> BTreeMap<String, Crate> {
    let sources = source::rust();
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let roots = by_path
        .keys()
        .filter(|path| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"));
    roots.map(|root| (name_of(root), Crate::read(root, &by_path))).collect()
}

/// `crates/x/src/lib.rs` is `x`.
fn name_of(root: &str) -> String {
    let package = root.rsplit_once("/src/").map_or(root, |(package, _)| package);
    let package = package.strip_prefix("crates/").unwrap_or(package);
    package.to_owned() + if root.ends_with("/main.rs") { " (program)" } else { "" }
}

#[test]
fn modules_form_no_circle() {
    let crates = crates();
    let mut found = Vec::new();
    for (name, read) in &crates {
        let excepted: Vec<(&str, &str, &str)> = EXCEPTIONS
            .iter()
            .filter(|(package, ..)| package == name)
            .map(|(_, from, to, reason)| (*from, *to, *reason))
            .collect();
        found.extend(problems(name, read, &excepted));
    }
    for (package, _, _, reason) in EXCEPTIONS {
        if !crates.contains_key(package) {
            found.push(format!("{package} is no crate, take it off the list: {reason}"));
        }
    }
    assert_tidy(&found);
}

#[test]
#[ignore = "prints a table and checks nothing: cargo xtask circles"]
#[allow(clippy::print_stdout, reason = "the table is what it is for")]
fn table() {
    println!("{:<34} {:>5}  {:<28} tolerated", "crate", "files", "circles");
    for (name, read) in crates() {
        let found = circles(&read, &arrows(&read));
        let sizes = |tolerated: bool| {
            let mut sizes: Vec<usize> = found
                .iter()
                .filter(|circle| circle.tolerated == tolerated)
                .map(|circle| circle.modules.len())
                .collect();
            sizes.sort_unstable_by(|one, other| other.cmp(one));
            let listed: Vec<String> = sizes.iter().map(usize::to_string).collect();
            if listed.is_empty() {
                "none".to_owned()
            } else {
                format!("{}: {}", listed.len(), listed.join(" "))
            }
        };
        println!("{name:<34} {:>5}  {:<28} {}", read.files().count(), sizes(false), sizes(true));
    }
}
