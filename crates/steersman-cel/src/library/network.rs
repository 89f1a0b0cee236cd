//! Kubernetes' addresses and networks.

use std::net::{IpAddr, Ipv4Addr};

use super::conversions::to_string;
use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::Extension;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("ip", &[("string_to_ip", "(string) net.IP"), ("cidr_ip", ".(net.CIDR) net.IP")], ip),
    ("family", &[("ip_family", ".(net.IP) int")], family),
    ("ip.isCanonical", &[("ip_is_canonical", "(string) bool")], is_canonical),
    ("isUnspecified", &[("ip_is_unspecified", ".(net.IP) bool")], is_unspecified),
    ("isLoopback", &[("ip_is_loopback", ".(net.IP) bool")], is_loopback),
    (
        "isLinkLocalMulticast",
        &[("ip_is_link_local_multicast", ".(net.IP) bool")],
        is_link_local_multicast,
    ),
    (
        "isLinkLocalUnicast",
        &[("ip_is_link_local_unicast", ".(net.IP) bool")],
        is_link_local_unicast,
    ),
    ("isGlobalUnicast", &[("ip_is_global_unicast", ".(net.IP) bool")], is_global_unicast),
    ("isIP", &[("is_ip", "(string) bool")], is_ip),
    (
        "string",
        &[("ip_to_string", "(net.IP) string"), ("cidr_to_string", "(net.CIDR) string")],
        to_string,
    ),
    ("cidr", &[("string_to_cidr", "(string) net.CIDR")], cidr),
    (
        "containsIP",
        &[
            ("cidr_contains_ip_string", ".(net.CIDR, string) bool"),
            ("cidr_contains_ip_ip", ".(net.CIDR, net.IP) bool"),
        ],
        contains_ip,
    ),
    (
        "containsCIDR",
        &[
            ("cidr_contains_cidr_string", ".(net.CIDR, string) bool"),
            ("cidr_contains_cidr", ".(net.CIDR, net.CIDR) bool"),
        ],
        contains_cidr,
    ),
    ("prefixLength", &[("cidr_prefix_length", ".(net.CIDR) int")], prefix_length),
    ("masked", &[("cidr_masked", ".(net.CIDR) net.CIDR")], masked),
    ("isCIDR", &[("is_cidr", "(string) bool")], is_cidr),
];

fn parse_ip(raw: &str) -> Result<IpAddr, String> {
    if raw.contains('%') {
        return Err(format!("IP address {raw:?} with zone value is not allowed"));
    }
    let address: IpAddr = raw.parse().map_err(|_| {
        let why = why_no_address(raw);
        format!("IP Address {raw:?} parse error during conversion from string: {why}")
    })?;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {raw:?} is not allowed"))
        }
        address => Ok(address),
    }
}

/// What Go says of a text that is no address.
fn why_no_address(raw: &str) -> String {
    let (why, at) = match raw.find(['.', ':']) {
        Some(mark) if raw.as_bytes()[mark] == b'.' => why_no_ipv4(raw),
        Some(_) => why_no_ipv6(raw),
        None => ("unable to parse IP", ""),
    };
    if at.is_empty() {
        return format!("ParseAddr({raw:?}): {why}");
    }
    format!("ParseAddr({raw:?}): {why} (at {at:?})")
}

fn why_no_ipv4(raw: &str) -> (&'static str, &str) {
    let mut fields = 0;
    let (mut value, mut digits) = (0_u32, 0);
    for (at, c) in raw.char_indices() {
        match c.to_digit(10) {
            Some(_) if digits == 1 && value == 0 => {
                return ("IPv4 field has octet with leading zero", "");
            }
            Some(digit) => {
                value = value * 10 + digit;
                digits += 1;
                if value > 255 {
                    return ("IPv4 field has value >255", "");
                }
            }
            None if c == '.' && (digits == 0 || at + 1 == raw.len()) => {
                return ("IPv4 field must have at least one digit", &raw[at..]);
            }
            None if c == '.' && fields == 3 => return ("IPv4 address too long", ""),
            None if c == '.' => {
                fields += 1;
                (value, digits) = (0, 0);
            }
            None => return ("unexpected character", &raw[at..]),
        }
    }
    ("IPv4 address too short", "")
}

fn why_no_ipv6(raw: &str) -> (&'static str, &str) {
    let mut rest = raw.strip_prefix("::").unwrap_or(raw);
    let mut compressed = rest.len() != raw.len();
    for _ in 0..8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            return ("each colon-separated field must have at least one digit", rest);
        }
        if digits > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        let after = &rest[digits..];
        let Some(next) = after.strip_prefix(':') else {
            let why = if after.is_empty() {
                "address string too short"
            } else {
                "unexpected character, want colon"
            };
            return (why, after);
        };
        if next.is_empty() {
            return ("colon must be followed by more characters", after);
        }
        rest = next;
        if let Some(next) = rest.strip_prefix(':') {
            if compressed {
                return ("multiple :: in address", rest);
            }
            compressed = true;
            rest = next;
        }
    }
    ("trailing garbage after address", rest)
}

