//! What the controllers of `steersman up` are told: kube-controller-manager's flags and defaults.

use std::time::Duration;

use clap::Args;
use steersman_cluster::{
    AutoscalerSettings, Cidr, ControllerSettings, NodeCidrs, NodeLifecycleSettings,
};

/// The longest time that is taken for one: about thirty years.
const DURATION_MAX: Duration = Duration::from_secs(1_000_000_000);

/// Grace periods, rates and ranges.
#[derive(Args)]
pub(crate) struct ControllerFlags {
    /// Whether nodes that have no range for the addresses of their Pods get a part of --cluster-cidr.
    /// Simulated nodes have one.
    #[arg(long, requires = "cluster_cidr")]
    allocate_node_cidrs: bool,
    /// The range of the addresses of all Pods, such as 10.244.0.0/16, or one of each family.
    #[arg(long, value_name = "CIDR,CIDR", value_delimiter = ',', num_args = 1)]
    cluster_cidr: Vec<Cidr>,
    /// How long the prefix of a node's part of it is [default: 24, or 64 in IPv6].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    node_cidr_mask_size: Option<u32>,
    /// The same of a range of IPv4 beside one of IPv6.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    node_cidr_mask_size_ipv4: Option<u32>,
    /// The same of a range of IPv6 beside one of IPv4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    node_cidr_mask_size_ipv6: Option<u32>,
    /// How long a node may be silent before it counts as lost.
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration)]
    node_monitor_grace_period: Duration,
    /// How long a node may be silent that has not said anything yet.
    #[arg(long, value_name = "DURATION", default_value = "1m0s", value_parser = duration)]
    node_startup_grace_period: Duration,
    /// How often it is looked for nodes that are lost.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = period)]
    node_monitor_period: Duration,
    /// From how many nodes a second Pods are deleted when a zone is healthy.
    #[arg(long, value_name = "RATE", default_value_t = 0.1, value_parser = rate)]
    node_eviction_rate: f64,
    /// From how many nodes a second Pods are deleted when a zone is unhealthy. In a zone of at most
    /// --large-cluster-size-threshold nodes it is none.
    #[arg(long, value_name = "RATE", default_value_t = 0.01, value_parser = rate)]
    secondary_node_eviction_rate: f64,
    /// Which part of a zone, and three nodes at least, must not be ready for it to be unhealthy.
    #[arg(long, value_name = "PART", default_value_t = 0.55, value_parser = part)]
    unhealthy_zone_threshold: f64,
    /// Up to how many nodes a zone counts as small.
    #[arg(long, value_name = "N", default_value_t = 50)]
    large_cluster_size_threshold: u32,
    /// How many Pods that have ended stay before the oldest are deleted; 0 is all of them.
    #[arg(long, value_name = "N", default_value_t = 12_500)]
    terminated_pod_gc_threshold: u32,
    /// How often a HorizontalPodAutoscaler is looked at.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = period)]
    horizontal_pod_autoscaler_sync_period: Duration,
    /// For how long what was recommended keeps a target from shrinking.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    horizontal_pod_autoscaler_downscale_stabilization: Duration,
    /// How far the ratio of a measured and a desired value may be off one without consequences.
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = part)]
    horizontal_pod_autoscaler_tolerance: f64,
    /// For how long after the start of a Pod its CPU time may be skipped.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    horizontal_pod_autoscaler_cpu_initialization_period: Duration,
    /// For how long after the start of a Pod its changes of readiness count as its first.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    horizontal_pod_autoscaler_initial_readiness_delay: Duration,
    /// How long certificates that CertificateSigningRequests ask for live at most, which is also
    /// the default.
    #[arg(long, value_name = "DURATION", default_value = "8760h0m0s", value_parser = period)]
    cluster_signing_duration: Duration,
}

