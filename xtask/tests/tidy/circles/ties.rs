//! Who uses whom within a crate: paths are followed to the file that defines what they name.
//!
//! A name that another module only passes on (`pub use child::Name`) ties to where it is
//! defined and not to who passes it on. Naming a module is no tie; naming something in it is.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Import, Mention, Module};
use crate::source::Source;

/// A module's names from the crate's root down; the root is empty.
pub(super) type Path = Vec<String>;

/// One file of a crate uses something that another one defines.
#[derive(Clone, Debug)]
pub(super) struct Tie {
    pub(super) from: Path,
    pub(super) to: Path,
    /// Where, as `file:line`.
    pub(super) place: String,
    /// What is used, as the source names it.
    pub(super) name: String,
}

/// The code of one library or program, without its tests.
pub(super) struct Crate {
    modules: BTreeMap<Path, Placed>,
}

/// A module, and the file that it stands in.
struct Placed {
    /// The module whose file it is: its own, but for `mod … { }` inside of a file.
    file: Path,
    /// The file's path in the repository.
    source: String,
    children: BTreeSet<String>,
    module: Module,
}

/// What a path leads to.
enum Target {
    Module(Path),
    /// Something that the file of this module defines.
    Item(Path),
}

impl Crate {
    /// Reads a crate from its root on, by the modules that it declares.
    pub(super) fn read(root: &str, sources: &BTreeMap<&str, &Source>) -> Self {
        let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut read = Self { modules: BTreeMap::new() };
        let mut ahead = vec![(Path::new(), root.to_owned(), directory.to_owned())];
        while let Some((path, file, directory)) = ahead.pop() {
            let text = sources.get(file.as_str()).map(|source| source.text.as_str());
            let text = text.unwrap_or_else(|| panic!("{file} is declared and does not exist"));
            let module = Module::read(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            for name in &module.files {
                let beneath = format!("{directory}/{name}");
                let candidates = [format!("{beneath}.rs"), format!("{beneath}/mod.rs")];
                let found = candidates.iter().find(|file| sources.contains_key(file.as_str()));
                let found = found.unwrap_or(&candidates[0]).clone();
                ahead.push((joined(&path, name), found, beneath));
            }
            read.place(&path, path.clone(), &file, module);
        }
        read
    }

    fn place(&mut self, file: &Path, path: Path, source: &str, mut module: Module) {
        let mut children: BTreeSet<String> = module.files.iter().cloned().collect();
        for (name, inline) in std::mem::take(&mut module.inline) {
            self.place(file, joined(&path, &name), source, inline);
            children.insert(name);
        }
        let source = source.to_owned();
        self.modules.insert(path, Placed { file: file.clone(), source, children, module });
    }

    /// Every module that has a file.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.modules.iter().filter(|(path, placed)| **path == placed.file).map(|(path, _)| path)
    }

    /// Whether a module has others in files beneath it.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        self.modules.get(path).is_some_and(|placed| !placed.module.files.is_empty())
    }

    /// Every use of one file by another, in the order of the files and their lines.
    pub(super) fn ties(&self) -> Vec<Tie> {
        let mut ties = Vec::new();
        for (path, placed) in &self.modules {
            let module = &placed.module;
            let imports = module.imports.iter().map(|import| (&import.of, import.glob));
            let mentions = module.mentions.iter().map(|mention| (mention, true));
            for (mention, counts_modules) in imports.chain(mentions) {
                let to = match self.target(path, &mention.path, &mut BTreeSet::new()) {
                    Some(Target::Item(file)) => file,
                    Some(Target::Module(module)) if counts_modules => module,
                    _ => continue,
                };
                let to = self.modules[&to].file.clone();
                if to != placed.file {
                    ties.push(tie(placed, to, mention));
                }
            }
        }
        ties
    }

    /// Follows a path from the module in which it is written. None: it leaves the crate.
    fn target(
        &self,
        from: &Path,
        path: &[String],
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Target> {
        let first = path.first()?;
        let mut base = from.clone();
        let mut rest = path;
        match first.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {}
            name => {
                let placed = &self.modules[from];
                if !placed.children.contains(name) && placed.module.imported(name).is_none() {
                    return None;
                }
            }
        }
        while rest.first().is_some_and(|word| word == "super") {
            base.pop();
            rest = &rest[1..];
        }
        self.descend(base, rest, seen)
    }

    fn descend(
        &self,
        mut at: Path,
        path: &[String],
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Target> {
        for (index, name) in path.iter().enumerate() {
            let placed = &self.modules[&at];
            if placed.children.contains(name) {
                at.push(name.clone());
                continue;
            }
            let rest = &path[index + 1..];
            if let Some(import) = placed.module.imported(name) {
                if !seen.insert((at.clone(), name.clone())) {
                    return None;
                }
                let onward: Path = import.of.path.iter().chain(rest).cloned().collect();
                return self.target(&at, &onward, seen);
            }
            let passed_on = self.by_glob(&at, &path[index..], seen);
            return passed_on.or_else(|| Some(Target::Item(self.modules[&at].file.clone())));
        }
        Some(Target::Module(at))
    }

    /// Looks for a name that a module does not define where its `use …::*` lead.
    fn by_glob(
        &self,
        at: &Path,
        path: &[String],
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Target> {
        let placed = &self.modules[at];
        let name = &path[0];
        if placed.module.defined.contains(name) {
            return None;
        }
        placed.module.imports.iter().filter(|import| import.glob).find_map(|import| {
            let key = (at.clone(), format!("{}::*", import.of.path.join("::")));
            let Target::Module(module) =
                seen.insert(key).then(|| self.target(at, &import.of.path, seen)).flatten()?
            else {
                return None;
            };
            let beneath = &self.modules[&module];
            let known = beneath.children.contains(name)
                || beneath.module.defined.contains(name)
                || beneath.module.imported(name).is_some();
            if known { self.descend(module, path, seen) } else { None }
        })
    }
}

impl Module {
    fn imported(&self, name: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.name.as_deref() == Some(name))
    }
}

fn tie(placed: &Placed, to: Path, mention: &Mention) -> Tie {
    let place = format!("{}:{}", placed.source, mention.line);
    Tie { from: placed.file.clone(), to, place, name: mention.path.join("::") }
}

fn joined(path: &Path, name: &str) -> Path {
    let mut joined = path.clone();
    joined.push(name.to_owned());
    joined
}
