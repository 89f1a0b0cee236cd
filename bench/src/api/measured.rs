//! What is measured, in the order of the report, with the goal against each rival.

use std::collections::BTreeMap;

/// Figures by the name of their metric.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// One line of the report.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) lower_is_better: bool,
    pub(super) goals: &'static [(&'static str, f64)],
}

/// Ten times a kube-apiserver over etcd.
const TENFOLD: &[(&str, f64)] = &[("kube-apiserver", 10.0)];
/// That, and a third of what HTTPS and JSON alone allow.
const THIRD: &[(&str, f64)] = &[("bare https", 1.0 / 3.0), ("kube-apiserver", 10.0)];

macro_rules! metrics {
    ($( $name:literal $unit:literal $better:ident $goals:ident )*) => {
        &[ $( Metric {
            name: $name,
            unit: $unit,
            lower_is_better: stringify!($better).len() == "less".len(),
            goals: $goals,
        } ),* ]
    };
}

#[rustfmt::skip]
pub(super) const METRICS: &[Metric] = metrics! {
    "create"                "/s" greater THIRD
    "create, p99"           "ms" less    TENFOLD
    "get"                   "/s" greater THIRD
    "get, p99"              "ms" less    TENFOLD
    "update"                "/s" greater TENFOLD
    "update, p99"           "ms" less    TENFOLD
    "merge patch"           "/s" greater TENFOLD
    "merge patch, p99"      "ms" less    TENFOLD
    "apply"                 "/s" greater TENFOLD
    "apply, p99"            "ms" less    TENFOLD
    "list of all"           "ms" less    TENFOLD
    "list of all, p99"      "ms" less    TENFOLD
    "delete"                "/s" greater TENFOLD
    "delete, p99"           "ms" less    TENFOLD
    "50 watchers, p50"      "ms" less    TENFOLD
    "50 watchers, p99"      "ms" less    TENFOLD
    "500 watchers, p50"     "ms" less    TENFOLD
    "500 watchers, p99"     "ms" less    TENFOLD
    "resident, loaded"      "MB" less    TENFOLD
};
