//! What `deny.toml` says about licenses, bans and sources, checked where cargo-deny is not at
//! hand: to install it takes longer than every other check. Advisories need a network and
//! stay with `cargo deny check`.
//!
//! Bans and sources are looked up in `Cargo.lock`, which has the packages of every platform;
//! licenses stand only in the packages themselves, and those of this platform are here.

mod license;

use serde_json::Value;
use toml::{Table, Value as Toml};

use crate::{assert_tidy, metadata, source};

/// What is understood of each section. Another setting would be passed over in silence.
const KNOWN: [(&str, &[&str]); 3] = [
    ("licenses", &["allow"]),
    ("bans", &["multiple-versions", "wildcards", "allow-wildcard-paths", "deny"]),
    ("sources", &["unknown-registry", "unknown-git", "allow-registry"]),
];

/// What `deny.toml` says.
struct Rules {
    text: Table,
}

impl Rules {
    fn read(text: &str) -> Self {
        Self { text: text.parse().unwrap() }
    }

    fn section(&self, name: &str) -> &Table {
        self.text[name].as_table().unwrap()
    }

    fn list(&self, section: &str, key: &str) -> Vec<&str> {
        let list = self.section(section)[key].as_array().unwrap();
        list.iter().map(|entry| entry.as_str().unwrap()).collect()
    }

    /// Whether something is denied, which everything is that is not allowed by name.
    fn denies(&self, section: &str, key: &str) -> bool {
        self.section(section).get(key).and_then(Toml::as_str) != Some("allow")
    }

    fn unknown(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, known) in KNOWN {
            for key in self.section(name).keys().filter(|key| !known.contains(&key.as_str())) {
                problems.push(format!("deny.toml: the tidy test does not know {name}.{key}"));
            }
        }
        problems
    }

    /// What must not be in a lock file.
    fn problems_of_lock(&self, lock: &str) -> Vec<String> {
        let lock: Table = lock.parse().unwrap();
        let packages = lock["package"].as_array().unwrap();
        packages
            .iter()
            .flat_map(|package| {
                let name = package["name"].as_str().unwrap();
                [self.banned(name, packages), self.foreign(name, package.get("source"))]
            })
            .flatten()
            .collect()
    }

    fn banned(&self, name: &str, packages: &[Toml]) -> Option<String> {
        let bans = self.section("bans")["deny"].as_array().unwrap();
        let ban = bans.iter().find(|ban| ban["crate"].as_str() == Some(name))?;
        let brings = |package: &&Toml| {
            let dependencies = package.get("dependencies").and_then(Toml::as_array);
            dependencies.into_iter().flatten().any(|dependency| {
                // `name`, or `name version` where there are several versions.
                dependency.as_str().and_then(|text| text.split(' ').next()) == Some(name)
            })
        };
        let by: Vec<&str> =
            packages.iter().filter(brings).filter_map(|package| package["name"].as_str()).collect();
        let reason = ban["reason"].as_str().unwrap();
        Some(format!("{name} is banned, and {} brings it: {reason}", by.join(", ")))
    }

    fn foreign(&self, name: &str, source: Option<&Toml>) -> Option<String> {
        // What has no source is part of this workspace.
        let source = source?.as_str().unwrap();
        let foreign = match source.split_once('+') {
            Some(("registry" | "sparse", address)) => {
                let known = self.list("sources", "allow-registry");
                !known.contains(&address) && self.denies("sources", "unknown-registry")
            }
            _ => self.denies("sources", "unknown-git"),
        };
        foreign.then(|| format!("{name} comes from {source}; take it from crates.io"))
    }

    /// What is wrong with a package, as cargo describes it.
    fn problems_of_package(&self, package: &Value) -> Vec<String> {
        let name = package["name"].as_str().unwrap();
        let mut problems = Vec::new();
        let allowed = self.list("licenses", "allow");
        match package["license"].as_str().map(|license| license::allows(&allowed, license)) {
            None => problems.push(format!("{name} does not say under which license it is")),
            Some(Err(error)) => problems.push(format!("{name}: {error}")),
            Some(Ok(true)) => {}
            Some(Ok(false)) => problems.push(format!(
                "{name} is under {}, which deny.toml does not allow; use another crate, or add \
                 the license if it may be part of an Apache-2.0 program",
                package["license"]
            )),
        }
        // How others choose the versions of theirs is not for us to say.
        let wildcards = self.denies("bans", "wildcards") && package["source"].is_null();
        let paths = self.section("bans")["allow-wildcard-paths"].as_bool().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let excused = paths && dependency.get("path").is_some_and(Value::is_string);
            if wildcards && dependency["req"] == "*" && !excused {
                let dependency = &dependency["name"];
                problems.push(format!("{name}: say which version of {dependency}, not `*`"));
            }
        }
        problems
    }
}

