//! What certificate signing requests ask for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use steersman_rules::signing_request;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, X509CertificationRequest};

/// Whom a certificate is to be for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// The last one, if there are several.
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
}

/// Whom the certificate of a signing request is to be for, or why that cannot be read.
pub(super) fn subject(request: &Value) -> Result<Subject, String> {
    let encoded = request["spec"]["request"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(encoded).unwrap_or_default();
    let der = signing_request::der(&pem).ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let read = X509CertificationRequest::from_der(&der);
    let (_, read) = read.map_err(|_| "asn1: structure error")?;
    let subject = &read.certification_request_info.subject;
    // A name that cannot be read is not passed over: whoever signs might read it.
    let text = |name: &AttributeTypeAndValue<'_>| match name.as_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err("asn1: structure error".to_owned()),
    };
    let common_names: Vec<String> =
        subject.iter_common_name().map(text).collect::<Result<_, _>>()?;
    Ok(Subject {
        common_name: common_names.into_iter().next_back().unwrap_or_default(),
        organizations: subject.iter_organization().map(text).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::{Subject, subject};
    use crate::identity::der;

    const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    const ORGANIZATION: &[u8] = &[0x55, 4, 10];

    /// A request for a certificate with these names: their type, and the tag and content of the text.
    fn request(names: &[(&[u8], u8, &[u8])]) -> Value {
        let names: Vec<u8> = names
            .iter()
            .flat_map(|(kind, tag, content)| {
                let length = u8::try_from(content.len()).unwrap();
                let text = [&[*tag, length], *content].concat();
                der::set(&der::sequence(&[&der::oid(kind), &text]))
            })
            .collect();
        // Ed25519, with a key and a signature that nobody looks at here.
        let algorithm = der::sequence(&[&der::oid(&[0x2b, 0x65, 0x70])]);
        let info = der::sequence(&[
            &der::integer(&[0]),
            &der::sequence(&[&names]),
            &der::sequence(&[&algorithm, &der::bits(&[1; 32])]),
            &der::choice(0, true, &[]),
        ]);
        let whole = der::sequence(&[&info, &algorithm, &der::bits(&[1; 64])]);
        let body = STANDARD.encode(whole);
        let pem = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n"
        );
        json!({"spec": {"request": STANDARD.encode(pem)}})
    }

    #[test]
    fn names_are_read_in_the_usual_types_of_text() {
        for tag in [0x0c, 0x13, 0x16] {
            let read = subject(&request(&[
                (ORGANIZATION, tag, b"system:masters"),
                (COMMON_NAME, tag, b"eve"),
            ]));
            let organizations = vec!["system:masters".to_owned()];
            let expected = Subject { common_name: "eve".to_owned(), organizations };
            assert_eq!(read, Ok(expected), "{tag:#x}");
        }
    }

    /// UTF-16, UTF-32 and T.61, bytes that are no text, and something else altogether: whoever signs
    /// might read `system:masters` in them.
    #[test]
    fn a_name_in_a_type_that_is_not_read_is_refused_and_not_passed_over() {
        let wide = |width: usize| -> Vec<u8> {
            let letter = |byte: u8| [vec![0; width - 1], vec![byte]].concat();
            b"system:masters".iter().flat_map(|byte| letter(*byte)).collect()
        };
        let [utf16, utf32] = [wide(2), wide(4)];
        for kind in [ORGANIZATION, COMMON_NAME] {
            for (tag, content) in [
                (0x1e, &utf16[..]),
                (0x1c, &utf32[..]),
                (0x0c, b"system:masters\xff"),
                (0x04, b"system:masters"),
                (0x02, &[7]),
            ] {
                let asked = request(&[(COMMON_NAME, 0x0c, b"eve"), (kind, tag, content)]);
                let why = "asn1: structure error".to_owned();
                assert_eq!(subject(&asked), Err(why), "{tag:#x}");
            }
        }
    }
}
