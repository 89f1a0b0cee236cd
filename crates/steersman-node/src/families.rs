//! Of which families the addresses of nodes and their Pods are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the IPv6 addresses of nodes and Pods begin with; an IPv4 address follows.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0x244, 0, 0, 0, 0, 0);

/// Of which families the addresses of nodes and their Pods are, the main one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpFamilies {
    /// IPv4 alone.
    #[default]
    V4,
    /// IPv6 alone.
    V6,
    /// Both, first IPv4.
    V4AndV6,
    /// Both, first IPv6.
    V6AndV4,
}

impl IpFamilies {
    /// The addresses of what has this address where there is IPv4.
    pub(crate) fn of(self, address: Ipv4Addr) -> Vec<String> {
        let (fourth, sixth) = (address.to_string(), sixth(address).to_string());
        self.ordered(fourth, sixth)
    }

    /// The ranges of what has this range where there is IPv4: so many bits, which begin here.
    pub(crate) fn ranges(self, first: Ipv4Addr, bits: u32) -> Vec<String> {
        self.ordered(
            format!("{first}/{}", Ipv4Addr::BITS - bits),
            format!("{}/{}", sixth(first), Ipv6Addr::BITS - bits),
        )
    }

    fn ordered(self, fourth: String, sixth: String) -> Vec<String> {
        match self {
            Self::V4 => vec![fourth],
            Self::V6 => vec![sixth],
            Self::V4AndV6 => vec![fourth, sixth],
            Self::V6AndV4 => vec![sixth, fourth],
        }
    }
}

fn sixth(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(PREFIX) | u128::from(u32::from(address)))
}

/// The IPv4 address behind an address of whichever family, if it is of a node or a Pod of one.
pub(crate) fn fourth(address: &str) -> Option<Ipv4Addr> {
    match address.parse().ok()? {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(address) => {
            let rest = u128::from(address).checked_sub(u128::from(PREFIX))?;
            u32::try_from(rest).ok().map(Ipv4Addr::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_one_of_the_other_family() {
        let address = Ipv4Addr::new(10, 244, 0, 1);
        let both = ["10.244.0.1", "fd00:10:244::af4:1"];
        assert_eq!(IpFamilies::V4.of(address), both[..1]);
        assert_eq!(IpFamilies::V4AndV6.of(address), both);
        assert_eq!(IpFamilies::V6AndV4.of(address), [both[1], both[0]]);
        assert_eq!(IpFamilies::V6.of(address), both[1..]);
        assert!(both.iter().all(|text| fourth(text) == Some(address)));
        assert_eq!((fourth("fd00::1"), fourth("x")), (None, None));
        let ranges = IpFamilies::V4AndV6.ranges(Ipv4Addr::new(10, 244, 3, 0), 8);
        assert_eq!(ranges, ["10.244.3.0/24", "fd00:10:244::af4:300/120"]);
    }
}
