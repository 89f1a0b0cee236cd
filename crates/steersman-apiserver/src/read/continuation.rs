//! The token with which a paged list goes on.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use steersman_store::Revision;

use crate::status::{Result, Status};

/// Where a list goes on, and as of when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Continuation {
    /// The revision of the first page; `None` goes on with whatever is there now.
    pub(super) revision: Option<Revision>,
    /// The first key, below the folder that is listed.
    pub(super) start: String,
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";

impl Continuation {
    pub(super) fn parse(token: &str) -> Result<Self> {
        let invalid = |why: &str| Status::bad_request(format!("continue key is not valid: {why}"));
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
        let bytes = bytes.map_err(|error| invalid(&error.to_string()))?;
        let token: Token =
            serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
        if token.v != VERSION {
            return Err(invalid(&format!(
                "server does not recognize this encoded version {:?}",
                token.v
            )));
        }
        let climbs = token.start.split('/').any(|part| part == "..");
        if token.start.is_empty() || token.start.starts_with('/') || climbs {
            return Err(invalid(&format!("{:?}", token.start)));
        }
        let revision = match token.rv {
            -1 => None,
            rv => Some(Revision(u64::try_from(rv).map_err(|_| {
                invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
            })?)),
        };
        Ok(Self { revision, start: token.start })
    }

    pub(super) fn token(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| i64::try_from(revision.0).unwrap_or(i64::MAX));
        let token = Token { v: VERSION.to_owned(), rv, start: self.start.clone() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::{Continuation, Revision};

    #[test]
    fn a_token_reads_back_as_it_was_written() {
        for revision in [None, Some(Revision(12))] {
            let here = Continuation { revision, start: "ns/name\0".to_owned() };
            assert_eq!(Continuation::parse(&here.token()).unwrap(), here);
        }
    }

    #[test]
    fn a_token_that_climbs_out_of_its_folder_is_refused() {
        for start in ["../secrets", "/secrets", ""] {
            let token = Continuation { revision: None, start: start.to_owned() }.token();
            assert_eq!(Continuation::parse(&token).unwrap_err().code, 400);
        }
        assert_eq!(Continuation::parse("%%%").unwrap_err().code, 400);
    }
}