#[test]
fn what_is_built_from_is_allowed() {
    let rules = Rules::read(&source::read("deny.toml"));
    let mut problems = rules.unknown();
    problems.extend(rules.problems_of_lock(&source::read("Cargo.lock")));
    let packages = metadata::built_from();
    assert!(packages.len() > 100, "no dependencies found: the check would pass on nothing");
    problems.extend(packages.iter().flat_map(|package| rules.problems_of_package(package)));
    assert_tidy(&problems);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The real rules: what is made up must be refused by these.
    fn rules() -> Rules {
        Rules::read(&source::read("deny.toml"))
    }

    fn package(license: &Value, dependencies: &Value) -> Value {
        json!({ "name": "x", "license": license, "source": null, "dependencies": dependencies })
    }

    #[test]
    fn a_package_under_another_license_or_none_is_refused() {
        let refused = |license: Value| rules().problems_of_package(&package(&license, &json!([])));
        assert_eq!(refused(json!("MIT OR Apache-2.0")), [""; 0]);
        assert!(refused(json!("AGPL-3.0-only"))[0].contains("x is under \"AGPL-3.0-only\""));
        assert!(refused(json!("MIT AND SSPL-1.0"))[0].contains("deny.toml does not allow"));
        assert!(refused(json!("as you like"))[0].contains("no license expression"));
        assert!(refused(Value::Null)[0].contains("does not say"));
    }

    #[test]
    fn a_dependency_of_ours_in_any_version_is_refused() {
        let any = json!([{ "name": "y", "req": "*", "path": null }]);
        let mut package = package(&json!("MIT"), &any);
        assert!(rules().problems_of_package(&package)[0].contains("which version of \"y\""));
        package["source"] = json!("registry+somewhere");
        assert_eq!(rules().problems_of_package(&package), [""; 0]);
    }

    #[test]
    fn a_banned_package_is_refused_with_who_brings_it() {
        let lock = r#"
            [[package]]
            name = "x"
            dependencies = ["openssl 1.0.0", "y"]
            [[package]]
            name = "openssl"
            source = "registry+https://github.com/rust-lang/crates.io-index"
        "#;
        let [problem] = rules().problems_of_lock(lock).try_into().unwrap();
        assert!(problem.starts_with("openssl is banned, and x brings it: TLS is"), "{problem}");
    }

    #[test]
    fn a_package_from_elsewhere_is_refused() {
        let from = |source: &str| {
            let lock = format!("[[package]]\nname = \"x\"\nsource = \"{source}\"\n");
            rules().problems_of_lock(&lock).len()
        };
        assert_eq!(from("registry+https://github.com/rust-lang/crates.io-index"), 0);
        assert_eq!(from("registry+https://crates.example.com/index"), 1);
        assert_eq!(from("git+https://github.com/somebody/x?branch=main#0123456"), 1);
    }

    #[test]
    fn a_setting_that_is_not_understood_is_told() {
        let text = source::read("deny.toml").replace("[licenses]", "[licenses]\nexceptions = []");
        assert_eq!(Rules::read(&text).unknown().len(), 1);
    }
}
