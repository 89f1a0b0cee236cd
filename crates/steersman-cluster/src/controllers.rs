//! Which of the built-in controllers a cluster runs, chosen as kube-controller-manager's flag
//! `--controllers` does. The scheduler and the metrics server, programs of their own in Kubernetes,
//! are in the same list, so that one word makes a cluster in which nothing moves.

use std::fmt;
use std::str::FromStr;

use steersman_controllers::{NAMES, OFF_BY_DEFAULT};

/// The name of the scheduler, beside those of [`steersman_controllers::NAMES`].
const SCHEDULER: (&str, &str) = ("kube-scheduler", "scheduler");

/// The name of what tells how much Pods and nodes use.
const METRICS_SERVER: (&str, &str) = ("metrics-server", "metrics");

/// The controllers of Kubernetes 1.36 that are built in nowhere here, or not yet, with the short
/// names that they had before. Who leaves one out gets what was asked for; who asks for one is told
/// that nobody does its work.
const ELSEWHERE: [(&str, &str); 7] = [
    ("podcertificaterequest-cleaner-controller", ""),
    ("node-route-controller", "route"),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    ("podgroup-protection-controller", ""),
    ("kube-apiserver-serving-clustertrustbundle-publisher-controller", ""),
    ("resourcepoolstatusrequest-controller", ""),
    ("selinux-warning-controller", ""),
];

/// Which of the built-in controllers, the scheduler and the metrics server run. `*` stands for all but
/// those that Kubernetes has off by default, which run if they are named.
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
    /// There is one in Kubernetes, and none here.
    #[error(
        "nobody does here what {name:?} of Kubernetes does: it can be left out with -{name}, but \
         not asked for; known are {known}",
        known = known()
    )]
    Elsewhere {
        /// What was asked for.
        name: String,
    },
    /// `none` was given with others.
    #[error("\"none\" stands alone, without other controllers")]
    NoneAndOthers,
}

impl Controllers {
    /// All of them but those that are off by default.
    pub const ALL: Self = Self { bits: (1 << ON_BY_DEFAULT) - 1 };
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

    /// Whether somebody attaches volumes.
    pub(crate) fn attach_volumes(self) -> bool {
        self.runs("persistentvolume-attach-detach-controller")
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

/// How many of the names, the first ones, are of what runs unless somebody says otherwise.
const ON_BY_DEFAULT: usize = NAMES.len() + 2;

/// Every name with its short form.
fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.into_iter().chain([SCHEDULER, METRICS_SERVER]).chain(OFF_BY_DEFAULT)
}

/// Whether an item of a list is about the controller of these names.
fn is(item: &str, (long, short): (&str, &str)) -> bool {
    let name = item.strip_prefix('-').unwrap_or(item);
    !name.is_empty() && [long, short].contains(&name)
}

/// Says why an item of a list is not understood.
fn check(item: &str) -> Result<(), ChoiceError> {
    if item == "*" || all().any(|known| is(item, known)) {
        return Ok(());
    }
    let name = item.strip_prefix('-').unwrap_or(item).to_owned();
    if !ELSEWHERE.into_iter().any(|known| is(item, known)) {
        return Err(ChoiceError::Unknown { name });
    }
    if item.starts_with('-') { Ok(()) } else { Err(ChoiceError::Elsewhere { name }) }
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

    /// Reads a list with commas: `*` for all that are on by default, a name, or a name behind a `-`
    /// that does not run. Of what is said about one controller the first counts; one of which
    /// nothing is said runs if there is a `*`. `none` alone is for none.
    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let items: Vec<&str> = text.split(',').map(str::trim).collect();
        if items == ["none"] {
            return Ok(Self::NONE);
        }
        if items.contains(&"none") {
            return Err(ChoiceError::NoneAndOthers);
        }
        items.iter().try_for_each(|item| check(item))?;
        let runs = |known, n| match items.iter().find(|item| is(item, known)) {
            Some(item) => !item.starts_with('-'),
            None => items.contains(&"*") && n < ON_BY_DEFAULT,
        };
        let chosen = all().zip(0..).filter(|(known, n)| runs(*known, *n));
        Ok(Self { bits: chosen.map(|(_, n)| 1 << n).sum() })
    }
}

/// The list that chooses it.
impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("*"),
            Self::NONE => f.write_str("none"),
            some => {
                let has_all = some.bits & Self::ALL.bits == Self::ALL.bits;
                let besides = if has_all { ON_BY_DEFAULT } else { 0 };
                let chosen = Self::names().skip(besides).filter(|name| some.runs(name));
                let star = has_all.then_some("*");
                f.write_str(&star.into_iter().chain(chosen).collect::<Vec<_>>().join(","))
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
            ("*,bootstrapsigner", "*,bootstrap-signer-controller"),
            ("tokencleaner", "token-cleaner-controller"),
            ("*,-selinux-warning-controller,-route", "*"),
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
                 certificatesigningrequest-approving-controller,\
                 certificatesigningrequest-cleaner-controller,\
                 legacy-serviceaccount-token-cleaner-controller,resourceclaim-controller,\
                 device-taint-eviction-controller,storage-version-migrator-controller,\
                 storageversion-garbage-collector-controller,kube-scheduler,metrics-server",
            ),
        ] {
            let parsed: Controllers = list.parse().unwrap();
            assert_eq!(parsed.to_string(), chosen, "{list}");
            assert_eq!(chosen.parse(), Ok(parsed), "{list}");
        }
        let every: Vec<&str> = Controllers::names().take(ON_BY_DEFAULT).collect();
        assert_eq!(every.join(",").parse(), Ok(Controllers::ALL));
    }

    #[test]
    fn what_is_off_in_kubernetes_stays_off_and_what_only_kubernetes_has_is_told() {
        for (off, _) in OFF_BY_DEFAULT {
            assert!(!Controllers::ALL.runs(off) && !Controllers::from(true).runs(off), "{off}");
        }
        let error = "*,selinux-warning-controller".parse::<Controllers>().unwrap_err();
        assert_eq!(error, ChoiceError::Elsewhere { name: "selinux-warning-controller".into() });
        let text = error.to_string();
        assert!(
            text.contains("-selinux-warning-controller") && text.contains("job-controller"),
            "{text}"
        );
    }

    #[test]
    fn every_controller_of_kubernetes_is_known_by_name() {
        let ours = all().filter(|(name, _)| {
            let beside = [
                "kube-scheduler",
                "local-path-provisioner",
                "metrics-server",
                "service-lb-controller",
            ];
            !beside.contains(name)
        });
        let clouds = ["node-route-controller", "cloud-node-lifecycle-controller"];
        let theirs = ELSEWHERE.into_iter().filter(|(name, _)| !clouds.contains(name));
        let names: std::collections::BTreeSet<&str> =
            ours.chain(theirs).map(|(name, _)| name).collect();
        assert_eq!(names.len(), 49, "{names:#?}");
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
