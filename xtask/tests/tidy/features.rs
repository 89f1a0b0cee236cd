//! One set of features: whatever is built, alone or with the rest, with tests or without, here or in
//! a user's crate, is built from packages with the same features. So nothing is built twice.
//!
//! Cargo gives a package the features that those ask for who are built at the same time. Where
//! something larger asks for more, `steersman`, its macros or `steersman-features` ask for it too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, thread};

use crate::{assert_tidy, metadata, source};

/// What people build, as arguments of cargo.
const BUILT: [&[&str]; 9] = [
    &["--workspace"],
    &[],
    &["-p", "steersman"],
    &["-p", "steersman-cli"],
    &["-p", "steersman-controllers"],
    &["-p", "steersman-testkit"],
    &["-p", "steersman-examples"],
    &["-p", "steersman-bench"],
    &["-p", "steersman-bench-store"],
];

/// What is built with its tests only. Without them nobody builds it alone, and as it is published,
/// it asks for nothing that it does not use.
const TESTED: [&[&str]; 6] = [
    &["-p", "steersman-apiserver"],
    &["-p", "steersman-apiserver-tests"],
    &["-p", "steersman-rules"],
    &["-p", "steersman-store"],
    &["-p", "steersman-store-tests"],
    &["-p", "xtask"],
];

/// Features that a package may have or not, with the reason.
const EITHER_WAY: [(&str, &str, &str); 4] = [
    ("k8s-openapi", "v1_36", "programs and tests choose the version, a library alone must not"),
    ("proc-macro2", "span-locations", "only the tidy test asks for lines, and nothing is above it"),
    ("either", "default", "prost's macro has a copy of its own, which takes half a second"),
    ("either", "use_std", "as above"),
];

type Features = BTreeSet<String>;

/// Something that is built at once.
struct Selection {
    folder: PathBuf,
    arguments: &'static [&'static str],
    tests: bool,
}

impl Selection {
    /// What is built in this repository.
    fn here() -> Vec<Self> {
        let without = BUILT.into_iter().map(|arguments| (arguments, false));
        let with = BUILT.into_iter().chain(TESTED).map(|arguments| (arguments, true));
        without
            .chain(with)
            .map(|(arguments, tests)| Self { folder: source::root(), arguments, tests })
            .collect()
    }

