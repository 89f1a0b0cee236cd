//! Programs that must not compile, in `programs/`; beside each, what the compiler says about it.
