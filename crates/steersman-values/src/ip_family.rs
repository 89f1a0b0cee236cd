//! Families of addresses.

use std::net::IpAddr;

/// A family of addresses; what EndpointSlices call the type of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpFamily {
    /// Of four bytes.
    V4,
    /// Of sixteen.
    V6,
}

impl IpFamily {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The name that Services and EndpointSlices give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// The family of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IpFamily;

    #[test]
    fn a_family_is_known_by_its_name_and_by_its_addresses() {
        for (family, address) in [(IpFamily::V4, "10.0.0.1"), (IpFamily::V6, "fd00::1")] {
            assert_eq!(IpFamily::of(address.parse().unwrap()), family);
            assert_eq!(IpFamily::named(family.name()), Some(family));
            assert_eq!(family.other().other(), family);
        }
        assert_eq!(IpFamily::named("ipv4"), None);
    }
}