impl ControllerFlags {
    /// Grace periods, rates and thresholds.
    pub(crate) fn settings(&self) -> ControllerSettings {
        let ended = usize::try_from(self.terminated_pod_gc_threshold).unwrap_or(usize::MAX);
        let stabilization = self.horizontal_pod_autoscaler_downscale_stabilization.as_secs();
        let cpu_period = self.horizontal_pod_autoscaler_cpu_initialization_period;
        let readiness_delay = self.horizontal_pod_autoscaler_initial_readiness_delay;
        ControllerSettings {
            node_lifecycle: NodeLifecycleSettings {
                monitor_grace_period: self.node_monitor_grace_period,
                startup_grace_period: self.node_startup_grace_period,
                monitor_period: self.node_monitor_period,
                eviction_rate: self.node_eviction_rate,
                secondary_eviction_rate: self.secondary_node_eviction_rate,
                unhealthy_zone_threshold: self.unhealthy_zone_threshold,
                large_zone_threshold: usize::try_from(self.large_cluster_size_threshold)
                    .unwrap_or(usize::MAX),
            },
            terminated_pod_threshold: (ended > 0).then_some(ended),
            autoscaler: AutoscalerSettings {
                sync_period: self.horizontal_pod_autoscaler_sync_period,
                downscale_stabilization: i32::try_from(stabilization).unwrap_or(i32::MAX),
                tolerance: self.horizontal_pod_autoscaler_tolerance,
                cpu_initialization_period: cpu_period,
                initial_readiness_delay: readiness_delay,
            },
            certificate_lifetime: self.cluster_signing_duration,
        }
    }

    /// Where nodes get ranges from, if they do.
    pub(crate) fn node_cidrs(&self) -> Result<Vec<NodeCidrs>, String> {
        if !self.allocate_node_cidrs {
            return Ok(Vec::new());
        }
        let is_dual = self.cluster_cidr.len() == 2;
        if self.cluster_cidr.len() > 2 {
            let most = "--cluster-cidr must not contain more than two entries";
            return Err(format!("{most}; see `steersman up --help`"));
        }
        if is_dual && self.node_cidr_mask_size.is_some() {
            let why = "usage of --node-cidr-mask-size is not allowed with dual-stack clusters";
            return Err(format!("{why}; see `steersman up --help`"));
        }
        let parts = self.cluster_cidr.iter().map(|range| {
            let usual = NodeCidrs::of(*range);
            let of_family = match range.is_ipv4() {
                true => self.node_cidr_mask_size_ipv4,
                false => self.node_cidr_mask_size_ipv6,
            };
            let mask_size = of_family.or(self.node_cidr_mask_size).unwrap_or(usual.mask_size);
            NodeCidrs { mask_size, ..usual }
        });
        let parts: Vec<NodeCidrs> = parts.collect();
        match &parts[..] {
            [one, other] if one.cluster_cidr.is_ipv4() == other.cluster_cidr.is_ipv4() => {
                let why = "--cluster-cidr must be one range of each family";
                Err(format!("{why}; see `steersman up --help`"))
            }
            _ => Ok(parts),
        }
    }
}

/// Reads a time as Go writes it: `50s`, `1m30s`, `1.5h`, `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    let not = || format!("{text:?} is no duration, such as 50s or 1m30s");
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() && text != "0" {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.').ok_or_else(not)?;
        let (number, behind) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| not())?;
        let unit = UNITS.into_iter().find(|(unit, _)| behind.starts_with(unit));
        let (unit, each) = unit.ok_or_else(not)?;
        seconds += number * each;
        rest = &behind[unit.len()..];
    }
    if text.is_empty() {
        return Err(not());
    }
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.filter(|it| *it <= DURATION_MAX).ok_or_else(not)
}

