//! IP addresses and address ranges, as strictly as Kubernetes reads them.
//!
//! Fields that are older than the strict rules keep a loose value that they have had; a new one
//! must not have leading zeros, must not be an IPv4 address dressed as IPv6, and a range must
//! not have bits beyond its prefix.

use std::net::IpAddr;

use serde_json::Value;

use super::at::{At, Errors};
use super::document::{items, text};

/// Reads an address as Go did in its early days: leading zeros do not matter.
pub(crate) fn parse_ip(value: &str) -> Option<IpAddr> {
    let (head, v4) = value.rsplit_once(':').map_or(("", value), |(head, v4)| (head, v4));
    if !v4.contains('.') {
        return value.parse().ok();
    }
    let octets: Vec<&str> = v4.split('.').map(without_zeros).collect();
    let v4 = octets.join(".");
    if value.contains(':') { format!("{head}:{v4}").parse().ok() } else { v4.parse().ok() }
}

fn without_zeros(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" if !digits.is_empty() => "0",
        rest => rest,
    }
}

/// An address as it should be written.
pub(crate) fn canonical(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}

/// Whether it is an IPv6 address; one that carries an IPv4 address is not.
pub(crate) fn is_ipv6(value: &str) -> bool {
    parse_ip(value).is_some_and(|ip| ip.to_canonical().is_ipv6())
}

/// Must be an address; what the field held before is fine.
pub(crate) fn legacy_ip(part: &At<'_, '_>, old: &Value, errors: &mut Errors) -> Option<IpAddr> {
    let value = part.text();
    let ip = parse_ip(value);
    if items(old).iter().any(|old| text(old) == value) {
        return ip;
    }
    strict_ip(part, errors)
}

/// Must be an address without ambiguities.
pub(crate) fn strict_ip(part: &At<'_, '_>, errors: &mut Errors) -> Option<IpAddr> {
    let value = part.text();
    let Some(ip) = parse_ip(value) else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(part.invalid(detail));
        return None;
    };
    let mistake = if value.parse::<IpAddr>().is_err() {
        "must not have leading 0s"
    } else if is_mapped(ip) {
        "must not be an IPv4-mapped IPv6 address"
    } else {
        return Some(ip);
    };
    errors.push(part.invalid(mistake));
    None
}

/// Must be an address in the one form that new fields take.
pub(crate) fn canonical_ip(part: &At<'_, '_>, errors: &mut Errors) {
    if let Some(ip) = strict_ip(part, errors)
        && canonical(ip) != part.text()
    {
        let detail = format!("must be in canonical form ({:?})", canonical(ip));
        errors.push(part.invalid(&detail));
    }
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// An address range: a network and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) ip: IpAddr,
    pub(crate) prefix: u32,
}

impl Cidr {
    /// Reads a range, loosely.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        let (ip, prefix) = value.split_once('/')?;
        let ip = parse_ip(ip)?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|prefix| digits && *prefix <= bits(ip))?;
        Some(Self { ip, prefix })
    }

    /// The first address of the range.
    pub(crate) fn network(self) -> IpAddr {
        let host_bits = bits(self.ip) - self.prefix;
        match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4((ip.to_bits() & mask).into())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6((ip.to_bits() & mask).into())
            }
        }
    }

    /// The range as it should be written.
    pub(crate) fn canonical(self) -> String {
        format!("{}/{}", canonical(self.network()), self.prefix)
    }

    /// Whether a range lies in this one and is smaller.
    pub(crate) fn strictly_contains(self, other: Self) -> bool {
        let here = Self { ip: other.ip, prefix: self.prefix };
        self.ip.is_ipv4() == other.ip.is_ipv4()
            && other.prefix > self.prefix
            && here.network() == self.network()
    }
}

