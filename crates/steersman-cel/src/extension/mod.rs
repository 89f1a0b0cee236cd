//! Values of Kubernetes' libraries: what they are, not yet what functions do with them.

pub mod access;
mod format;
mod semver;
mod url;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use steersman_values::Quantity;

use crate::shape::Type;
use access::{Access, Decision};
pub use format::Format;
pub(crate) use format::named as named_format;
pub use semver::Version;
pub use url::Url;

/// A value that only its own functions look into.
#[derive(Clone, Debug)]
pub enum Extension {
    /// `quantity("1Gi")`
    Quantity(Arc<Quantity>),
    /// `ip("::1")`
    Ip(IpAddr),
    /// `cidr("10.0.0.0/8")`: address and bits of the prefix
    Cidr(IpAddr, u8),
    /// `url("https://…")`
    Url(Arc<Url>),
    /// `semver("1.2.3")`
    Semver(Arc<Version>),
    /// `format.dns1123Label()`
    Format(&'static Format),
    /// `authorizer`, and questions to it that are being put together
    Access(Arc<Access>),
    /// What an authorizer answered
    Decision(Arc<Decision>),
}

impl Extension {
    pub(crate) fn type_of(&self) -> Type {
        match self {
            Extension::Quantity(_) => Type::named("kubernetes.Quantity"),
            Extension::Ip(_) => Type::read("net.IP"),
            Extension::Cidr(..) => Type::read("net.CIDR"),
            Extension::Url(_) => Type::named("kubernetes.URL"),
            Extension::Semver(_) => Type::named("kubernetes.Semver"),
            Extension::Format(_) => Type::named("kubernetes.NamedFormat"),
            Extension::Access(access) => Type::named(access.type_name()),
            Extension::Decision(_) => Type::named("kubernetes.authorization.Decision"),
        }
    }

    /// The size that costs are computed from.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Extension::Ip(IpAddr::V4(_)) => Some(4),
            Extension::Ip(IpAddr::V6(_)) => Some(16),
            Extension::Cidr(_, bits) => Some(u64::from(bits.div_ceil(8))),
            _ => None,
        }
    }

    pub(crate) fn equals(&self, other: &Extension) -> bool {
        match (self, other) {
            (Extension::Quantity(a), Extension::Quantity(b)) => a == b,
            (Extension::Ip(a), Extension::Ip(b)) => a == b,
            (Extension::Cidr(a, x), Extension::Cidr(b, y)) => a == b && x == y,
            (Extension::Url(a), Extension::Url(b)) => a == b,
            (Extension::Semver(a), Extension::Semver(b)) => a.compare(b).is_eq(),
            (Extension::Format(a), Extension::Format(b)) => a.name == b.name,
            (Extension::Access(a), Extension::Access(b)) => Arc::ptr_eq(a, b),
            (Extension::Decision(a), Extension::Decision(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extension::Quantity(quantity) => write!(f, "{quantity}"),
            Extension::Ip(address) => write!(f, "{address}"),
            Extension::Cidr(address, bits) => write!(f, "{address}/{bits}"),
            Extension::Url(url) => write!(f, "{}", url.text),
            Extension::Semver(version) => write!(f, "{version}"),
            Extension::Format(format) => f.write_str(format.name),
            Extension::Access(access) => f.write_str(access.type_name()),
            Extension::Decision(decision) => f.write_str(&decision.reason),
        }
    }
}