fn parse_cidr(raw: &str) -> Result<(IpAddr, u8), String> {
    let wrong = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({raw:?}): {why}"
        )
    };
    let (address, bits) = raw.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| wrong(&why_no_address(address)))?;
    let bad = || wrong(&format!("bad bits after slash: {bits:?}"));
    if bits.is_empty() || bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return Err(bad());
    }
    if !bits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let max = if address.is_ipv4() { 32 } else { 128 };
    let length = bits.parse::<u8>().ok().filter(|bits| *bits <= max);
    let length = length.ok_or_else(|| wrong("prefix length out of range"))?;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {raw:?} is not allowed"))
        }
        address => Ok((address, length)),
    }
}

fn address(value: &Value<'_>) -> Result<IpAddr, Error> {
    match value {
        Value::Extension(Extension::Ip(address)) => Ok(*address),
        _ => Err(Error::no_such_overload()),
    }
}

fn network(value: &Value<'_>) -> Result<(IpAddr, u8), Error> {
    match value {
        Value::Extension(Extension::Cidr(address, bits)) => Ok((*address, *bits)),
        _ => Err(Error::no_such_overload()),
    }
}

fn ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let address = match args {
        [Value::Extension(Extension::Cidr(address, _))] => *address,
        [value] => parse_ip(text(value)?).map_err(Error::new)?,
        _ => return no_overload(),
    };
    Ok(Value::Extension(Extension::Ip(address)))
}

fn family<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Int(if address(value)?.is_ipv4() { 4 } else { 6 })),
        _ => no_overload(),
    }
}

fn is_canonical<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let raw = text(value)?;
    let address = parse_ip(raw).map_err(Error::new)?;
    Ok(Value::Bool(address.to_string() == raw))
}

fn is_ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(parse_ip(text(value)?).is_ok())),
        _ => no_overload(),
    }
}

fn about<'a>(args: &[Value<'a>], holds: impl Fn(IpAddr) -> bool) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(holds(address(value)?))),
        _ => no_overload(),
    }
}

fn is_unspecified<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    about(args, |address| address.is_unspecified())
}

fn is_loopback<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    about(args, |address| address.is_loopback())
}

fn link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_link_local_multicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    about(args, link_local_multicast)
}

fn is_link_local_unicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    about(args, link_local_unicast)
}

/// As Go has it: neither broadcast, unspecified, loopback, multicast nor link-local.
fn is_global_unicast<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    about(args, |address| {
        address != IpAddr::V4(Ipv4Addr::BROADCAST)
            && !address.is_unspecified()
            && !address.is_loopback()
            && !address.is_multicast()
            && !link_local_unicast(address)
    })
}

fn cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let (address, bits) = parse_cidr(text(value)?).map_err(|error| {
        Error::new(format!("network address parse error during conversion from string: {error}"))
    })?;
    Ok(Value::Extension(Extension::Cidr(address, bits)))
}

fn is_cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(parse_cidr(text(value)?).is_ok())),
        _ => no_overload(),
    }
}

/// An address without the bits behind the prefix.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::from((u32::from(address) & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::from((u128::from(address) & mask).to_be_bytes())
        }
    }
}

fn contains(network: (IpAddr, u8), address: IpAddr) -> bool {
    network.0.is_ipv4() == address.is_ipv4()
        && mask(network.0, network.1) == mask(address, network.1)
}

fn contains_ip<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [whole, part] = args else { return no_overload() };
    let part = match part {
        // What is no address is told as what has no address.
        Value::String(raw) => parse_ip(raw.as_str()).map_err(|_| Error::no_such_overload())?,
        value => address(value)?,
    };
    Ok(Value::Bool(contains(network(whole)?, part)))
}

fn contains_cidr<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [whole, part] = args else { return no_overload() };
    let part = match part {
        Value::String(_) => network(&cidr(std::slice::from_ref(part))?)?,
        value => network(value)?,
    };
    let whole = network(whole)?;
    Ok(Value::Bool(whole.1 <= part.1 && contains(whole, part.0)))
}

fn prefix_length<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Int(network(value)?.1.into())),
        _ => no_overload(),
    }
}

fn masked<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let (address, bits) = network(value)?;
    Ok(Value::Extension(Extension::Cidr(mask(address, bits), bits)))
}
