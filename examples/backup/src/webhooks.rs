//! What the API server asks before it stores a Backup. The schema says what it can: types, the
//! least number of runs to keep, and defaults that are the same for all.

use kube::ResourceExt;
use steersman::webhook::{
    AdmissionRequest, Defaulter, Denied, FieldError, Operation, Validator, Warnings, WebhookServer,
    WebhookServerBuilder,
};

use crate::Backup;
use crate::pod::NAME_MAX;
use crate::schedule::Schedule;

impl Defaulter for Backup {
    fn set_defaults(&mut self, _: &AdmissionRequest) -> Result<(), Denied> {
        if self.metadata.name.is_some() {
            self.spec.secret = Some(self.secret());
        }
        Ok(())
    }
}

impl Validator for Backup {
    const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update];

    fn validate_create(&self, _: &AdmissionRequest) -> Result<Warnings, Denied> {
        let mut errors = Vec::new();
        if let Err(error) = self.spec.every.parse::<Schedule>() {
            errors.push(FieldError::invalid("spec.every", &self.spec.every, error));
        }
        if self.name_any().len() > NAME_MAX {
            let detail = format!("must be no more than {NAME_MAX} characters");
            errors.push(FieldError::invalid("metadata.name", self.name_any(), detail));
        }
        Denied::if_any(errors)?;
        Ok(Warnings::new())
    }

    fn validate_update(&self, old: &Self, request: &AdmissionRequest) -> Result<Warnings, Denied> {
        if self.spec == old.spec {
            return Ok(Warnings::new()); // or a finalizer could not be added or taken away
        }
        let mut warnings = self.validate_create(request)?;
        if self.spec.keep < old.spec.keep {
            warnings.push(format!("of the finished runs, all but {} are deleted", self.spec.keep));
        }
        Ok(warnings)
    }
}

/// The webhooks of Backups.
pub fn webhooks() -> WebhookServerBuilder {
    WebhookServer::builder("backup-operator").defaults::<Backup>().validates::<Backup>()
}
