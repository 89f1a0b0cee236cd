//! The authority that a conversion webhook's certificate comes from, in PEM. A definition may come
//! before it is known, as a text that is none; it is served when it has one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// What is wrong with the bundle of a definition's webhook, if it has one.
pub fn bundle_mistake(definition: &Value) -> Option<&'static str> {
    mistake(&definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"])
}

/// What is wrong with a bundle; one that is empty trusts whom the machine trusts.
pub(super) fn mistake(bundle: &Value) -> Option<&'static str> {
    let encoded = bundle.as_str().filter(|encoded| !encoded.is_empty())?;
    let Ok(bytes) = STANDARD.decode(encoded) else { return Some(NO_PEM) };
    let text = String::from_utf8_lossy(&bytes);
    let certificates = text.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
    let is_der = |body: &str| {
        let body: String = body.split_whitespace().collect();
        // A certificate is a sequence.
        STANDARD.decode(body).is_ok_and(|der| der.first() == Some(&0x30))
    };
    if certificates.into_iter().any(|(body, _)| is_der(body)) {
        None
    } else if text.contains("-----BEGIN ") {
        Some("unable to load root certificates: no valid certificate authority data seen")
    } else {
        Some(NO_PEM)
    }
}

const NO_PEM: &str = "unable to load root certificates: unable to parse bytes as PEM block";

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::{BEGIN, END, NO_PEM, mistake};

    #[test]
    fn a_bundle_has_certificates_or_is_empty() {
        let encoded = |text: &str| json!(STANDARD.encode(text));
        assert_eq!(mistake(&json!(null)), None);
        assert_eq!(mistake(&json!("")), None);
        assert_eq!(mistake(&encoded("\n")), Some(NO_PEM));
        let body = STANDARD.encode([0x30, 0x03, 1, 2, 3]);
        assert_eq!(mistake(&encoded(&format!("{BEGIN}\n{body}\n{END}\n"))), None);
        assert!(mistake(&encoded(&format!("{BEGIN}\n???\n{END}\n"))).is_some());
    }
}
