//! No code: the manifest names packages with the features that the whole workspace asks of them.
//! Crates that are not built on `steersman`, which does the same for its users, depend on this one
//! in their tests; so `cargo test -p steersman-store` shares what `cargo test` has built. It is
//! not published, and what is published does not know of it.
//! [Decision 0008](../../../docs/decisions/0008-one-set-of-features.md) says why.
