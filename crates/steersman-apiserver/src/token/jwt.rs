//! A JSON Web Token in its compact form, taken apart. Nothing it says is true yet.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// The longest token that is looked at, in bytes. What a header can carry is not much more.
pub(crate) const TOKEN_MAX: usize = 128 * 1024;

/// A token, before anybody has verified its signature.
#[derive(Debug)]
pub(crate) struct Jwt<'a> {
    /// What the signature is over.
    pub(crate) signed: &'a str,
    pub(crate) signature: Vec<u8>,
    /// The algorithm that the token says it is signed with.
    pub(crate) algorithm: String,
    /// The key that the token says it is signed with; empty if it says nothing.
    pub(crate) key_id: String,
    /// The statements, as JSON.
    pub(crate) payload: Vec<u8>,
}

/// What a header says. A key that it carries, or where to get one, is passed over.
#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Issued {
    #[serde(default)]
    iss: String,
}

impl<'a> Jwt<'a> {
    /// Takes a token apart; `None` if it is not one, or says that it must be read in a way that is
    /// not known here.
    pub(crate) fn parse(token: &'a str) -> Option<Self> {
        let [header, payload, signature] = parts(token)?;
        let header: Header = object(header)?;
        if header.crit.is_some() {
            return None;
        }
        let (signed, _) = token.rsplit_once('.')?;
        Some(Self {
            signed,
            signature: decoded(signature)?,
            algorithm: header.alg,
            key_id: header.kid,
            payload: decoded(payload)?,
        })
    }
}

/// Who has issued a token, if it is right about that.
pub(crate) fn unverified_issuer(token: &str) -> Option<String> {
    let [_, payload, _] = parts(token)?;
    let issued: Issued = object(payload)?;
    Some(issued.iss)
}

fn parts(token: &str) -> Option<[&str; 3]> {
    if token.len() > TOKEN_MAX {
        return None;
    }
    let mut parts = token.split('.');
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

/// What a part says, which is an object: serde would take a list for one as well.
fn object<T: DeserializeOwned>(part: &str) -> Option<T> {
    let bytes = decoded(part)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *first == b'{' { serde_json::from_slice(&bytes).ok() } else { None }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::{Jwt, TOKEN_MAX, unverified_issuer};

    fn token(header: &str, payload: &str) -> String {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.AAAA", encode(header), encode(payload))
    }

    #[test]
    fn a_token_is_taken_apart() {
        let token = token(r#"{"alg":"ES256","kid":"k","jwk":{"kty":"oct"}}"#, r#"{"iss":"me"}"#);
        let jwt = Jwt::parse(&token).unwrap();
        assert_eq!((jwt.algorithm.as_str(), jwt.key_id.as_str()), ("ES256", "k"));
        assert_eq!((jwt.payload.as_slice(), jwt.signature.len()), (&br#"{"iss":"me"}"#[..], 3));
        assert_eq!(format!("{}.AAAA", jwt.signed), token);
        assert_eq!(unverified_issuer(&token).as_deref(), Some("me"));
    }

    #[test]
    fn what_is_no_token_is_none() {
        let deep = format!("{{\"alg\":{}", "[".repeat(100_000));
        for text in [
            String::new(),
            "..".to_owned(),
            "a.b.c".to_owned(),
            "a.b".to_owned(),
            token(r#"{"alg":"ES256"}"#, "{}") + ".AAAA",
            token("[]", "{}"),
            token(r#"["ES256","",null]"#, "{}"),
            token("{}", "{}"),
            token(r#"{"alg":7}"#, "{}"),
            token(r#"{"alg":"ES256","crit":["exp"]}"#, "{}"),
            token(&deep, "{}"),
            token(r#"{"alg":"ES256"}"#, &"x".repeat(TOKEN_MAX)),
            r#"{"payload":"e30","signatures":[]}"#.to_owned(),
        ] {
            assert!(Jwt::parse(&text).is_none(), "{text:.80}");
        }
        assert_eq!(unverified_issuer(&token("{}", "[]")), None);
        assert_eq!(unverified_issuer(&token("{}", r#"{"iss":7}"#)), None);
        assert_eq!(unverified_issuer(&token("{}", "{}")).as_deref(), Some(""));
    }
}
