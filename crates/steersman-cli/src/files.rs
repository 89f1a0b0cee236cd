//! How many files the program may have open.

/// Allows as many as the system lets it: every connection is one, and many systems begin with 1,024
/// although they allow a thousand times as many. Without, there is just less room.
pub(crate) fn allow_many() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
