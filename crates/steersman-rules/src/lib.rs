//! What an object of Kubernetes may be: the kinds with their fields, defaults and rules, and the
//! ways in which documents are read, merged, compared and shown.
//!
//! Everything here is a function of documents: nothing is stored, sent or awaited, and the time
//! is an argument. The API server is built on it and not the other way round. Start with
//! [`kinds`], which has a folder for each API group and a file for each kind.

// What a kind is.
pub mod kinds;
pub mod resource;
pub mod rules;

// The shape of its documents, and their forms on the wire.
pub mod body;
pub mod protobuf;
pub mod schema;
pub mod versions;

// How a document changes.
pub mod apply;
pub mod patch;

// How documents are chosen and shown.
pub mod selector;
pub mod table;

// What expressions decide about requests.
pub mod admission_policy;
pub mod match_conditions;

// How much of what an object uses, and what it carries.
pub mod quota;
pub mod signing_request;

// The words that rules are made of, and when not to go on.
pub mod abandoned;
pub mod field;
pub mod go_base64;
pub mod metadata;
pub mod names;
pub mod strconv;

pub use steersman_values::quantity;