/// The same, of something that happens again and again.
fn period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    match period >= Duration::from_millis(1) {
        true => Ok(period),
        false => Err(format!("{text:?} is too short")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match (0.0..=1e6).contains(&rate) {
        true => Ok(rate),
        false => Err("it is not between 0 and 1000000".to_owned()),
    }
}

fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match (0.0..=1.0).contains(&part) {
        true => Ok(part),
        false => Err("it is not between 0 and 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ControllerFlags,
    }

    fn flags(line: &str) -> Result<ControllerFlags, String> {
        let words = line.split(' ').filter(|word| !word.is_empty());
        let parsed = Line::try_parse_from(["up"].into_iter().chain(words));
        parsed.map(|line| line.flags).map_err(|error| error.to_string())
    }

    #[test]
    fn without_flags_everything_is_as_in_kubernetes() {
        let flags = flags("").unwrap();
        assert_eq!(flags.settings(), ControllerSettings::default());
        assert_eq!(flags.node_cidrs(), Ok(Vec::new()));
    }

    #[test]
    fn each_flag_says_what_it_is_called_after() {
        let flags = flags(
            "--node-monitor-grace-period=20s --node-startup-grace-period 1m30s \
             --node-monitor-period=500ms --node-eviction-rate=1 \
             --secondary-node-eviction-rate=0.5 --unhealthy-zone-threshold=0.9 \
             --large-cluster-size-threshold=3 --terminated-pod-gc-threshold=0 \
             --horizontal-pod-autoscaler-sync-period=1s \
             --horizontal-pod-autoscaler-downscale-stabilization=1.5m \
             --horizontal-pod-autoscaler-tolerance=0.2 \
             --horizontal-pod-autoscaler-cpu-initialization-period=0 \
             --horizontal-pod-autoscaler-initial-readiness-delay=2s \
             --cluster-signing-duration=12h",
        );
        let seconds = Duration::from_secs;
        let expected = ControllerSettings {
            node_lifecycle: NodeLifecycleSettings {
                monitor_grace_period: seconds(20),
                startup_grace_period: seconds(90),
                monitor_period: Duration::from_millis(500),
                eviction_rate: 1.0,
                secondary_eviction_rate: 0.5,
                unhealthy_zone_threshold: 0.9,
                large_zone_threshold: 3,
            },
            terminated_pod_threshold: None,
            autoscaler: AutoscalerSettings {
                sync_period: Duration::from_secs(1),
                downscale_stabilization: 90,
                tolerance: 0.2,
                cpu_initialization_period: seconds(0),
                initial_readiness_delay: seconds(2),
            },
            certificate_lifetime: Duration::from_hours(12),
        };
        assert_eq!(flags.unwrap().settings(), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (line, why) in [
            ("--node-monitor-grace-period=20", "\"20\" is no duration"),
            ("--node-monitor-grace-period=", "--node-monitor-grace-period"),
            ("--node-monitor-grace-period=1d", "\"1d\" is no duration"),
            ("--node-monitor-period=0s", "too short"),
            ("--node-eviction-rate=-1", "--node-eviction-rate"),
            ("--unhealthy-zone-threshold=2", "between 0 and 1"),
            ("--allocate-node-cidrs", "--cluster-cidr"),
        ] {
            let text = flags(line).err().unwrap_or_else(|| panic!("{line} is taken"));
            assert!(text.contains(why), "{line}: {text}");
        }
    }

    #[test]
    fn nodes_get_a_range_of_each_family_that_the_cluster_has() {
        let cidrs = |line: &str| {
            let found = flags(&format!("--allocate-node-cidrs {line}")).unwrap().node_cidrs();
            found.map(|all| all.iter().map(|it| it.mask_size).collect::<Vec<_>>())
        };
        assert_eq!(cidrs("--cluster-cidr 10.0.0.0/16"), Ok(vec![24]));
        assert_eq!(cidrs("--cluster-cidr 10.0.0.0/16 --node-cidr-mask-size 26"), Ok(vec![26]));
        let both = "--cluster-cidr 10.0.0.0/16,fd00::/48";
        assert_eq!(cidrs(both), Ok(vec![24, 64]));
        let sizes = "--node-cidr-mask-size-ipv4 25 --node-cidr-mask-size-ipv6 80";
        assert_eq!(cidrs(&format!("{both} {sizes}")), Ok(vec![25, 80]));
        assert!(cidrs(&format!("{both} --node-cidr-mask-size 24")).is_err());
        assert!(cidrs("--cluster-cidr 10.0.0.0/16,10.1.0.0/16").is_err());
        assert!(cidrs("--cluster-cidr 10.0.0.0/16,fd00::/48,10.1.0.0/16").is_err());
    }
}
