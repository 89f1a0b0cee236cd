//! The reflector against servers that follow a script, and against a model of a server.

mod lists;
mod model;
mod script;
mod server;
mod status;
mod streams;
mod trouble;
mod watches;
