//! Functions: what they are called, which types they take, and what they do.
//!
//! A library is a table. A function may have overloads in several libraries; the checker picks those
//! that fit, and where it cannot tell (`dyn`), each is asked in turn when the expression runs.

mod authorizer;
mod clock;
mod conversions;
mod encoders;
mod format;
mod formats;
mod lists;
mod math;
mod network;
mod operators;
mod optionals;
mod quantity;
mod regexes;
mod semver;
mod sets;
mod standard;
mod strings;
mod urls;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

pub(crate) use format::{Piece, Pieces, complaint as format_complaint};
pub(crate) use regexes::{find, find_all};

use crate::error::Error;
use crate::shape::{Type, split_params};
use crate::value::Value;

/// What a function does.
pub(crate) type Run = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, Error>;

/// A function of a library: name, overloads as (id, signature), what it does. A signature starts with
/// a dot if the first parameter stands before the name.
pub(crate) type Row = (&'static str, &'static [(&'static str, &'static str)], Run);

/// Named sets of functions and macros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Library {
    /// `optional.of`, `.?`, `[?]`, `optMap`.
    Optionals,
    /// `charAt`, `split`, `format`, … as of version 2 of cel-go's extension.
    Strings,
    /// `reverse` of text and another `format`, which came with versions 3 and 4.
    StringsLater,
    /// `math.least`, `math.abs`, …
    Math,
    /// `slice`, `sort`, `distinct`, …
    Lists,
    /// `sets.contains`, …
    Sets,
    /// `base64.encode`, `base64.decode`.
    Encoders,
    /// `all`, `exists`, `transformMap`, … over key and value.
    TwoVariables,
    /// `cel.bind`.
    Bindings,
    /// Kubernetes' `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf` of lists.
    KubernetesLists,
    /// Kubernetes' `find` and `findAll`.
    Regex,
    /// Kubernetes' `url`.
    Urls,
    /// Kubernetes' `quantity`.
    Quantity,
    /// Kubernetes' `ip` and `cidr`.
    Network,
    /// Kubernetes' `format.named` and `validate`.
    Formats,
    /// Kubernetes' `semver`.
    Semver,
    /// Kubernetes' `authorizer`.
    Authorizer,
    /// Kubernetes' `jsonpatch.escapeKey`, which mutating policies have.
    JsonPatch,
}

impl Library {
    /// What Kubernetes 1.36 offers everywhere.
    pub const KUBERNETES: [Library; 13] = [
        Library::Optionals,
        Library::Strings,
        Library::Lists,
        Library::Sets,
        Library::TwoVariables,
        Library::KubernetesLists,
        Library::Regex,
        Library::Urls,
        Library::Quantity,
        Library::Network,
        Library::Formats,
        Library::Semver,
        Library::Authorizer,
    ];

    /// cel-go's own extensions.
    pub const EXTENSIONS: [Library; 9] = [
        Library::Optionals,
        // What came later stands in for what was before.
        Library::StringsLater,
        Library::Strings,
        Library::Math,
        Library::Lists,
        Library::Sets,
        Library::Encoders,
        Library::TwoVariables,
        Library::Bindings,
    ];

    fn rows(self) -> &'static [Row] {
        match self {
            Library::Optionals => optionals::ROWS,
            Library::Strings => strings::ROWS,
            Library::StringsLater => strings::LATER,
            Library::Math => math::ROWS,
            Library::Lists => lists::ROWS,
            Library::Sets => sets::ROWS,
            Library::Encoders => encoders::ROWS,
            Library::TwoVariables => optionals::MAP_INSERT,
            Library::Bindings => &[],
            Library::KubernetesLists => lists::KUBERNETES,
            Library::Regex => regexes::ROWS,
            Library::Urls => urls::ROWS,
            Library::Quantity => quantity::ROWS,
            Library::Network => network::ROWS,
            Library::Formats => formats::ROWS,
            Library::Semver => semver::ROWS,
            Library::Authorizer => authorizer::ROWS,
            Library::JsonPatch => encoders::JSON_PATCH,
        }
    }
}

/// One way to call a function.
#[derive(Clone, Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    /// Names that stand for types in it.
    pub(crate) type_params: Vec<Arc<str>>,
    pub(crate) run: Run,
}

/// All functions that an environment has.
pub(crate) type Functions = HashMap<&'static str, Vec<Overload>>;

static KUBERNETES: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(build(&Library::KUBERNETES)));

/// The functions of the standard library and of those named.
pub(crate) fn functions(libraries: &[Library]) -> Arc<Functions> {
    if libraries == Library::KUBERNETES {
        return Arc::clone(&KUBERNETES);
    }
    Arc::new(build(libraries))
}

fn build(libraries: &[Library]) -> Functions {
    let mut functions = Functions::new();
    let standard = [operators::ROWS, standard::ROWS, conversions::ROWS, clock::ROWS];
    let rows = standard.into_iter().chain(libraries.iter().map(|library| library.rows()));
    for (name, overloads, run) in rows.flatten() {
        let known = functions.entry(name).or_default();
        for (id, signature) in *overloads {
            if known.iter().all(|overload| overload.id != *id) {
                known.push(overload(id, signature, *run));
            }
        }
    }
    functions
}

fn overload(id: &'static str, signature: &str, run: Run) -> Overload {
    let member = signature.starts_with('.');
    let signature = signature.trim_start_matches('.').trim_start_matches('(');
    let mut depth = 1;
    let end = signature.char_indices().find_map(|(at, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    });
    let (params, result) = signature.split_at(end.unwrap_or(signature.len()));
    let params: Vec<Type> = split_params(params).into_iter().map(Type::read).collect();
    let result = Type::read(result.trim_start_matches(')'));
    let mut type_params = Vec::new();
    params.iter().chain([&result]).for_each(|ty| collect_params(ty, &mut type_params));
    Overload { id, member, params, result, type_params, run }
}

fn collect_params(ty: &Type, out: &mut Vec<Arc<str>>) {
    match ty {
        Type::Param(name) if !out.contains(name) => out.push(Arc::clone(name)),
        Type::List(of) => collect_params(of, out),
        Type::Map(of) => {
            collect_params(&of.0, out);
            collect_params(&of.1, out);
        }
        Type::Type(Some(of)) => collect_params(of, out),
        Type::Opaque(_, params) => params.iter().for_each(|ty| collect_params(ty, out)),
        _ => {}
    }
}

/// What a function says that was given something else than it takes.
fn no_overload<'a>() -> Result<Value<'a>, Error> {
    Err(Error::no_such_overload())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let overload = overload("x", ".(list(A), map(string, A)) optional(A)", no_overload_run);
        assert!(overload.member);
        assert_eq!(overload.params[1].to_string(), "map(string, A)");
        assert_eq!(overload.result.to_string(), "optional_type(A)");
        assert_eq!(overload.type_params.len(), 1);
    }

    fn no_overload_run<'a>(_: &[Value<'a>]) -> Result<Value<'a>, Error> {
        no_overload()
    }
}
