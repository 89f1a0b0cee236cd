//! How long admission took: in all, of each plug-in, and of each webhook.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::instrument::{Counter, Histogram};
use super::registry::{Family, Registry};

const PLUGIN_DURATIONS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

const WEBHOOK_DURATIONS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

const POLICY_DURATIONS: &[f64] = &[0.000_000_5, 0.001, 0.01, 0.1, 1.0];

/// The operations, as labels name them.
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// Whether things are changed or judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Admit,
    Validate,
}

impl Step {
    fn name(self) -> &'static str {
        ["admit", "validate"][self as usize]
    }

    /// The same where webhooks are counted, which upstream calls otherwise.
    fn of_webhooks(self) -> &'static str {
        ["admit", "validating"][self as usize]
    }
}

/// One webhook's answer.
#[derive(Clone, Copy)]
pub(crate) struct WebhookAnswer<'a> {
    pub(crate) name: &'a str,
    pub(crate) step: Step,
    pub(crate) operation: &'a str,
    pub(crate) outcome: WebhookOutcome,
}

/// How asking a webhook ended.
#[derive(Clone, Copy)]
pub(crate) enum WebhookOutcome {
    Allowed,
    /// It said no, with this code.
    Denied(u16),
    /// It could not be asked, or not be understood.
    Unreachable {
        code: u16,
        /// Whether that refuses the request.
        refuses: bool,
    },
    /// The server cannot ask it, or not do what it said.
    Failed,
}

/// What a policy has found.
#[derive(Clone, Copy)]
pub(crate) struct PolicyCheck<'a> {
    pub(crate) policy: &'a str,
    pub(crate) binding: &'a str,
    /// What is wrong, if anything.
    pub(crate) why: Option<&'a str>,
    /// How long it took to find that.
    pub(crate) took: Duration,
}

/// How long admission took.
pub(crate) struct Admission {
    steps: Times,
    plugins: Family<4, Histogram>,
    webhooks: Family<4, Histogram>,
    webhook_requests: Family<5, Counter>,
    webhook_rejections: Family<5, Counter>,
    webhook_fail_open: Family<2, Counter>,
    validating_policies: Family<4, Counter>,
    validating_durations: Family<4, Histogram>,
    mutating_policies: Family<3, Counter>,
    mutating_durations: Family<3, Histogram>,
}

impl Admission {
    pub(super) fn registered(registry: &Registry) -> Self {
        let steps = registry.histograms(
            "apiserver_admission_step_admission_duration_seconds",
            "[STABLE] Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
            ["operation", "rejected", "type"],
            PLUGIN_DURATIONS,
        );
        Self {
            steps: Times::new(move |[operation, rejected, step]| {
                steps.with([operation, rejected, step])
            }),
            plugins: registry.histograms(
                "apiserver_admission_controller_admission_duration_seconds",
                "[STABLE] Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                ["name", "operation", "rejected", "type"],
                PLUGIN_DURATIONS,
            ),
            webhooks: registry.histograms(
                "apiserver_admission_webhook_admission_duration_seconds",
                "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
                ["name", "operation", "rejected", "type"],
                WEBHOOK_DURATIONS,
            ),
            webhook_requests: registry.counters(
                "apiserver_admission_webhook_request_total",
                "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                ["code", "name", "operation", "rejected", "type"],
            ),
            webhook_rejections: registry.counters(
                "apiserver_admission_webhook_rejection_count",
                "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
                ["error_type", "name", "operation", "rejection_code", "type"],
            ),
            webhook_fail_open: registry.counters(
                "apiserver_admission_webhook_fail_open_count",
                "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
                ["name", "type"],
            ),
            validating_policies: registry.counters(
                "apiserver_validating_admission_policy_check_total",
                "[BETA] Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
                ["enforcement_action", "error_type", "policy", "policy_binding"],
            ),
            validating_durations: registry.histograms(
                "apiserver_validating_admission_policy_check_duration_seconds",
                "[BETA] Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
                ["enforcement_action", "error_type", "policy", "policy_binding"],
                POLICY_DURATIONS,
            ),
            mutating_policies: registry.counters(
                "apiserver_mutating_admission_policy_check_total",
                "[ALPHA] Mutation admission policy check total, labeled by policy and further identified by binding.",
                ["error_type", "policy", "policy_binding"],
            ),
            mutating_durations: registry.histograms(
                "apiserver_mutating_admission_policy_check_duration_seconds",
                "[ALPHA] Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
                ["error_type", "policy", "policy_binding"],
                POLICY_DURATIONS,
            ),
        }
    }