const fn bits(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Must be a range; what the field held before is fine. `value` is the text to judge, which may
/// be a piece of the part's own.
pub(crate) fn legacy_cidr(part: &At<'_, '_>, value: &str, old: &Value, errors: &mut Errors) {
    if !items(old).iter().any(|old| text(old).trim() == value) {
        strict_cidr(part, value, errors);
    }
}

/// Must be a range without ambiguities.
pub(crate) fn strict_cidr(part: &At<'_, '_>, value: &str, errors: &mut Errors) -> Option<Cidr> {
    let given = Value::from(value);
    let part = part.with(&given);
    let Some(cidr) = Cidr::parse(value) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(part.invalid(detail));
        return None;
    };
    let (ip, prefix) = value.split_once('/').unwrap_or((value, ""));
    let zeros = ip.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0'));
    let mistake = if zeros {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(cidr.ip) {
        "must not have an IPv4-mapped IPv6 address"
    } else if cidr.network() != cidr.ip {
        "must not have bits set beyond the prefix length"
    } else {
        return Some(cidr);
    };
    errors.push(part.invalid(mistake));
    None
}

/// Must be a range in the one form that new fields take.
pub(crate) fn canonical_cidr(part: &At<'_, '_>, errors: &mut Errors) {
    if let Some(cidr) = strict_cidr(part, part.text(), errors)
        && cidr.canonical() != part.text()
    {
        let detail = format!("must be in canonical form ({:?})", cidr.canonical());
        errors.push(part.invalid(&detail));
    }
}

/// What to tell a client whose address is odd and accepted all the same.
pub(crate) fn ip_warning(path: &str, value: &str) -> Option<String> {
    let good = canonical(parse_ip(value)?);
    match value.parse::<IpAddr>() {
        Ok(ip) if !is_mapped(ip) => (ip.is_ipv6() && good != value).then(|| {
            let form = "should be in RFC 5952 canonical format";
            format!("{path}: IPv6 address {value:?} {form} ({good:?})")
        }),
        _ => Some(format!("{path}: non-standard IP address {value:?} is invalid: use {good:?}")),
    }
}

/// What to tell a client whose range is odd and accepted all the same.
pub(crate) fn cidr_warnings(path: &str, value: &str) -> Vec<String> {
    let Some(cidr) = Cidr::parse(value) else { return Vec::new() };
    let good = cidr.canonical();
    let mut warnings = Vec::new();
    if cidr.network() != cidr.ip {
        let single = format!("{}/{}", canonical(cidr.ip), bits(cidr.ip));
        let odd = "is ambiguous in this context";
        warnings.push(format!(
            "{path}: CIDR value {value:?} {odd} (should be {good:?} or {single:?}?)"
        ));
    }
    let (ip, prefix) = value.split_once('/').unwrap_or((value, ""));
    let zeros = ip.parse::<IpAddr>().is_err() || (prefix.len() > 1 && prefix.starts_with('0'));
    if zeros || is_mapped(cidr.ip) {
        warnings
            .push(format!("{path}: non-standard CIDR value {value:?} is invalid: use {good:?}"));
    }
    if warnings.is_empty() && cidr.ip.is_ipv6() && good != value {
        let form = "should be in RFC 5952 canonical format";
        warnings.push(format!("{path}: IPv6 CIDR value {value:?} {form} ({good:?})"));
    }
    warnings
}

/// Must not be an address that means something special to every host.
pub(crate) fn endpoint_ip(part: &At<'_, '_>, errors: &mut Errors) {
    let Some(ip) = parse_ip(part.text()).map(|ip| ip.to_canonical()) else {
        errors.push(part.invalid("must be a valid IP address"));
        return;
    };
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let link_local_multicast = match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    };
    if ip.is_unspecified() {
        errors.push(part.invalid(&format!("may not be unspecified ({})", part.text())));
    }
    for (applies, rule) in [
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ] {
        if applies {
            errors.push(part.invalid(rule));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Rule = fn(&At<'_, '_>, &mut Errors);

    fn complaints(rule: Rule, value: &str) -> Vec<String> {
        let value = json!(value);
        let mut errors = Errors::default();
        rule(&At::new(&value, "ip"), &mut errors);
        let text = |e: &crate::field::FieldError| e.text.clone();
        errors.iter().map(text).map(|t| t.split(": ").last().unwrap().to_owned()).collect()
    }

    #[test]
    fn an_address_is_read_strictly() {
        let cases: &[(&str, &[&str])] = &[
            ("10.0.0.1", &[]),
            ("fe80::1", &[]),
            ("010.0.0.1", &["must not have leading 0s"]),
            ("::ffff:1.2.3.4", &["must not be an IPv4-mapped IPv6 address"]),
            ("::ffff:01.2.3.4", &["must not have leading 0s"]),
            ("1.2.3", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
            ("", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
            ("300.1.1.1", &["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
        ];
        for (value, expected) in cases {
            let rule: Rule = |part, errors| {
                strict_ip(part, errors);
            };
            assert_eq!(complaints(rule, value), *expected, "{value}");
        }
        assert_eq!(
            complaints(canonical_ip, "2001:DB8::1"),
            ["must be in canonical form (\"2001:db8::1\")"]
        );
    }

    #[test]
    fn a_range_is_read_strictly() {
        let cases: &[(&str, &[&str])] = &[
            ("10.0.0.0/8", &[]),
            ("fd00::/64", &[]),
            ("10.0.0.0/08", &["must not have leading 0s in IP or prefix length"]),
            ("10.0.0.1/8", &["must not have bits set beyond the prefix length"]),
            ("::ffff:1.2.3.0/120", &["must not have an IPv4-mapped IPv6 address"]),
            ("10.0.0.0", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
            ("10.0.0.0/33", &["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]),
        ];
        for (value, expected) in cases {
            let rule: Rule = |part, errors| {
                strict_cidr(part, part.text(), errors);
            };
            assert_eq!(complaints(rule, value), *expected, "{value}");
        }
        assert_eq!(
            complaints(canonical_cidr, "FD00::/64"),
            ["must be in canonical form (\"fd00::/64\")"]
        );
        let [wide, narrow] = ["10.0.0.0/8", "10.1.0.0/16"].map(|c| Cidr::parse(c).unwrap());
        assert!(wide.strictly_contains(narrow));
        assert!(!narrow.strictly_contains(wide));
        assert!(!wide.strictly_contains(wide));
    }

    #[test]
    fn an_odd_value_of_old_is_only_warned_about() {
        let ip = |value| ip_warning("f", value).unwrap_or_default();
        assert_eq!(ip("1.2.3.4"), "");
        assert_eq!(
            ip("01.2.3.4"),
            "f: non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\""
        );
        assert_eq!(
            ip("FE80::1"),
            "f: IPv6 address \"FE80::1\" should be in RFC 5952 canonical format (\"fe80::1\")"
        );
        assert_eq!(
            cidr_warnings("f", "10.0.0.1/8"),
            [
                "f: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" \
              or \"10.0.0.1/32\"?)"
            ]
        );
    }

    #[test]
    fn some_addresses_are_nobodys() {
        for (value, expected) in [
            ("10.0.0.1", ""),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("169.254.0.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ] {
            let value = json!(value);
            let mut errors = Errors::default();
            endpoint_ip(&At::new(&value, "ip"), &mut errors);
            let found = errors.first().map_or(String::new(), |e| e.text.clone());
            assert!(found.ends_with(expected), "{value}: {found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{value}");
        }
    }
}
