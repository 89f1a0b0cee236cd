//! Who reports events.

use std::sync::{Arc, OnceLock};

use super::EventForm;
use super::cut::cut;
use crate::client::Impersonation;

/// The API's limits, in bytes.
const INSTANCE_MAX: usize = 128;
const CONTROLLER_MAX: usize = 63;

/// Who reports events, and in which form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Reporter {
    pub(super) controller: Arc<str>,
    /// The instance of the controller, if it was named.
    host: Option<Arc<str>>,
    /// In whose name it reports, if not in that of the client.
    pub(super) acting_as: Option<Impersonation>,
    pub(super) form: EventForm,
}

impl Reporter {
    pub(super) fn new(controller: &str) -> Self {
        let controller = qualified_name(controller).into();
        Self { controller, host: None, acting_as: None, form: EventForm::default() }
    }

    /// The same, in the name of another user.
    pub(super) fn acting_as(&self, user: &Impersonation) -> Self {
        Self { acting_as: Some(user.clone()), ..self.clone() }
    }

    /// Another instance of the same controller.
    pub(super) fn instance(&self, instance: &str) -> Self {
        let named = Some(cut(instance, INSTANCE_MAX)).filter(|name| !name.is_empty());
        let host = named.map(Into::into).or_else(|| self.host.clone());
        Self { host, ..self.clone() }
    }

    /// The same, in this form.
    pub(super) fn form(&self, form: EventForm) -> Self {
        Self { form, ..self.clone() }
    }

    /// The machine that it speaks for, if it does: a kubelet names one, a controller of the whole
    /// cluster does not.
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// What the newer form asks of everybody: the instance, or a name for it after the machine.
    pub(super) fn named_instance(&self) -> String {
        match self.host() {
            Some(host) => host.to_owned(),
            None => cut(&format!("{}-{}", self.controller, machine()), INSTANCE_MAX).to_owned(),
        }
    }
}

/// A name as `example.com/controller`, of the letters that the API takes there.
fn qualified_name(controller: &str) -> String {
    let (prefix, name) = match controller.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, controller),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let letters = |text: &str| -> String {
        let text: String = text.chars().map(|c| if fits(c) { c } else { '-' }).collect();
        let ends = ['-', '_', '.'];
        cut(text.trim_matches(ends), CONTROLLER_MAX).trim_matches(ends).to_owned()
    };
    let name = Some(letters(name)).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "steersman".to_owned());
    match prefix.map(|prefix| letters(prefix).to_ascii_lowercase().replace('_', "-")) {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name,
    }
}

/// The name of the machine or the Pod.
fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let name = std::env::var("HOSTNAME").ok();
        let name = name.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "localhost".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_have_qualified_names() {
        for (given, name) in [
            ("deployment-controller", "deployment-controller"),
            ("example.com/my controller", "example.com/my-controller"),
            ("Exa_mple/x", "exa-mple/x"),
            ("", "steersman"),
            ("/", "steersman"),
        ] {
            assert_eq!(qualified_name(given), name, "{given}");
        }
        assert_eq!(qualified_name(&"x".repeat(80)).len(), 63);
    }

    #[test]
    fn an_instance_has_a_name_that_fits() {
        let kubelet = Reporter::new("kubelet");
        assert_eq!(kubelet.instance("node-1").named_instance(), "node-1");
        assert_eq!(&*kubelet.instance("node-1").controller, "kubelet");
        assert_eq!(kubelet.instance(""), kubelet);
        assert!(kubelet.named_instance().starts_with("kubelet-"));
        assert_eq!(kubelet.instance(&"n".repeat(200)).named_instance().len(), 128);
    }
}