    /// A whole step is done.
    pub(crate) fn stepped(&self, step: Step, operation: &str, rejected: bool, took: Duration) {
        self.steps.took(step, operation, rejected, took);
    }

    /// How long one plug-in takes, for it to keep.
    pub(crate) fn of_plugin(&self, name: &'static str) -> Times {
        let plugins = self.plugins.clone();
        Times::new(move |[operation, rejected, step]| {
            plugins.with([name, operation, rejected, step])
        })
    }

    /// A webhook has answered, or could not be asked.
    pub(crate) fn webhook(&self, answer: WebhookAnswer<'_>, took: Duration) {
        let WebhookAnswer { name, step, operation, outcome } = answer;
        let step = step.of_webhooks();
        let (code, error) = match outcome {
            WebhookOutcome::Allowed => (200, None),
            WebhookOutcome::Denied(code) => (code, Some("no_error")),
            WebhookOutcome::Unreachable { code, refuses } => {
                (code, refuses.then_some("calling_webhook_error"))
            }
            WebhookOutcome::Failed => (0, Some("apiserver_internal_error")),
        };
        let refused = if error.is_some() { "true" } else { "false" };
        self.webhooks.with([name, operation, refused, step]).took(took);
        let told = code.min(600).to_string();
        self.webhook_requests.with([&told, name, operation, refused, step]).increment();
        if let Some(error) = error {
            self.webhook_rejections.with([error, name, operation, &told, step]).increment();
        }
    }

    /// Something does not hold of what a policy judges, for a reason; the action is what follows.
    pub(crate) fn judged(&self, check: PolicyCheck<'_>, action: &str) {
        let PolicyCheck { policy, binding, why, took } = check;
        let labels = [action, error_type(why), policy, binding];
        self.validating_policies.with(labels).increment();
        self.validating_durations.with(labels).took(took);
    }

    /// A policy has changed an object, or could not.
    pub(crate) fn mutated(&self, check: PolicyCheck<'_>) {
        let PolicyCheck { policy, binding, why, took } = check;
        let labels = [error_type(why), policy, binding];
        self.mutating_policies.with(labels).increment();
        self.mutating_durations.with(labels).took(took);
    }

    /// A webhook could not be asked, and need not be.
    pub(crate) fn failed_open(&self, name: &str, step: Step) {
        self.webhook_fail_open.with([name, step.of_webhooks()]).increment();
    }
}

/// What sort of error a message tells of; as in Kubernetes, that is known by its first words.
fn error_type(why: Option<&str>) -> &'static str {
    match why {
        None => "no_error",
        Some(why) if why.starts_with("compilation") => "compile_error",
        Some(why) if why.starts_with("validation failed due to running out of cost budget") => {
            "out_of_budget"
        }
        Some(_) => "invalid_error",
    }
}

/// Looks a series up by its labels.
type Find = dyn Fn([&str; 3]) -> Arc<Histogram> + Send + Sync;

/// How long something takes, by step, operation and whether it refuses. Each is looked up once,
/// when it first takes any time.
pub(crate) struct Times {
    known: [[[OnceLock<Arc<Histogram>>; 2]; 4]; 2],
    find: Box<Find>,
}

impl Times {
    fn new(find: impl Fn([&str; 3]) -> Arc<Histogram> + Send + Sync + 'static) -> Self {
        Self { known: Default::default(), find: Box::new(find) }
    }

    pub(crate) fn took(&self, step: Step, operation: &str, rejected: bool, took: Duration) {
        let index = OPERATIONS.iter().position(|known| *known == operation).unwrap_or(1);
        let known = &self.known[step as usize][index][usize::from(rejected)];
        let refused = if rejected { "true" } else { "false" };
        known.get_or_init(|| (self.find)([OPERATIONS[index], refused, step.name()])).took(took);
    }
}
