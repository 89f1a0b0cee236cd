//! What came of asking webhooks to convert custom resources.

use std::time::Duration;

use super::instrument::{Counter, Histogram};
use super::registry::{Family, Registry};

const DURATIONS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];
const ANSWER_DURATIONS: &[f64] =
    &[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

/// A conversion that is over.
#[derive(Clone, Copy)]
pub(crate) struct Conversion<'a> {
    /// The name of the definition.
    pub(crate) definition: &'a str,
    /// The versions, without their group.
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) succeeded: bool,
}

/// How often webhooks converted, and how long they took.
pub(crate) struct Conversions {
    durations: Family<4, Histogram>,
    answers: Family<2, Counter>,
    answer_durations: Family<2, Histogram>,
}

impl Conversions {
    pub(super) fn registered(registry: &Registry) -> Self {
        Self {
            durations: registry.histograms(
                "apiserver_crd_conversion_webhook_duration_seconds",
                "[ALPHA] CRD webhook conversion duration in seconds",
                ["crd_name", "from_version", "succeeded", "to_version"],
                DURATIONS,
            ),
            answers: registry.counters(
                "apiserver_conversion_webhook_request_total",
                "[ALPHA] Counter for conversion webhook requests with success/failure and failure error type",
                ["failure_type", "result"],
            ),
            answer_durations: registry.histograms(
                "apiserver_conversion_webhook_duration_seconds",
                "[ALPHA] Conversion webhook request latency",
                ["failure_type", "result"],
                ANSWER_DURATIONS,
            ),
        }
    }

    /// A webhook was asked; what it failed in, if it did.
    pub(crate) fn asked(&self, failure: Option<&str>, took: Duration) {
        let result = if failure.is_some() { "failure" } else { "success" };
        let labels = [failure.unwrap_or(""), result];
        self.answers.with(labels).increment();
        self.answer_durations.with(labels).took(took);
    }

    /// Something was converted, or could not be.
    pub(crate) fn converted(&self, conversion: Conversion<'_>, took: Duration) {
        let Conversion { definition, from, to, succeeded } = conversion;
        let succeeded = if succeeded { "true" } else { "false" };
        self.durations.with([definition, from, succeeded, to]).took(took);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Conversion, Conversions};
    use crate::metrics::Registry;

    #[test]
    fn conversions_are_counted_by_what_came_of_them() {
        let registry = Registry::default();
        let conversions = Conversions::registered(&registry);
        let took = Duration::from_millis(3);
        conversions.asked(None, took);
        conversions.asked(Some("conversion_webhook_call_failure"), took);
        let (from, to) = ("v1", "v2");
        let conversion = Conversion { definition: "a.example.com", from, to, succeeded: true };
        conversions.converted(conversion, took);
        let mut out = String::new();
        registry.write(&mut out);
        for line in [
            "apiserver_conversion_webhook_request_total{failure_type=\"\",result=\"success\"} 1\n",
            "apiserver_conversion_webhook_request_total{failure_type=\"conversion_webhook_call_failure\",result=\"failure\"} 1\n",
            "apiserver_conversion_webhook_duration_seconds_count{failure_type=\"\",result=\"success\"} 1\n",
            "apiserver_crd_conversion_webhook_duration_seconds_bucket{crd_name=\"a.example.com\",from_version=\"v1\",succeeded=\"true\",to_version=\"v2\",le=\"0.004\"} 1\n",
        ] {
            assert!(out.contains(line), "{line} {out}");
        }
    }
}
