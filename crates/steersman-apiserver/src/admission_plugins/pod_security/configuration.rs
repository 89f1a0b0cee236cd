//! What is asked where no label says anything, and who is not asked.

use super::policy::Policy;

/// How the plug-in is set up; by default nothing is asked, and nobody is exempt.
#[derive(Debug)]
pub(super) struct Configuration {
    /// What is asked where no label says anything.
    pub(super) defaults: Policy,
    /// The namespaces in which nobody is asked.
    pub(super) exempt_namespaces: Vec<String>,
    /// The users who are not asked.
    pub(super) exempt_users: Vec<String>,
    /// The runtime classes of Pods that are not looked at.
    pub(super) exempt_runtime_classes: Vec<String>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            defaults: Policy::PRIVILEGED,
            exempt_namespaces: Vec::new(),
            exempt_users: Vec::new(),
            exempt_runtime_classes: Vec::new(),
        }
    }
}

impl Configuration {
    pub(super) fn exempts_namespace(&self, name: &str) -> bool {
        contains(&self.exempt_namespaces, name)
    }

    pub(super) fn exempts_user(&self, name: &str) -> bool {
        contains(&self.exempt_users, name)
    }

    pub(super) fn exempts_runtime_class(&self, name: &str) -> bool {
        contains(&self.exempt_runtime_classes, name)
    }
}

fn contains(names: &[String], name: &str) -> bool {
    !name.is_empty() && names.iter().any(|exempt| exempt == name)
}
