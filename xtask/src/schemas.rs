//! Writes the table of built-in types of the rules (`schema/builtin.txt`), which the API server reads.
//!
//! Fields, their types and most list types come from the sources of the k8s-openapi crate, whose
//! deserialisers and merge implementations state them; `facts.txt` adds what those do not tell.
//! Only types reachable from a kind of a stable version are written, and from the few others that are
//! served on request.

mod facts;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use source::{Field, Type, TypeRef};

const CRATE: &str = "k8s-openapi-0.29";
const VERSION: &str = "v1_36";
const HEADER: &str = "\
# The types of Kubernetes' API, one block each. Written by `cargo xtask schemas`; do not edit.
#
# kind GROUP/VERSION KIND TYPE
# type NAME [atomic]
#   FIELD TYPE [!] [map=KEYS] [set] [atomic] [granular] [patch=RULE] [default=VALUE]
#     [enum=VALUES] [go=NAME] [in=STRUCTS] [value] [unset=zero|unset=null|omitempty]
#
# [T] is a list, {T} a map of T, and <T> a T if it is an object, or anything; `!` marks required
# fields. Lists are atomic and maps granular unless said otherwise. `patch` is strategic merge's rule where it does not follow from the list
# type. `enum` says what a field, list item or map value may be (`~` is a space). `go` is what Go
# calls the type where that does not follow from it, `in` are the embedded structs that hold the
# field. `value` marks structs that exist even when nothing is set in them. `unset` is what a
# document has in a field in which nothing is set, if not nothing; `omitempty` says that a zero is
# nothing, too.
";

/// Reads k8s-openapi and writes `crates/steersman-rules/src/schema/builtin.txt`.
pub(crate) fn generate() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut types = source::read(&sources()?.join("src").join(VERSION))?;
    mark_values(&mut types);
    facts::lay_over(&mut types)?;
    let target = root.join("crates/steersman-rules/src/schema/builtin.txt");
    fs::write(&target, render(&types)).map_err(|e| format!("{}: {e}", target.display()))
}

/// Where cargo unpacked the crate.
fn sources() -> Result<PathBuf, String> {
    let home = env::var("CARGO_HOME").map(PathBuf::from).or_else(|_| {
        env::var("HOME").map(|home| Path::new(&home).join(".cargo")).map_err(|e| e.to_string())
    })?;
    let registries = home.join("registry/src");
    let list = |dir: &Path| fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()));
    for registry in list(&registries)?.flatten() {
        for package in list(&registry.path())?.flatten() {
            if package.file_name().to_string_lossy().starts_with(CRATE) {
                return Ok(package.path());
            }
        }
    }
    Err(format!("{CRATE} is not in {}; run `cargo fetch`", registries.display()))
}

/// `metadata`, `spec` and `status` of kinds and templates exist even when empty.
fn mark_values(types: &mut BTreeMap<String, Type>) {
    for (name, ty) in types.iter_mut() {
        if ty.kind.is_none() && !name.ends_with("TemplateSpec") {
            continue;
        }
        for field in &mut ty.fields {
            let struct_typed = matches!(&field.ty, TypeRef::Named(_));
            if struct_typed && ["metadata", "spec", "status"].contains(&field.name.as_str()) {
                field.flags.value = true;
                field.required &= field.name != "metadata";
            }
        }
    }
}

fn render(types: &BTreeMap<String, Type>) -> String {
    let mut out = String::from(HEADER);
    let mut reachable = BTreeSet::new();
    out.push('\n');
    for (name, ty) in types {
        if let Some(kind) =
            ty.kind.as_ref().filter(|kind| kind.is_served() && !name.starts_with("meta."))
        {
            let _ = writeln!(out, "kind {} {} {name}", kind.api_version, kind.name);
            reach(types, name, &mut reachable);
        }
    }
    for name in &reachable {
        render_type(&mut out, name, &types[name]);
    }
    out
}

fn reach(types: &BTreeMap<String, Type>, name: &str, reachable: &mut BTreeSet<String>) {
    if !types.contains_key(name) || !reachable.insert(name.to_owned()) {
        return;
    }
    for field in &types[name].fields {
        if let Some(next) = field.ty.named() {
            reach(types, next, reachable);
        }
    }
}

fn render_type(out: &mut String, name: &str, ty: &Type) {
    let _ = writeln!(out, "\ntype {name}{}", if ty.atomic { " atomic" } else { "" });
    for Field { name, ty, required, flags } in &ty.fields {
        let _ = write!(out, "  {name} {ty}");
        if *required {
            out.push_str(" !");
        }
        let _ = writeln!(out, "{flags}");
    }
}
