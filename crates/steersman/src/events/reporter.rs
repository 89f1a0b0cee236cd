//! Who reports events.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use super::EventForm;
use super::cut::cut;
use crate::client::{Client, Impersonation};

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
    /// Through what it writes, if not through the client of the broadcaster.
    pub(super) writer: Option<Writer>,
    /// Under which name, if not under the client's.
    pub(super) field_manager: Option<Arc<str>>,
}

/// A client that Events are written through. Two are told apart by their numbers, in the order in which
/// they came.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) number: u64,
    pub(super) client: Arc<Client>,
}

impl PartialEq for Writer {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Writer {}

impl PartialOrd for Writer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Writer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for Writer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.number).finish()
    }
}

impl Reporter {
    pub(super) fn new(controller: &str) -> Self {
        let controller = qualified_name(controller).into();
        Self {
            controller,
            host: None,
            acting_as: None,
            form: EventForm::default(),
            writer: None,
            field_manager: None,
        }
    }

    /// Another controller, which reports in the same form and through the same client.
    pub(super) fn renamed(&self, controller: &str) -> Self {
        let Self { controller, host, .. } = Self::new(controller);
        Self { controller, host, acting_as: None, ..self.clone() }
    }

    /// The same, writing under another name.
    pub(super) fn field_manager(&self, name: &Arc<str>) -> Self {
        Self { field_manager: Some(Arc::clone(name)), ..self.clone() }
    }

    /// The same, writing through another client.
    pub(super) fn through(&self, writer: Writer) -> Self {
        Self { writer: Some(writer), ..self.clone() }
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
