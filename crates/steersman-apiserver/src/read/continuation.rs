//! The token with which a paged list goes on.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine, alphabet};
use serde::{Deserialize, Serialize};
use steersman_rules::body::syntax;
use steersman_store::Revision;

use crate::status::{Result, Status};

/// Where a list goes on, and as of when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The revision of the first page; `None` goes on with whatever is there now.
    pub revision: Option<Revision>,
    /// The first key, below the folder that is listed.
    pub start: String,
    /// How many objects are left, where they were counted: at one revision that only shrinks by
    /// what the pages show.
    pub left: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Token {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
}

/// Base64 as Go reads it: what the last character says beyond whole bytes is passed over.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

const VERSION: &str = "meta.k8s.io/v1";

impl Continuation {
    /// Reads a token; whoever sends it may have made it up.
    pub fn parse(token: &str) -> Result<Self> {
        let invalid = |why: &str| {
            let why = format!("invalid continue token: continue key is not valid: {why}");
            Status::bad_request(why)
        };
        let bytes = BASE64.decode(token).map_err(|error| {
            // Go names the byte, or the group of four that is not whole.
            let at = match error {
                DecodeError::InvalidByte(at, _) => at,
                DecodeError::InvalidPadding => token.find('=').unwrap_or(0),
                _ => token.len().saturating_sub(1) / 4 * 4,
            };
            invalid(&format!("illegal base64 data at input byte {at}"))
        })?;
        let token: Token = serde_json::from_slice(&bytes)
            .map_err(|error| invalid(&syntax::complaint(&bytes, &error)))?;
        if token.v != VERSION {
            let why = format!("server does not recognize this encoded version {}", token.v);
            return Err(invalid(&why));
        }
        let revision = match token.rv {
            -1 => None,
            rv => Some(u64::try_from(rv).ok().filter(|rv| *rv > 0).map(Revision).ok_or_else(
                || invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
            )?),
        };
        if token.start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        // A start that is not in its simplest form could climb out of the folder.
        let odd = |part: &str| matches!(part, "" | "." | "..");
        if token.start.split('/').any(odd) {
            return Err(invalid(&token.start));
        }
        Ok(Self { revision, start: token.start, left: token.left })
    }

    /// The token.
    pub fn token(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| i64::try_from(revision.0).unwrap_or(i64::MAX));
        let token = Token { v: VERSION.to_owned(), rv, start: self.start.clone(), left: self.left };
        BASE64.encode(serde_json::to_vec(&token).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::{Continuation, Revision};

    #[test]
    fn a_token_reads_back_as_it_was_written() {
        for (revision, left) in [(None, None), (Some(Revision(12)), Some(7))] {
            let here = Continuation { revision, start: "ns/name\0".to_owned(), left };
            assert_eq!(Continuation::parse(&here.token()).unwrap(), here);
        }
    }

    #[test]
    fn a_token_that_climbs_out_of_its_folder_is_refused() {
        for start in ["../secrets", "/secrets", ""] {
            let here = Continuation { revision: None, start: start.to_owned(), left: None };
            let token = here.token();
            assert_eq!(Continuation::parse(&token).unwrap_err().code, 400);
        }
        for token in ["x", "%%%"] {
            let refused = Continuation::parse(token).unwrap_err();
            let why = "invalid continue token: continue key is not valid: illegal base64 data at \
                       input byte 0";
            assert_eq!((refused.code, refused.message.as_str()), (400, why), "{token}");
        }
    }

    #[test]
    fn a_token_that_is_none_is_refused_in_the_words_of_go() {
        for (token, why) in [
            ("garbage", r"invalid character '\u0081' looking for beginning of value"),
            ("e30=", "illegal base64 data at input byte 3"),
            ("e30", "server does not recognize this encoded version "),
        ] {
            let refused = Continuation::parse(token).unwrap_err();
            let why = format!("invalid continue token: continue key is not valid: {why}");
            assert_eq!((refused.code, refused.message), (400, why), "{token}");
        }
    }
}
