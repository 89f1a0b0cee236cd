//! What a reconcile returns when it fails.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

/// The result of a reconcile and of the framework's own operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, opaque and built by `?` from any other error.
///
/// A reconcile that returns it is tried again with a growing delay, unless the error was
/// wrapped by [`Error::terminal`].
pub struct Error {
    source: Box<dyn StdError + Send + Sync>,
    terminal: bool,
}

impl Error {
    /// An error that trying again cannot mend, such as a specification that makes no sense.
    /// The object is reconciled again only when something changes.
    pub fn terminal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: true }
    }

    /// An error from anything that is one, also from a boxed one, which `?` does not take.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: error.into(), terminal: false }
    }

    /// An error that is only a message.
    pub fn message(text: impl Into<String>) -> Self {
        Self { source: text.into().into(), terminal: false }
    }

    /// Whether trying again cannot help.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether the API server answered that the object does not exist.
    pub fn is_not_found(&self) -> bool {
        // A server that does not know the group says so as text, without a reason.
        self.status().is_some_and(|status| status.is_not_found() || status.code == 404)
    }

    /// Whether the API server refused the write because the object has changed meanwhile, or
    /// because another one has its name by now.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.is_conflict() || is_about_another(status))
    }

    /// Whether the API server refused to create what exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(kube::core::Status::is_already_exists)
    }

    /// What the API server said, if this error came from it.
    pub fn status(&self) -> Option<&kube::core::Status> {
        let mut error: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        while let Some(current) = error {
            if let Some(kube::Error::Api(status)) = current.downcast_ref::<kube::Error>() {
                return Some(status);
            }
            error = current.source();
        }
        None
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self { source: Box::new(error), terminal: false }
    }
}

impl fmt::Display for Error {
    /// The error and what caused it, in one line. Of an answer of the API server, its message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        let mut separator = "";
        let mut said = String::new();
        while let Some(current) = error {
            if let Some(kube::Error::Api(status)) = current.downcast_ref::<kube::Error>() {
                return write!(f, "{separator}{}", status.message);
            }
            let text = current.to_string();
            if !said.ends_with(&text) {
                // Some errors end with what caused them.
                write!(f, "{separator}{text}")?;
                said = text;
            }
            separator = ": ";
            error = current.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Whether a patch was refused because of the uid in it, which must be that of the object. Unlike
/// a PUT, that is answered as a mistake in the object, not as a conflict.
fn is_about_another(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(reason: &str, code: u16) -> Error {
        let status = kube::core::Status::failure("said the server", reason).with_code(code);
        Error::from(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn a_cause_is_not_told_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot build: {source}")]
        struct Outer {
            source: fmt::Error,
        }
        let error = Error::from(Outer { source: fmt::Error });
        assert_eq!(error.to_string(), format!("cannot build: {}", fmt::Error));
    }

    #[test]
    fn what_the_server_said_can_be_asked_for() {
        assert!(refused("NotFound", 404).is_not_found());
        assert!(refused("Conflict", 409).is_conflict());
        assert!(refused("AlreadyExists", 409).is_already_exists());
        assert!(!Error::message("no").is_conflict());
    }

    #[test]
    fn an_error_prints_its_causes_in_one_line() {
        let error = Error::from(std::io::Error::other("disk full"));
        assert_eq!(error.to_string(), "disk full");
        assert_eq!(refused("Conflict", 409).to_string(), "said the server");
        #[derive(Debug, thiserror::Error)]
        #[error("cannot roll out web")]
        struct Wrapped(#[source] kube::Error);
        let status = kube::core::Status::failure("said the server", "Conflict");
        let wrapped = Error::from(Wrapped(kube::Error::Api(status.boxed())));
        assert_eq!(wrapped.to_string(), "cannot roll out web: said the server");
        assert!(wrapped.status().is_some());
    }

    #[test]
    fn only_a_wrapped_error_is_terminal() {
        assert!(Error::terminal("bad spec").is_terminal());
        assert!(!Error::message("try again").is_terminal());
    }
}
