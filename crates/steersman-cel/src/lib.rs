//! The Common Expression Language as Kubernetes speaks it.
//!
//! An [`Env`] declares variables by their [`Shape`] and chooses [`Library`]s. It compiles a text into
//! a [`Program`], which is evaluated any number of times, straight over `serde_json` values that are
//! borrowed as they stand. Errors have cel-go's words, at compile time ([`Issues`]) and at run time
//! ([`Error`]). What an evaluation costs is counted and bounded as in Kubernetes, and
//! [`Compiled::estimate`] says beforehand what it can cost at most.
//!
//! Nothing here panics on any input or recurses deeper than an expression may nest; regular
//! expressions match in linear time. Nothing here knows of servers or requests: whoever runs an
//! expression with an `authorizer` brings an [`access::Authorizer`].
//!
//! Text becomes tokens and a tree (`parser`), the tree gets types (`checker`) and becomes a program
//! (`program`), which calls functions (`library`) on values (`value`).

mod ast;
mod checker;
mod compiled;
mod effort;
mod env;
mod error;
mod estimate;
mod extension;
mod go_pattern;
mod library;
mod parser;
mod pattern;
mod print;
mod program;
mod schema;
mod selection;
mod shape;
mod source;
mod time;
mod value;
mod words;

pub use compiled::Compiled;
pub use env::Env;
pub use error::{Error, ErrorKind};
pub use estimate::Estimate;
pub use extension::{Extension, Format, Url, Version, access};
pub use go_pattern::translate_pattern;
pub use library::Library;
pub use program::{
    Activation, Budget, Fields, Lazy, MATCH_CONDITIONS_BUDGET, Outcome, PER_CALL_LIMIT, Program,
    RUNTIME_BUDGET,
};
pub use shape::{
    Field, ListKind, ObjectShape, REQUEST_BYTES_MAX, Shape, ShapeKind, Type, escape, unescape,
};
pub use source::{Issue, Issues};
pub use time::{Duration, Timestamp};
pub use value::{Key, List, Map, Struct, Text, Value};
pub use words::is_identifier;
