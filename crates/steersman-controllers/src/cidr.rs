//! Ranges of addresses.

use std::net::IpAddr;
use std::str::FromStr;

/// A range in the notation `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The first address of the range, as a number.
    first: u128,
    /// How many bits tell its addresses apart.
    bits: u32,
    is_ipv4: bool,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotACidr(String);

impl std::fmt::Display for NotACidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is no range of addresses, such as 10.200.0.0/24", self.0)
    }
}

impl std::error::Error for NotACidr {}

impl FromStr for Cidr {
    type Err = NotACidr;

    fn from_str(text: &str) -> Result<Self, NotACidr> {
        let not = || NotACidr(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(not)?;
        let address: IpAddr = address.parse().map_err(|_| not())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u32 = prefix.parse().map_err(|_| not())?;
        let bits = u32::checked_sub(width, prefix).ok_or_else(not)?;
        let first = number(address) & !mask(bits);
        Ok(Self { first, bits, is_ipv4: address.is_ipv4() })
    }
}

impl Cidr {
    /// Whether an address is in the range.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4 && number(address) & !mask(self.bits) == self.first
    }

    /// Whether a Service can have an address of the range: neither that which names the range nor, in the
    /// fourth version, that which stands for all.
    pub(crate) fn serves(&self, address: IpAddr) -> bool {
        let offset = number(address) & mask(self.bits);
        let stands_for_all = self.is_ipv4 && offset == mask(self.bits);
        self.contains(address) && offset != 0 && !stands_for_all
    }

    /// Whether its addresses are of the fourth version.
    pub fn is_ipv4(&self) -> bool {
        self.is_ipv4
    }

    /// Whether all of another range is in this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.is_ipv4 == other.is_ipv4
            && other.bits <= self.bits
            && other.first & !mask(self.bits) == self.first
    }

    /// The addresses that can be given to somebody: neither the first, which names the range, nor the
    /// last, which stands for all, unless there are only two or less.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let Self { first, bits, is_ipv4 } = *self;
        let edge = u128::from(bits > 1);
        let last = mask(bits) - edge;
        (edge..=last).filter_map(move |offset| address(first + offset, is_ipv4))
    }
}

/// The parts of a range that are all of one size.
impl Cidr {
    /// How many parts with this prefix it has; none if it is smaller than one, or has too many to
    /// count.
    pub(crate) fn parts(&self, prefix: u32) -> Option<u32> {
        let part = self.width().checked_sub(prefix)?;
        1u32.checked_shl(self.bits.checked_sub(part)?)
    }

    /// The part with this prefix and number.
    pub(crate) fn part(&self, prefix: u32, number: u32) -> Self {
        let bits = self.width().saturating_sub(prefix);
        let offset = u128::from(number).checked_shl(bits).unwrap_or_default();
        Self { first: self.first | offset, bits, is_ipv4: self.is_ipv4 }
    }

    /// The numbers of the first and the last part with this prefix that another range touches, if it
    /// touches any.
    pub(crate) fn touched(&self, prefix: u32, other: &Self) -> Option<(u32, u32)> {
        let last_part = self.parts(prefix)?.checked_sub(1)?;
        if other.covers(self) {
            return Some((0, last_part));
        }
        let part_bits = self.width().checked_sub(prefix)?;
        let number = |address: u128| {
            let number = (address - self.first).checked_shr(part_bits).unwrap_or_default();
            u32::try_from(number).unwrap_or(last_part)
        };
        let last = other.first | mask(other.bits);
        self.covers(other).then(|| (number(other.first), number(last)))
    }

    fn width(&self) -> u32 {
        if self.is_ipv4 { 32 } else { 128 }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefix = self.width() - self.bits;
        match address(self.first, self.is_ipv4) {
            Some(address) => write!(f, "{address}/{prefix}"),
            None => write!(f, "/{prefix}"),
        }
    }
}

/// The lowest bits, as many as these.
fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn address(number: u128, is_ipv4: bool) -> Option<IpAddr> {
    match is_ipv4 {
        true => u32::try_from(number).ok().map(|number| IpAddr::V4(number.into())),
        false => Some(IpAddr::V6(number.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_has_its_addresses_and_no_others() {
        let hosts = |text| cidr(text).hosts().map(|it| it.to_string()).collect::<Vec<_>>();
        assert_eq!(hosts("10.0.0.4/30"), ["10.0.0.5", "10.0.0.6"]);
        assert_eq!(hosts("10.0.0.4/31"), ["10.0.0.4", "10.0.0.5"]);
        assert_eq!(hosts("10.0.0.4/32"), ["10.0.0.4"]);
        assert_eq!(hosts("fd00::/126"), ["fd00::1", "fd00::2"]);
        assert!(cidr("10.0.0.0/8").contains("10.255.0.1".parse().unwrap()));
        assert!(!cidr("10.0.0.0/8").contains("11.0.0.1".parse().unwrap()));
        assert!(!cidr("::/0").contains("10.0.0.1".parse().unwrap()));
        assert!(cidr("10.0.0.0/8").covers(&cidr("10.1.0.0/16")));
        assert!(!cidr("10.1.0.0/16").covers(&cidr("10.0.0.0/8")));
        assert_eq!(cidr("10.244.7.9/16").part(24, 3).to_string(), "10.244.3.0/24");
        assert_eq!(cidr("fd00::/48").part(64, 2).to_string(), "fd00:0:0:2::/64");
        let pods = cidr("10.244.0.0/16");
        assert_eq!((pods.parts(24), pods.parts(8)), (Some(256), None));
        for (other, touched) in [
            ("10.244.3.0/24", Some((3, 3))),
            ("10.244.3.128/25", Some((3, 3))),
            ("10.244.4.0/22", Some((4, 7))),
            ("10.0.0.0/8", Some((0, 255))),
            ("10.96.0.0/12", None),
        ] {
            assert_eq!(pods.touched(24, &cidr(other)), touched, "{other}");
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "x/8", "10.0.0.0/-1"] {
            assert_eq!(wrong.parse::<Cidr>(), Err(NotACidr(wrong.into())));
        }
    }
}
