//! What goes wrong on the way to somebody, in the words of Go's client.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// What Go puts in front of what is wrong with a certificate.
const UNVERIFIED: &str = "tls: failed to verify certificate: x509:";

/// Why somebody cannot be reached.
pub(super) fn dial(address: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        // The system's words, which Go writes in small letters.
        Some(code) => {
            let text = error.to_string().to_lowercase();
            let text = text.trim_end_matches(&format!(" (os error {code})"));
            format!("dial tcp {address}: connect: {text}")
        }
        None => format!("dial tcp {address}: {error}"),
    }
}

/// Why there is no trust, or nobody who speaks TLS.
pub(super) fn tls(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(why)) => certificate(why),
        Some(Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(Error::AlertReceived(alert)) => format!("remote error: tls: {}", told(*alert)),
        Some(error) => format!("tls: {error}"),
        None => broken(error),
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        // An authority of the same name that has not signed it is as unknown.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("{UNVERIFIED} certificate signed by unknown authority")
        }
        // An authority that shows its own certificate: nobody here knows it, or it would do.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            format!("{UNVERIFIED} certificate signed by unknown authority")
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("{UNVERIFIED} certificate has expired or is not yet valid")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let (names, expected) = (names.join(", "), expected.to_str());
            format!("{UNVERIFIED} certificate is valid for {names}, not {expected}")
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            format!("{UNVERIFIED} certificate specifies an incompatible key usage")
        }
        other => format!("tls: failed to verify certificate: {other}"),
    }
}

/// What stands in `DnsName("…")` or `IpAddress(…)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"')
}

/// What the other side complains of.
fn told(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::HandshakeFailure => "handshake failure".to_owned(),
        AlertDescription::BadCertificate => "bad certificate".to_owned(),
        AlertDescription::CertificateRequired => "certificate required".to_owned(),
        AlertDescription::UnknownCA => "unknown certificate authority".to_owned(),
        AlertDescription::ProtocolVersion => "protocol version not supported".to_owned(),
        AlertDescription::InternalError => "internal error".to_owned(),
        AlertDescription::UnrecognisedName => "unrecognized name".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Why there is no answer. hyper's errors tell little by themselves.
pub(super) fn http(error: &hyper::Error) -> String {
    let source = std::error::Error::source(error);
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".to_owned();
    }
    match source.map(|source| (source, source.downcast_ref::<io::Error>())) {
        Some((_, Some(broke))) => broken(broke),
        Some((source, None)) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Why an answer broke off.
pub(super) fn body(error: &(dyn std::error::Error + 'static)) -> String {
    let Some(broke) = error.downcast_ref::<hyper::Error>() else { return error.to_string() };
    match http(broke).as_str() {
        "EOF" => "unexpected EOF".to_owned(),
        why => why.to_owned(),
    }
}

/// Why a connection is of no more use.
fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        io::ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        io::ErrorKind::BrokenPipe => "write: broken pipe".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustls::Error;

    use super::{dial, tls};

    #[test]
    fn failures_of_the_network_are_told_as_go_tells_them() {
        for (code, why) in [
            (111, "dial tcp 1.2.3.4:5: connect: connection refused"),
            (113, "dial tcp 1.2.3.4:5: connect: no route to host"),
            (101, "dial tcp 1.2.3.4:5: connect: network is unreachable"),
        ] {
            assert_eq!(dial("1.2.3.4:5", &io::Error::from_raw_os_error(code)), why);
        }
        let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "tls handshake eof");
        assert_eq!(tls(&ended), "EOF");
        let alert = Error::AlertReceived(rustls::AlertDescription::HandshakeFailure);
        assert_eq!(tls(&io::Error::other(alert)), "remote error: tls: handshake failure");
    }
}
