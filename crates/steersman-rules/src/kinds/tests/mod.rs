//! The rules of kinds, asked as the server asks them: through [`super::for_kind`].

mod examples;
mod families;
mod table;
mod workload_warnings;
mod workloads;
