//! The tests of the API server as its clients see it, in `it/`. They are a package of their own because
//! Cargo optimises whole packages: the server, since what a test costs is requests, but not the tests,
//! which the compiler would work on five times as long.
