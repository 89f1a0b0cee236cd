//! What the devices of a claim must have in common, or must not.

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceConstraint};

/// What the devices of some requests must have in common, or must not, and those chosen so far.
pub(super) struct Constraint<'c> {
    /// The requests that it is about; all if there are none.
    requests: &'c [String],
    attribute: &'c str,
    is_distinct: bool,
    /// The values of devices that have been added.
    values: Vec<DeviceAttribute>,
}

/// Which request a device is for.
#[derive(Clone, Copy)]
pub(super) struct For<'c> {
    pub(super) request: &'c str,
    pub(super) alternative: Option<&'c str>,
}

impl<'c> Constraint<'c> {
    /// None if it is of a sort that is not known.
    pub(super) fn of(constraint: &'c DeviceConstraint) -> Option<Self> {
        let (attribute, is_distinct) =
            match (&constraint.match_attribute, &constraint.distinct_attribute) {
                (Some(attribute), _) => (attribute, false),
                (None, Some(attribute)) => (attribute, true),
                (None, None) => return None,
            };
        let requests = constraint.requests.as_deref().unwrap_or_default();
        Some(Self { requests, attribute, is_distinct, values: Vec::new() })
    }

    /// Adds a device of a driver, unless that breaks the rule.
    pub(super) fn add(&mut self, of: For<'_>, driver: &str, device: &Device) -> bool {
        if !self.concerns(of) {
            return true;
        }
        let Some(value) = lookup(device, driver, self.attribute) else { return false };
        let fits = match self.is_distinct {
            true => !self.values.iter().any(|it| is_equal(it, value)),
            false => {
                let mut others = self.values.first().into_iter();
                others.all(|first| is_known(value) && is_equal(first, value))
            }
        };
        if fits {
            self.values.push(value.clone());
        }
        fits
    }

    /// Takes back the device that was added last.
    pub(super) fn remove(&mut self, of: For<'_>) {
        if self.concerns(of) {
            self.values.pop();
        }
    }

    fn concerns(&self, of: For<'_>) -> bool {
        let whole = of.alternative.map(|it| format!("{}/{it}", of.request));
        self.requests.is_empty()
            || self.requests.iter().any(|it| it == of.request || Some(it) == whole.as_ref())
    }
}

/// An attribute by its full name; those of the driver itself may leave its domain out.
fn lookup<'d>(device: &'d Device, driver: &str, name: &str) -> Option<&'d DeviceAttribute> {
    let attributes = device.attributes.as_ref()?;
    attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        attributes.get(id).filter(|_| domain == driver)
    })
}

fn is_known(value: &DeviceAttribute) -> bool {
    value.string.is_some() || value.int.is_some() || value.bool.is_some() || value.version.is_some()
}

fn is_equal(a: &DeviceAttribute, b: &DeviceAttribute) -> bool {
    let of = |it: &DeviceAttribute| (it.string.clone(), it.int, it.bool, it.version.clone());
    of(a) == of(b)
}
