//! Ranges of cluster addresses, and those that a server was told of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use steersman_values::IpFamily;

/// The most addresses of a range that are looked at, in bits: the longest part of an IPv6 address that
/// tells hosts apart.
const BITS_MAX: u32 = 64;

/// A range of addresses: the network itself and, in IPv4, the last address are nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    base: u128,
    /// How many bits tell its addresses apart.
    bits: u32,
    family: IpFamily,
}

impl Range {
    /// The range that a text such as `10.96.0.0/12` stands for, if it is large enough to hand any
    /// address out.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/')?;
        let base: IpAddr = base.parse().ok()?;
        let (family, width, base) = match base {
            IpAddr::V4(base) => (IpFamily::V4, 32_u32, u128::from(u32::from(base))),
            IpAddr::V6(base) => (IpFamily::V6, 128, u128::from(base)),
        };
        let bits = width.checked_sub(prefix.parse().ok()?).filter(|bits| *bits > 1)?;
        let base = base >> bits << bits;
        Some(Self { base, bits: bits.min(BITS_MAX), family })
    }

    pub(crate) fn family(self) -> IpFamily {
        self.family
    }

    fn size(self) -> u128 {
        1 << self.bits
    }

    /// The first place behind those that are handed out.
    fn end(self) -> u128 {
        self.size() - u128::from(self.family == IpFamily::V4)
    }

    /// How many addresses at the start are left to those who name theirs.
    pub(crate) fn named(self) -> u128 {
        // In a small range none are, but for the one that is the network's.
        if self.size() > 16 { (self.size() / 16).clamp(16, 256) } else { 1 }
    }

    /// The address at a place of the range.
    fn at(self, index: u128) -> IpAddr {
        let number = self.base + index;
        match self.family {
            IpFamily::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or_default()).into(),
            IpFamily::V6 => Ipv6Addr::from(number).into(),
        }
    }

    /// The first address that is handed out, which the service `kubernetes` has.
    pub(crate) fn first(self) -> IpAddr {
        self.at(1)
    }

    /// Whether an address may be handed out.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let number = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let index = number.wrapping_sub(self.base);
        IpFamily::of(address) == self.family && index > 0 && index < self.end()
    }

    /// A guess among those that the server picks from; `random` is any number.
    pub(crate) fn guess(self, random: u64) -> IpAddr {
        self.at(self.place(random))
    }

    fn place(self, random: u64) -> u128 {
        self.named() + u128::from(random) % (self.end() - self.named())
    }

    /// The first free address behind a guess, then among those left to others.
    pub(crate) fn search(self, random: u64, is_taken: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let start = self.place(random);
        let behind = start..self.end();
        let before = self.named()..start;
        let named = 1..self.named();
        behind.chain(before).chain(named).map(|i| self.at(i)).find(|address| !is_taken(*address))
    }
}

/// Where Services get their cluster addresses from, as by `--service-cluster-ip-range`: a range, or one
/// of each family, of which the first is that of Services that do not say.
///
/// ```
/// use steersman_apiserver::ServiceRanges;
///
/// let both: ServiceRanges = "10.96.0.0/12,fd00:10:96::/112".parse()?;
/// assert_eq!(both, "10.96.0.0/12, fd00:10:96::/112".parse()?);
/// # Ok::<(), steersman_apiserver::NotServiceRanges>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRanges {
    texts: Vec<String>,
    ranges: Vec<Range>,
}

/// Why ranges of cluster addresses cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotServiceRanges {
    /// There is none, or one that nobody can read or that is too small.
    #[error("--service-cluster-ip-range must contain at least one valid cidr: {0:?} is none")]
    Invalid(String),
    /// There are more than two.
    #[error("--service-cluster-ip-range must not contain more than two entries")]
    Many,
    /// Both are of one family.
    #[error(
        "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP \
         family"
    )]
    SameFamily,
}

impl FromStr for ServiceRanges {
    type Err = NotServiceRanges;

    fn from_str(text: &str) -> Result<Self, NotServiceRanges> {
        let texts: Vec<String> = text.split(',').map(|text| text.trim().to_owned()).collect();
        let parse = |text: &String| {
            Range::parse(text).ok_or_else(|| NotServiceRanges::Invalid(text.clone()))
        };
        let ranges: Vec<Range> = texts.iter().map(parse).collect::<Result<_, _>>()?;
        match ranges[..] {
            [_] => {}
            [first, second] if first.family != second.family => {}
            [_, _] => return Err(NotServiceRanges::SameFamily),
            _ => return Err(NotServiceRanges::Many),
        }
        Ok(Self { texts, ranges })
    }
}

impl Default for ServiceRanges {
    /// `10.96.0.0/12`.
    fn default() -> Self {
        "10.96.0.0/12".parse().expect("this is a range")
    }
}

impl ServiceRanges {
    /// The ranges as they were given.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The range of Services that do not say of which family they are.
    pub(crate) fn primary(&self) -> Range {
        self.ranges[0]
    }

    /// The range of a family, if there is one.
    pub(crate) fn of(&self, family: IpFamily) -> Option<Range> {
        self.ranges.iter().copied().find(|range| range.family == family)
    }

    /// Whether there is a range of each family.
    pub fn are_dual_stack(&self) -> bool {
        self.ranges.len() == 2
    }

    /// Whether Services are of IPv6 that do not say of which family they are.
    pub fn prefer_ipv6(&self) -> bool {
        self.primary().family == IpFamily::V6
    }

    /// The addresses of the service `kubernetes`, of whichever family it is.
    pub fn firsts(&self) -> impl Iterator<Item = IpAddr> {
        self.ranges.iter().map(|range| range.first())
    }
}
