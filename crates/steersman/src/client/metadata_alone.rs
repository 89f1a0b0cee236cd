//! Asking for metadata alone.

use http::header::ACCEPT;
use http::{HeaderValue, Request};

/// Lets a request for metadata alone be answered with whole objects by a server that does not know
/// better, as not every server behind an APIService does: metadata are in these as well. client-go's
/// metadata client asks in the same way. A cache of metadata holds then what it was given.
#[must_use]
pub fn or_whole_objects(mut request: Request<Vec<u8>>) -> Request<Vec<u8>> {
    let Some(alone) = request.headers().get(ACCEPT) else { return request };
    let either = [alone.as_bytes(), b",application/json"].concat();
    if let Ok(either) = HeaderValue::from_bytes(&either) {
        request.headers_mut().insert(ACCEPT, either);
    }
    request
}

#[cfg(test)]
mod tests {
    use kube::api::ListParams;
    use kube::core::Request;

    use super::*;

    #[test]
    fn a_server_that_cannot_tell_metadata_alone_may_tell_all() {
        let request = Request::new("/api/v1/pods").list_metadata(&ListParams::default()).unwrap();
        let accepted = or_whole_objects(request).headers()[ACCEPT].to_str().unwrap().to_owned();
        let alone = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(accepted, format!("{alone},application/json"));
    }
}
