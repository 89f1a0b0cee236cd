//! Requests in the name of another user.

use std::sync::Arc;

use http::header::{HeaderName, HeaderValue, InvalidHeaderValue};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");

/// A user in whose name requests are made, by [`Client::acting_as`](super::Client::acting_as) and its
/// like. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Impersonation {
    /// The user, then the groups.
    names: Arc<[HeaderValue]>,
}

impl Impersonation {
    /// A user with these groups.
    ///
    /// # Errors
    ///
    /// If a name has characters that no header can have.
    pub fn new(user: &str, groups: &[&str]) -> Result<Self, InvalidHeaderValue> {
        let names = [user].into_iter().chain(groups.iter().copied());
        let names: Result<Vec<HeaderValue>, _> = names.map(HeaderValue::from_str).collect();
        Ok(Self { names: names?.into() })
    }

    /// Puts the user into a request.
    pub(super) fn sign<B>(&self, request: &mut http::Request<B>) {
        for (n, name) in self.names.iter().enumerate() {
            let header = if n == 0 { USER } else { GROUP };
            request.headers_mut().append(header, name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Impersonation;

    #[test]
    fn a_request_names_the_user_and_each_group() {
        let node = Impersonation::new("system:node:a", &["system:nodes", "others"]).unwrap();
        let mut request = http::Request::new(());
        node.sign(&mut request);
        let headers = request.headers();
        assert_eq!(headers["impersonate-user"], "system:node:a");
        let groups: Vec<_> = headers.get_all("impersonate-group").iter().collect();
        assert_eq!(groups, ["system:nodes", "others"]);
        assert!(Impersonation::new("a\nb", &[]).is_err());
    }
}
