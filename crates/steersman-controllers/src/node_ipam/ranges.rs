//! Which parts of a range are taken.

use std::collections::BTreeSet;

use super::NodeCidrs;
use super::metrics::RangeMetrics;
use crate::cidr::Cidr;

/// The parts of a range, of which some are taken.
pub(super) struct Ranges {
    cidrs: NodeCidrs,
    count: u32,
    taken: BTreeSet<u32>,
    /// Which part is tried next: one that was given back is not taken again at once.
    next: u32,
    metrics: RangeMetrics,
}

impl Ranges {
    pub(super) fn new(cidrs: NodeCidrs, metrics: RangeMetrics) -> Self {
        let count = cidrs.cluster_cidr.parts(cidrs.mask_size).unwrap_or(0);
        metrics.size(&cidrs.cluster_cidr, count);
        let mut ranges = Self { cidrs, count, taken: BTreeSet::new(), next: 0, metrics };
        if let Some(services) = cidrs.service_cidr {
            ranges.occupy(&services);
        }
        ranges
    }

    /// Takes the next part that is free, if any is.
    pub(super) fn allocate(&mut self) -> Option<Cidr> {
        let from_here = self.next..self.count;
        let mut tries = from_here.chain(0..self.next).enumerate();
        let (tried, part) = tries.find(|(_, part)| !self.taken.contains(part))?;
        self.taken.insert(part);
        self.next = (part + 1) % self.count;
        self.metrics.allocated(&self.cidrs.cluster_cidr, tried);
        self.used();
        Some(self.cidrs.cluster_cidr.part(self.cidrs.mask_size, part))
    }

    /// All of a range is taken; what is not in this one does not matter.
    pub(super) fn occupy(&mut self, cidr: &Cidr) {
        let Some((first, last)) = self.touched(cidr) else { return };
        for part in first..=last {
            if self.taken.insert(part) {
                self.metrics.occupied(&self.cidrs.cluster_cidr);
            }
        }
        self.used();
    }

    /// A range is free again.
    pub(super) fn release(&mut self, cidr: &Cidr) {
        let Some((first, last)) = self.touched(cidr) else { return };
        for part in first..=last {
            if self.taken.remove(&part) {
                self.metrics.released(&self.cidrs.cluster_cidr);
            }
        }
        self.used();
    }

    fn touched(&self, cidr: &Cidr) -> Option<(u32, u32)> {
        self.cidrs.cluster_cidr.touched(self.cidrs.mask_size, cidr)
    }

    fn used(&self) {
        self.metrics.used(&self.cidrs.cluster_cidr, self.taken.len(), self.count);
    }
}

#[cfg(test)]
mod tests {
    use steersman::Metrics;

    use super::*;

    #[test]
    fn parts_are_given_in_turn_without_those_that_are_taken() {
        let cidr = |text: &str| text.parse::<Cidr>().unwrap();
        let services = Some(cidr("10.0.1.0/25"));
        let cidrs =
            NodeCidrs { cluster_cidr: cidr("10.0.0.0/22"), mask_size: 24, service_cidr: services };
        let mut ranges = Ranges::new(cidrs, Metrics::default().families());
        let mut next = || ranges.allocate().map(|cidr| cidr.to_string());
        assert_eq!(next().as_deref(), Some("10.0.0.0/24"));
        assert_eq!(next().as_deref(), Some("10.0.2.0/24"));
        ranges.release(&cidr("10.0.0.0/24"));
        ranges.occupy(&cidr("192.168.0.0/24"));
        let mut next = || ranges.allocate().map(|cidr| cidr.to_string());
        assert_eq!(next().as_deref(), Some("10.0.3.0/24"), "not at once what was given back");
        assert_eq!(next().as_deref(), Some("10.0.0.0/24"));
        assert_eq!(next(), None);
    }
}
