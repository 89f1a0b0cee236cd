//! What the store on disk promises beyond the suite that all stores share.

mod reopening;
mod scratch;
