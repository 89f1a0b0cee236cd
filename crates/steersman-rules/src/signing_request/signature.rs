//! Whether who asks to be certified has the key: a request is signed with it.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::public_key::PublicKey;

/// RSA keys below are too short for the checks at hand.
const RSA_BITS_MIN: usize = 2048;
const ED25519: &str = "1.3.101.112";

/// Why a request is not signed with its own key. One of which that cannot be told passes: keys and
/// algorithms are in use that few can check.
pub(crate) fn mistake(request: &X509CertificationRequest<'_>) -> Option<&'static str> {
    let Err(X509Error::SignatureVerificationError) = request.verify_signature() else {
        return None;
    };
    let key = &request.certification_request_info.subject_pki;
    match key.parsed().ok()? {
        PublicKey::RSA(rsa) if rsa.key_size() < RSA_BITS_MIN => None,
        PublicKey::RSA(_) => Some("crypto/rsa: verification error"),
        PublicKey::EC(_) => Some("x509: ECDSA verification failure"),
        _ if key.algorithm.algorithm.to_id_string() == ED25519 => {
            Some("x509: Ed25519 verification failure")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use x509_parser::prelude::{FromDer, X509CertificationRequest};

    use super::mistake;

    const ELLIPTIC: &str = "
        MIHnMIGNAgEAMCsxDDAKBgNVBAoMA2RldjEMMAoGA1UECgwDb3BzMQ0wCwYDVQQD
        DARqYW5lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETQOz8QNg9CBb2thsgUrS
        D3qoUr5dLnIMo7DsPo3nH2u+/7HWDnhxNsPAFzZgVBCrcboSyspfIx1ZOS6fhUdp
        7qAAMAoGCCqGSM49BAMCA0kAMEYCIQDmQ+r7AbP8n1qZLglNLr1BZkaEWYiyuTrL
        3gcSQdP1kgIhAIzAUlcyp756RP1QEKt8S/o0ICb2Jmjy5G+tiLNHVr/H";
    const EDWARDS: &str = "
        MIGOMEICAQAwDzENMAsGA1UEAwwEamFuZTAqMAUGAytlcAMhAEcRex6JULQDEeGA
        MLhRonHUvecaxa7snwhcQFJE2WVboAAwBQYDK2VwA0EAfxjsKZxEGL1Jn6iy1PCv
        3i5CXZsawkWco57PPo3J3krQYSl5il4+E8T0bv7zpXT0Us9jF13T9BETeldjbl2K
        Bg==";
    const SHORT_RSA: &str = "
        MIIBSzCBtQIBADAMMQowCAYDVQQDDAFhMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCB
        iQKBgQDQElOXHwSYuGVyE4m2hUHAiFPLUJorYwtEWB48ZnWpD/nl7D/xMEcb2zc9
        E3Kz6m4sgW1BDXom4J/9QFPzz/u8NsgDH0Yvoy4ID1qXJDBSZjloIYN/6qvtSUJf
        968A+cDTyMPt1nvR1OkMkPAcQOmw61cAPGUz+dxPkR5JGY1WDwIDAQABoAAwDQYJ
        KoZIhvcNAQELBQADgYEAWTZEWUaF55/RIq1wYJSFpKsGsBa+Jfc9nhpUnWqGnasJ
        XhspFqlDaxxcMmSkUClHhXc4jaLPz40ukpmf5ijwTim0qFaXzlExWx6oUsNE2EHl
        kqgDluIzG+O+lI6lqBGJIXLcB753M0V2ikKf0yXggcwwMb6SAoHGnCQk7Ttxip4=";
    const RSA: &str = "
        MIICVDCCATwCAQAwDzENMAsGA1UEAwwEamFuZTCCASIwDQYJKoZIhvcNAQEBBQAD
        ggEPADCCAQoCggEBALCagwEW4Exek6u1r/xSJZVuYT+bFfPCyCEW6LnkJ8Tt8QEF
        WTrEim3RMlxO0pWRUyw9xJeoGGZsr+8Phv6VoovVIAkfyxGesF+ZJb1SRGo0Wbl8
        EebBuV3MGVP714bMWX4fbGlDmraPr9WbNgT+OJje2ZOKuFvfjZWXLcXm8224ap7i
        7Cm2xsVufLPU7epg3oeFDVAp/+y+H3YampG1GMDcMIuw7ucU1FW8M16eQM9UQlPh
        7R8i0o016ulRmorbKXcgaqc0YHl6dyU9OViKFUTDdQC+8Zv0Z/Ow+XKl7+v6batA
        EVHn2Qeu6dYZSxtz3m8+7IwoDMoeaowxxKk+oy8CAwEAAaAAMA0GCSqGSIb3DQEB
        CwUAA4IBAQCZd72rPuE6tUkmmokytFFoG7r67AvfWrMqkKn96vCO7BEyc/pSFydZ
        JqxYc6PP7fdFjsDtXdqAviCEqIHSIPI24XnJx/ohkdqN6wNS8fVuv8764UjI8Msb
        S9jo1sDl0fMqyPc4n4Bf82FlVt7jcE8fGiRoNaof/hjNyQTZRUpitbyCu882RW5H
        nTmPwQGpIqjIKwFUQB6j8+JjM+SQPnp72m3oIy1pYqQif7ftwBBq/Wb6yzD/aYwo
        Jath7P9gvtZYmqBBhhHTYEsB7opwTsIPspkH0IawSlwdrQ5H37m/E5bw8GsIVTtU
        DQYqD93/bITU4h0st1Sx8jKdpjRxGDal";

    /// What is said of a request, and of one that asks for another name with the same signature.
    fn said(encoded: &str) -> [Option<&'static str>; 2] {
        let told = |der: &[u8]| {
            let (_, request) = X509CertificationRequest::from_der(der).unwrap();
            mistake(&request)
        };
        let lines: String = encoded.split_whitespace().collect();
        let mut der = STANDARD.decode(lines).unwrap();
        let sound = told(&der);
        let (kind, length) = ([0x06, 0x03, 0x55, 0x04, 0x03, 0x0c], 7);
        let name = der.windows(kind.len()).position(|part| part == kind).unwrap();
        der[name + length] = b'x';
        [sound, told(&der)]
    }

    #[test]
    fn a_request_is_signed_with_the_key_that_it_shows() {
        assert_eq!(said(ELLIPTIC), [None, Some("x509: ECDSA verification failure")]);
        assert_eq!(said(EDWARDS), [None, Some("x509: Ed25519 verification failure")]);
        assert_eq!(said(RSA), [None, Some("crypto/rsa: verification error")]);
    }

    #[test]
    fn of_a_short_key_nobody_can_tell() {
        assert_eq!(said(SHORT_RSA), [None, None]);
    }
}
