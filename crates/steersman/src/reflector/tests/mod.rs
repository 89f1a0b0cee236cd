//! The reflector against servers that follow a script, and against a model of a server.

mod decoding;
mod lists;
mod model;
mod not_served;
mod script;
mod server;
mod status;
mod streams;
mod trouble;
mod watches;
