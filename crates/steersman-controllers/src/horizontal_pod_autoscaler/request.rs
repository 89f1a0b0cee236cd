//! Requests to APIs that are known by nothing but their path, and their failures in the words of
//! client-go, which stand in conditions and Events.

use std::fmt::Write as _;

use http::{Method, Request};
use serde::de::DeserializeOwned;
use steersman::{Client, Error, Result};

/// What `kube` says is the reason of an answer that is no `Status`.
const NO_STATUS: &str = "Failed to parse error data";
/// What is said of a path that is not served. Where a server says so itself, it is told as well
/// what was asked for, as people know it from clusters without a metrics server.
const NOT_SERVED: &str = "the server could not find the requested resource";

/// A request.
pub(super) struct Call<'a> {
    pub(super) method: Method,
    /// Where to, encoded.
    pub(super) path: String,
    /// Parameters; those without a value are left out.
    pub(super) query: &'a [(&'a str, &'a str)],
    /// Of which resource, with its group.
    pub(super) resource: &'a str,
    /// Of which object, if of one.
    pub(super) name: &'a str,
}

impl Call<'_> {
    /// Sends the request, with this body.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        client: &Client,
        body: Vec<u8>,
    ) -> Result<T> {
        let mut uri = self.path.clone();
        let given = self.query.iter().filter(|(_, value)| !value.is_empty());
        for (n, (key, value)) in given.enumerate() {
            let separator = if n == 0 { '?' } else { '&' };
            let _ = write!(uri, "{separator}{key}={}", encoded(value));
        }
        let mut request = Request::builder().method(&self.method).uri(uri);
        if !body.is_empty() {
            request = request.header("Content-Type", "application/json");
        }
        match client.kube().request(request.body(body)?).await {
            Err(kube::Error::Api(status))
                if status.reason == NO_STATUS || status.message == NOT_SERVED =>
            {
                Err(Error::message(self.unanswered(status.code, &status.message)))
            }
            answer => Ok(answer?),
        }
    }

    /// What client-go makes of an answer that says nothing but a status code.
    fn unanswered(&self, code: u16, text: &str) -> String {
        let message = match code {
            400 => "the server rejected our request for an unknown reason".to_owned(),
            401 => "the server has asked for the client to provide credentials".to_owned(),
            403 => text.to_owned(),
            404 => NOT_SERVED.to_owned(),
            405 => "the server does not allow this method on the requested resource".to_owned(),
            409 => "the server reported a conflict".to_owned(),
            429 => "the server has received too many requests and has asked us to try again later"
                .to_owned(),
            503 => "the server is currently unable to handle the request".to_owned(),
            504 => {
                "the server was unable to return a response in the time allotted, but may still \
                    be processing the request"
                    .to_owned()
            }
            500.. => {
                format!(
                    "an error on the server ({text:?}) has prevented the request from succeeding"
                )
            }
            _ => format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ),
        };
        let verb = self.method.as_str().to_lowercase();
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        format!("{message} ({verb} {}{name})", self.resource)
    }
}

/// A part of a path, or the value of a parameter. A star may stand for all objects.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'*' => {
                encoded.push(byte.into());
            }
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}
