//! Whether concurrent clients see one order of things.
//!
//! `history` records what clients asked and were told, and when. `search` looks for an order of
//! the operations on one key that explains every answer and in which nothing happens before it was
//! asked or after it was answered. `revisions` checks the order that the store itself claims: its
//! revisions, over all keys, against time and against what a watch tells. `clients` make
//! histories; `broken` are stores that must be caught.

mod broken;
mod clients;
mod history;
mod revisions;
mod runs;
mod search;
