//! What schemas know and do.

mod builtin;
mod structural;
mod unset;
