//! What schemas know and do.

mod builtin;
mod custom;
mod structural;
mod unset;
