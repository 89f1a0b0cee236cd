//! Which of the built-in controllers a cluster runs, chosen as kube-controller-manager's flag
//! `--controllers` does. The scheduler and the metrics server, programs of their own in Kubernetes,
//! are in the same list, so that one word makes a cluster in which nothing moves.

use std::fmt;
use std::str::FromStr;

/// The name of the scheduler, beside those of [`steersman_controllers::NAMES`].
const SCHEDULER: (&str, &str) = ("kube-scheduler", "scheduler");

/// The name of what tells how much Pods and nodes use.
const METRICS_SERVER: (&str, &str) = ("metrics-server", "metrics");

/// Which of the built-in controllers, the scheduler and the metrics server run.
///
/// ```
/// use steersman_cluster::Controllers;
///
/// let chosen: Controllers = "*,-garbage-collector-controller".parse()?;
/// assert!(chosen.runs("deployment-controller") && chosen.runs("kube-scheduler"));
/// assert!(!chosen.runs("garbage-collector-controller"));
/// assert_eq!(Controllers::from(false), "none".parse()?);
/// # Ok::<(), steersman_cluster::ChoiceError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Controllers {
    /// The n-th bit is for the n-th name.
    bits: u64,
}

/// Why a list of controllers was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// There is no such controller.
    #[error(
        "there is no controller {name:?}; known are {known}; * stands for all of them and -NAME \
         leaves one out",
        known = known()
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// `none` was given with others.
    #[error("\"none\" stands alone, without other controllers")]
    NoneAndOthers,
}

impl Controllers {
    /// All of them.
    pub const ALL: Self = Self { bits: u64::MAX };
    /// None: objects stay as they were written.
    pub const NONE: Self = Self { bits: 0 };

    /// Every name that can be chosen.
    pub fn names() -> impl Iterator<Item = &'static str> {
        all().map(|(name, _)| name)
    }

    /// Whether the controller of this name runs.
    pub fn runs(self, name: &str) -> bool {
        all().zip(0..).any(|((known, _), n)| known == name && self.bits & (1 << n) != 0)
    }

    /// Whether the scheduler runs.
    pub(crate) fn schedules(self) -> bool {
        self.runs(SCHEDULER.0)
    }

    /// Whether somebody tells how much Pods and nodes use.
    pub(crate) fn measure(self) -> bool {
        self.runs(METRICS_SERVER.0)
    }

    /// Whether somebody makes volumes for claims.
    pub(crate) fn provision_volumes(self) -> bool {
        self.runs("local-path-provisioner")
    }

    /// Whether somebody needs to know who the cluster is: its certificates, or its keys.
    pub(crate) fn need_keys(self) -> bool {
        let names = [
            "root-ca-certificate-publisher-controller",
            "certificatesigningrequest-signing-controller",
            "serviceaccount-token-controller",
        ];
        names.into_iter().any(|name| self.runs(name))
    }
}

/// Every name with its short form.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    steersman_controllers::NAMES.into_iter().chain([SCHEDULER, METRICS_SERVER])
}

fn known() -> String {
    Controllers::names().collect::<Vec<_>>().join(", ")
}

impl Default for Controllers {
    fn default() -> Self {
        Self::ALL
    }
}

impl From<bool> for Controllers {
    fn from(run: bool) -> Self {
        if run { Self::ALL } else { Self::NONE }
    }
}

impl FromStr for Controllers {
    type Err = ChoiceError;

    /// Reads a list with commas: `*` for all, a name, or a name behind a `-` that does not run.
    /// Of what is said about one controller the first counts; one of which nothing is said runs
    /// if there is a `*`. `none` alone is for none.
    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let items: Vec<&str> = text.split(',').map(str::trim).collect();
        if items == ["none"] {
            return Ok(Self::NONE);
        }
        if items.contains(&"none") {
            return Err(ChoiceError::NoneAndOthers);
        }
        let name = |item: &str| item.strip_prefix('-').unwrap_or(item).to_owned();
        let is = |item: &str, (long, short)| [long, short].contains(&&*name(item));
        for item in &items {
            if *item != "*" && !all().any(|known| is(item, known)) {
                return Err(ChoiceError::Unknown { name: name(item) });
            }
        }
        let runs = |known| match items.iter().find(|item| is(item, known)) {
            Some(item) => !item.starts_with('-'),
            None => items.contains(&"*"),
        };
        let bits = all().zip(0..).filter(|(known, _)| runs(*known)).map(|(_, n)| 1 << n).sum();
        Ok(if bits == (1 << all().count()) - 1 { Self::ALL } else { Self { bits } })
    }
}

/// The list that chooses it.
impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("*"),
            Self::NONE => f.write_str("none"),
            some => {
                let chosen = Self::names().filter(|name| some.runs(name));
                f.write_str(&chosen.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controllers({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_chooses_as_in_kubernetes() {
        for (list, chosen) in [
            ("*", "*"),
            ("none", "none"),
            ("deployment-controller,replicaset", "deployment-controller,replicaset-controller"),
            ("-deployment", "none"),
            ("kube-scheduler", "kube-scheduler"),
            ("deployment,-deployment", "deployment-controller"),
            ("-deployment,deployment", "none"),
            (
                "*, -garbagecollector,-root-ca-cert-publisher",
                "deployment-controller,replicaset-controller,statefulset-controller,\
                 daemonset-controller,replicationcontroller-controller,disruption-controller,namespace-controller,\
                 serviceaccount-controller,clusterrole-aggregation-controller,\
                 resourcequota-controller,job-controller,cronjob-controller,\
                 ttl-after-finished-controller,horizontal-pod-autoscaler-controller,\
                 validatingadmissionpolicy-status-controller,\
                 endpointslice-controller,endpoints-controller,endpointslice-mirroring-controller,\
                 service-cidr-controller,service-lb-controller,\
                 persistentvolume-binder-controller,persistentvolume-expander-controller,\
                 persistentvolume-attach-detach-controller,\
                 persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
                 volumeattributesclass-protection-controller,ephemeral-volume-controller,\
                 local-path-provisioner,\
                 node-ipam-controller,\
                 node-lifecycle-controller,taint-eviction-controller,\
                 pod-garbage-collector-controller,ttl-controller,\
                 certificatesigningrequest-signing-controller,serviceaccount-token-controller,\
                 kube-scheduler,metrics-server",
            ),
        ] {
            let parsed: Controllers = list.parse().unwrap();
            assert_eq!(parsed.to_string(), chosen, "{list}");
            assert_eq!(chosen.parse(), Ok(parsed), "{list}");
        }
        let every: Vec<&str> = Controllers::names().collect();
        assert_eq!(every.join(",").parse(), Ok(Controllers::ALL));
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        for (list, name) in [("*,-nonsense", "nonsense"), ("", ""), ("*,,x", ""), ("all", "all")] {
            let error = list.parse::<Controllers>().unwrap_err();
            assert_eq!(error, ChoiceError::Unknown { name: name.into() });
            assert!(error.to_string().contains("serviceaccount-controller"), "{error}");
        }
        assert_eq!("none,*".parse::<Controllers>(), Err(ChoiceError::NoneAndOthers));
    }
}