    /// What a user builds in a crate with these dependencies.
    fn elsewhere(dependencies: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a-crate-like-readmes");
        let package = "[package]\nname = \"shopkeeper\"\nedition = \"2024\"\n\n[workspace]\n";
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(folder.join("Cargo.toml"), format!("{package}\n{dependencies}")).unwrap();
        fs::copy(source::root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let at = |tests| Self { folder: folder.clone(), arguments: &[], tests };
        vec![at(false), at(true)]
    }

    /// As one would type it.
    fn command(&self) -> String {
        let mut words = vec!["cargo", if self.tests { "test" } else { "build" }];
        words.extend(self.arguments);
        if self.folder != source::root() {
            words.push("in a crate like README's");
        }
        words.join(" ")
    }

    fn tree(&self, edges: &str, arguments: &[&str]) -> String {
        let edges = format!("normal,build{}{edges}", if self.tests { ",dev" } else { "" });
        let always = ["tree", "--quiet", "--offline", "--format", "{p}|{f}", "--edges", &edges];
        let locked: &[&str] = if self.folder == source::root() { &["--locked"] } else { &[] };
        metadata::cargo_in(&self.folder, &[&always, locked, arguments, self.arguments].concat())
    }

    /// Each package that is not ours, with its features: one set of them for the program, and one
    /// for the macros and build scripts that use it.
    fn packages(&self) -> BTreeSet<(String, Features)> {
        packages(&self.tree("", &["--prefix", "none"]))
    }

    /// Who asks for this feature of a package: packages, or features of packages.
    fn askers(&self, package: &str, feature: &str) -> Vec<String> {
        let package = package.replace(" v", "@");
        let inverted = ["--prefix", "depth", "--depth", "2", "--invert", &package];
        let tree = self.tree(",features", &inverted);
        let feature = format!("feature \"{feature}\"");
        let is_it = |line: &&str| line.starts_with('1') && line.contains(&feature);
        let mut lines = tree.lines().skip_while(|line| !is_it(line));
        let below = lines.by_ref().skip(1).take_while(|line| line.starts_with('2'));
        below.filter_map(|line| line[1..].split('|').next()).map(str::to_owned).collect()
    }
}

/// Reads what `cargo tree` prints with `{p}|{f}`.
fn packages(tree: &str) -> BTreeSet<(String, Features)> {
    let lines = tree.lines().filter_map(|line| line.split_once('|'));
    let others = lines.filter(|(package, _)| !package.contains('/'));
    others
        .map(|(package, features)| {
            let package = package.trim_end_matches(" (proc-macro)");
            let name = package.split(' ').next().unwrap();
            let free =
                |feature: &str| EITHER_WAY.iter().any(|free| (free.0, free.1) == (name, feature));
            let features = features.trim_end_matches("(*)").trim_end().split(',');
            let counted = features.filter(|feature| !feature.is_empty() && !free(feature));
            (package.to_owned(), counted.map(str::to_owned).collect())
        })
        .collect()
}

/// A package that is built with a feature here and without it there.
#[derive(Debug, PartialEq)]
struct Difference {
    package: String,
    feature: String,
    /// Which of the selections, one of each.
    with: usize,
    without: usize,
}

/// The differences between selections, each of which has some packages.
fn differences(selections: &[BTreeSet<(String, Features)>]) -> Vec<Difference> {
    let mut first: BTreeMap<&str, BTreeMap<&Features, usize>> = BTreeMap::new();
    for (selection, packages) in selections.iter().enumerate() {
        for (package, features) in packages {
            first.entry(package).or_default().entry(features).or_insert(selection);
        }
    }
    let mut differences = Vec::new();
    for (package, sets) in first {
        let all: BTreeSet<&String> = sets.keys().copied().flatten().collect();
        for feature in all {
            let with = sets.iter().find(|(set, _)| set.contains(feature));
            let without = sets.iter().find(|(set, _)| !set.contains(feature));
            if let (Some((_, &with)), Some((_, &without))) = (with, without) {
                let (package, feature) = (package.to_owned(), feature.to_owned());
                differences.push(Difference { package, feature, with, without });
            }
        }
    }
    differences
}

fn describe(difference: &Difference, selections: &[Selection]) -> String {
    let Difference { package, feature, .. } = difference;
    let [with, without] = [&selections[difference.with], &selections[difference.without]];
    format!(
        "{package}: `{}` builds it with \"{feature}\", asked for by {}, and `{}` without; \
         name it in [workspace.dependencies] and where CONTRIBUTING says",
        with.command(),
        with.askers(package, feature).join(", "),
        without.command(),
    )
}

/// The dependencies that README tells users to write, with paths that lead here.
fn readme() -> String {
    let text = source::read("README.md");
    let (_, block) = text.split_once("```toml\n").expect("README says what a crate needs");
    let (block, _) = block.split_once("```").unwrap();
    block.replace("…/steersman/", &format!("{}/", source::root().display()))
}

#[test]
fn whatever_is_built_has_the_same_features() {
    let mut selections = Selection::here();
    selections.extend(Selection::elsewhere(&readme()));
    let packages: Vec<_> = thread::scope(|scope| {
        let trees: Vec<_> = selections.iter().map(|one| scope.spawn(|| one.packages())).collect();
        trees.into_iter().map(|tree| tree.join().unwrap()).collect()
    });
    let differences = differences(&packages);
    let problems: Vec<String> =
        differences.iter().map(|difference| describe(difference, &selections)).collect();
    assert_tidy(&problems);
}

#[test]
fn a_feature_that_only_some_have_is_found() {
    let alone = packages("tower v0.5.3|util\ntower v0.5.3|util (*)\nours v0.1.0 (/here)|more");
    let program = packages("clap v4.6.7|std\ntower v0.5.3|balance,util\nours v0.1.0 (/here)|");
    let (package, feature) = ("tower v0.5.3".to_owned(), "balance".to_owned());
    let expected = Difference { package, feature, with: 1, without: 0 };
    assert_eq!(differences(&[alone.clone(), program]), [expected]);
    assert_eq!(differences(&[alone.clone(), alone]), []);
}

#[test]
fn a_package_that_macros_use_with_other_features_is_found() {
    let tree = packages("serde_json v1.0.0|raw_value,std\nserde_json v1.0.0|std");
    assert_eq!(differences(&[tree]).len(), 1);
    let tree = packages("k8s-openapi v0.29.0|schemars\nk8s-openapi v0.29.0|schemars,v1_36");
    assert_eq!(differences(&[tree]), []);
}
