//! What is audited, by what the command line says.

use std::time::Duration;

use steersman_cluster::audit::{
    Auditing, LogSettings, Policy, Truncation, WebhookEndpoint, WebhookSettings,
};

use crate::arguments::AuditFlags;
use crate::authentication::refused;
use crate::failure::told;

/// What the flags say, with the files that they name; nothing without a policy.
pub(crate) fn chosen(flags: &AuditFlags) -> Result<Option<Auditing>, String> {
    let Some(file) = &flags.audit_policy_file else { return Ok(None) };
    let policy = Policy::read(file);
    let policy = policy.map_err(|error| refused("--audit-policy-file", file, &told(&error)))?;
    let mut auditing = Auditing::new(policy);
    let in_log = Truncation {
        max_event_size: flags.audit_log_truncate_max_event_size,
        max_batch_size: flags.audit_log_truncate_max_batch_size,
    };
    let sent = Truncation {
        max_event_size: flags.audit_webhook_truncate_max_event_size,
        max_batch_size: flags.audit_webhook_truncate_max_batch_size,
    };
    if let Some(path) = &flags.audit_log_path {
        let settings = LogSettings {
            max_age: flags.audit_log_maxage,
            max_backups: flags.audit_log_maxbackup,
            max_size: flags.audit_log_maxsize,
            truncate: truncation("log", flags.audit_log_truncate_enabled, in_log)?,
            ..LogSettings::to(path)
        };
        let opened = auditing.log(settings);
        auditing = opened.map_err(|error| refused("--audit-log-path", path, &told(&error)))?;
    }
    if let Some(file) = &flags.audit_webhook_config_file {
        let endpoint = WebhookEndpoint::of_kubeconfig(file);
        let refused = |error| refused("--audit-webhook-config-file", file, &told(&error));
        auditing = auditing.webhook(WebhookSettings {
            buffer_size: flags.audit_webhook_batch_buffer_size,
            batch_max_size: flags.audit_webhook_batch_max_size,
            batch_max_wait: Duration::from_secs_f64(flags.audit_webhook_batch_max_wait),
            throttle_qps: flags.audit_webhook_batch_throttle_qps,
            throttle_burst: flags.audit_webhook_batch_throttle_burst,
            initial_backoff: Duration::from_secs_f64(flags.audit_webhook_initial_backoff),
            truncate: truncation("webhook", flags.audit_webhook_truncate_enabled, sent)?,
            ..WebhookSettings::to(endpoint.map_err(refused)?)
        });
    }
    Ok(Some(auditing))
}

/// How large events may be for a sink, if somebody wants to say so.
fn truncation(
    sink: &str,
    is_enabled: bool,
    limits: Truncation,
) -> Result<Option<Truncation>, String> {
    let Truncation { max_event_size: event, max_batch_size: batch } = limits;
    if event == 0 {
        return Err(format!(
            "invalid audit truncate {sink} max event size {event}, must be a positive number"
        ));
    }
    if batch < event {
        return Err(format!(
            "invalid audit truncate {sink} max batch size {batch}, must be greater than max event \
             size ({event})"
        ));
    }
    Ok(is_enabled.then_some(limits))
}
