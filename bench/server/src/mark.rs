//! How an object tells when it was written: the same in every kind.

/// The annotation of an object that says when it was last written.
pub const WRITTEN: &str = "bench.steersman.dev/written";
