//! Kubernetes' admission plug-ins, one file or folder each, and which of them are on.
//!
//! [`ORDER`] has them in the order in which they are asked, which is Kubernetes'. What a plug-in is
//! and when it is asked says [`crate::state::plugins`].

mod limit_ranger;
mod pod_security;

use std::collections::BTreeSet;

use crate::state::plugins::{Plugin, Plugins};

/// A plug-in that this server has.
struct Known {
    name: &'static str,
    /// Whether it is on unless switched off.
    on: bool,
    /// Whether it is asked after the webhooks.
    late: bool,
    make: fn() -> Box<dyn Plugin>,
}

/// All plug-ins, in the order in which they are asked.
const ORDER: &[Known] = &[
    Known { name: "LimitRanger", on: true, late: false, make: limit_ranger::plugin },
    Known { name: "PodSecurity", on: true, late: false, make: pod_security::plugin },
];

/// Which plug-ins are on: those that Kubernetes has on by default, but for what was switched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSelection {
    enabled: BTreeSet<String>,
    disabled: BTreeSet<String>,
}

impl PluginSelection {
    /// Switches plug-ins on and off by name, as `--enable-admission-plugins` and
    /// `--disable-admission-plugins` do.
    ///
    /// # Errors
    ///
    /// If there is no plug-in of a name, or one is switched both on and off.
    pub fn new<'a>(
        enabled: impl IntoIterator<Item = &'a str>,
        disabled: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, String> {
        let enabled: BTreeSet<String> = enabled.into_iter().map(str::to_owned).collect();
        let disabled: BTreeSet<String> = disabled.into_iter().map(str::to_owned).collect();
        for (names, flag) in [(&enabled, "enable"), (&disabled, "disable")] {
            let is_known = |name: &&String| ORDER.iter().any(|known| known.name == **name);
            if let Some(name) = names.iter().find(|name| !is_known(name)) {
                return Err(format!("{flag}-admission-plugins plugin {name:?} is unknown"));
            }
        }
        if let Some(name) = enabled.intersection(&disabled).next() {
            return Err(format!(
                "[{name}] in enable-admission-plugins and disable-admission-plugins overlapped"
            ));
        }
        Ok(Self { enabled, disabled })
    }

    fn has(&self, known: &Known) -> bool {
        self.enabled.contains(known.name) || (known.on && !self.disabled.contains(known.name))
    }

    /// The plug-ins that are on.
    pub(crate) fn plugins(&self) -> Plugins {
        let mut plugins = Plugins::default();
        for known in ORDER.iter().filter(|known| self.has(known)) {
            let side = if known.late { &mut plugins.late } else { &mut plugins.early };
            side.push((known.make)());
        }
        plugins
    }
}
