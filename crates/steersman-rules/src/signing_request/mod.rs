//! What a CertificateSigningRequest holds. Whoever judges one and whoever signs it must read the same,
//! so there is one way to read it; and what Kubernetes' own signers sign is known to those who
//! approve as well.

pub(crate) mod signature;
mod signers;
mod subject;

use jiff::Timestamp;
use x509_parser::prelude::{FromDer, Pem, X509Certificate};

pub use signers::{KUBELET_CLIENT, SIGNERS, check};
pub use subject::Subject;

/// What the block of a request is called.
const LABEL: &str = "CERTIFICATE REQUEST";

/// The request in the first block of a PEM, in DER. Nothing is passed over to get there: what one
/// reader takes for a broken block, another might sign.
pub fn der(pem: &[u8]) -> Option<Vec<u8>> {
    let is_odd = |(index, byte): (usize, &u8)| *byte == b'\r' && pem.get(index + 1) != Some(&b'\n');
    if pem.iter().enumerate().any(is_odd) {
        return None;
    }
    let block = Pem::iter_from_buffer(pem).next()?.ok()?;
    (block.label == LABEL).then_some(block.contents)
}

/// When the first certificate in a PEM ends.
pub fn certificate_end(pem: &[u8]) -> Option<Timestamp> {
    let block = Pem::iter_from_buffer(pem).next()?.ok()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::der;

    #[test]
    fn only_the_first_block_counts_and_it_must_be_sound() {
        let block = |label: &str, body: &str| {
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
        };
        let request = |body: &str| block("CERTIFICATE REQUEST", body);
        assert_eq!(der(request("AQID").as_bytes()).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(
            der((request("AQID") + &request("BAUG")).as_bytes()).as_deref(),
            Some(&[1, 2, 3][..])
        );
        let crlf = request("AQID").replace('\n', "\r\n");
        assert_eq!(der(crlf.as_bytes()).as_deref(), Some(&[1, 2, 3][..]));
        for odd in [
            String::new(),
            "AQID".to_owned(),
            block("CERTIFICATE", "AQID"),
            request("AQ ID") + &request("BAUG"),
            request("AQ?D") + &request("BAUG"),
            request("AQID").replacen(
                "-----\n",
                "-----\rBAUG\r-----END CERTIFICATE REQUEST-----\r\n",
                1,
            ),
        ] {
            assert_eq!(der(odd.as_bytes()), None, "{odd}");
        }
    }
}
