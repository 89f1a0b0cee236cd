//! Rules of whoever runs the nodes, such as a test: which Pods, and what their containers do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman_values::Quantity;
use tokio::sync::watch;

use super::{Exits, Ready, Script, annotations, image};
use crate::groups::{NodeGroup, UsageProfile};

/// What the containers of simulated nodes do. Clones share their rules, which can change while
/// Pods run.
#[derive(Clone, Debug)]
pub struct Scripts {
    rules: Arc<Mutex<Vec<Rule>>>,
    /// What containers use on some nodes, unless a rule says otherwise.
    profiles: Arc<Mutex<Vec<NodeGroup>>>,
    changed: watch::Sender<()>,
}

impl Default for Scripts {
    fn default() -> Self {
        let (rules, profiles) = Default::default();
        Self { rules, profiles, changed: watch::Sender::new(()) }
    }
}

/// Which containers, and what they do.
#[derive(Clone, Debug, Default)]
struct Rule {
    name: Option<String>,
    namespace: Option<String>,
    labels: Vec<(String, String)>,
    image: Option<String>,
    container: Option<String>,
    /// For so many Pods, if not for all.
    times: Option<usize>,
    /// The uids of the Pods that it was for, if it is for some.
    taken: Vec<String>,
    script: Script,
}

/// A container as rules see it.
pub(crate) struct Scripted<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) name: &'a str,
    pub(crate) image: &'a str,
    /// Whether it is one of the Pod's main containers.
    pub(crate) main: bool,
}

impl Scripts {
    /// Begins a rule. What it says counts more than what rules before it say.
    pub fn rule(&self) -> PodRule {
        let mut rules = self.lock();
        rules.push(Rule::default());
        PodRule { scripts: self.clone(), index: rules.len() - 1 }
    }

    /// The same rules, which from here on change without these.
    #[must_use]
    pub fn fork(&self) -> Self {
        let rules = self.lock().clone();
        let rules = Arc::new(Mutex::new(rules));
        let profiles = Arc::clone(&self.profiles);
        Self { rules, profiles, changed: watch::Sender::new(()) }
    }

    /// Takes over what containers use on the nodes of these groups.
    pub(crate) fn use_profiles(&self, groups: &[NodeGroup]) {
        let with_usage = groups.iter().filter(|group| group.usage.is_some()).cloned();
        *self.profiles.lock().unwrap_or_else(PoisonError::into_inner) = with_usage.collect();
    }

    /// What containers use on a node, if something is said of that.
    pub(crate) fn profile(&self, node: &str) -> Option<UsageProfile> {
        let groups = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().find(|group| group.has(node))?.usage.clone()
    }

    /// Hears that rules have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// What a container does.
    pub(crate) fn script(&self, of: &Scripted<'_>) -> Script {
        let mut script = Script::default();
        for rule in self.lock().iter_mut().rev().filter(|rule| rule.matches(of)) {
            if rule.takes(of.pod) {
                script = script.or(rule.script.clone());
            }
        }
        let annotated = of.pod.metadata.annotations.as_ref();
        let annotated = annotated.map(|all| annotations::script(all, of.name, of.main));
        script.or(annotated.unwrap_or_default()).or(image::script(of.image))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn matches(&self, of: &Scripted<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let meta = &of.pod.metadata;
        let label = |key: &String| meta.labels.as_ref().and_then(|labels| labels.get(key));
        let whose = match &self.container {
            Some(container) => container == of.name,
            None => of.main,
        };
        whose
            && is(&self.name, meta.name.as_deref())
            && is(&self.namespace, meta.namespace.as_deref())
            && is(&self.image, Some(of.image))
            && self.labels.iter().all(|(key, value)| label(key) == Some(value))
    }

    /// Whether the rule is for this Pod: for every one, or this is one of the first.
    fn takes(&mut self, pod: &Pod) -> bool {
        let Some(times) = self.times else { return true };
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if self.taken.contains(&uid) {
            return true;
        }
        let free = self.taken.len() < times;
        if free {
            self.taken.push(uid);
        }
        free
    }
}

/// Which Pods of simulated nodes a rule is about, and what they do. Every word counts at once, also
/// for Pods that run already: one that is to exit after ten seconds and has run for a minute exits
/// now.
///
/// Without [`container`](Self::container), it is about all containers but init containers.
#[derive(Debug)]
pub struct PodRule {
    scripts: Scripts,
    index: usize,
}

impl PodRule {
    /// The Pod of this name.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.change(|rule| rule.name = Some(name.into()))
    }

    /// The Pods of this namespace.
    pub fn in_namespace(self, namespace: impl Into<String>) -> Self {
        self.change(|rule| rule.namespace = Some(namespace.into()))
    }

    /// The Pods with this label.
    pub fn labelled(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|rule| rule.labels.push((key.into(), value.into())))
    }

    /// The containers of this image.
    pub fn image(self, image: impl Into<String>) -> Self {
        self.change(|rule| rule.image = Some(image.into()))
    }

    /// The container of this name, which may be an init container.
    pub fn container(self, name: impl Into<String>) -> Self {
        self.change(|rule| rule.container = Some(name.into()))
    }

    /// Only the first Pods of these, so many.
    pub fn times(self, pods: usize) -> Self {
        self.change(|rule| rule.times = Some(pods))
    }

    /// They exit with this code, at once unless [`after`](Self::after) says otherwise.
    pub fn exits(self, code: i32) -> Self {
        self.exits_in_turn([code])
    }

    /// They exit with the first code, once restarted with the next, and so on; the last one
    /// repeats.
    pub fn exits_in_turn(self, codes: impl IntoIterator<Item = i32>) -> Self {
        let codes = codes.into_iter().collect();
        self.change(|rule| rule.script.exits = Some(Exits::With(codes)))
    }

    /// They are ended for the memory that they take: code 137, reason OOMKilled.
    pub fn out_of_memory(self) -> Self {
        self.exits(137).change(|rule| rule.script.reason = Some("OOMKilled"))
    }

    /// They run for so long before they exit.
    pub fn after(self, time: Duration) -> Self {
        self.change(|rule| rule.script.after = Some(time))
    }

    /// They do not exit, whatever their annotations and images say.
    pub fn run_for_ever(self) -> Self {
        self.change(|rule| rule.script.exits = Some(Exits::Never))
    }

    /// They are not ready while this rule says so.
    pub fn never_ready(self) -> Self {
        self.change(|rule| rule.script.ready = Some(Ready::Never))
    }

    /// They are ready when they have run for so long.
    pub fn ready_after(self, time: Duration) -> Self {
        self.change(|rule| rule.script.ready = Some(Ready::After(time)))
    }

    /// Their images cannot be pulled.
    pub fn unpullable(self) -> Self {
        self.change(|rule| rule.script.pullable = Some(false))
    }

    /// Their images can be pulled, after an earlier rule said that they cannot.
    pub fn pullable(self) -> Self {
        self.change(|rule| rule.script.pullable = Some(true))
    }

    /// What they do before they stop takes so long.
    pub fn pre_stop(self, time: Duration) -> Self {
        self.change(|rule| rule.script.pre_stop = Some(time))
    }

    /// They take so long to end when they are told to.
    pub fn terminate_after(self, time: Duration) -> Self {
        self.change(|rule| rule.script.termination = Some(time))
    }

    /// While they run, each of their containers uses so much CPU time and memory, such as `250m` and
    /// `64Mi`: `kubectl top` shows it, and autoscalers go by it.
    ///
    /// # Panics
    ///
    /// If these are no quantities.
    pub fn uses(self, cpu: &str, memory: &str) -> Self {
        let [cpu, memory] = [cpu, memory].map(|text| match Quantity::parse(text) {
            Ok(amount) => amount,
            Err(error) => panic!("{text:?}: {error}"),
        });
        self.change(|rule| (rule.script.cpu, rule.script.memory) = (Some(cpu), Some(memory)))
    }

    fn change(self, change: impl FnOnce(&mut Rule)) -> Self {
        if let Some(rule) = self.scripts.lock().get_mut(self.index) {
            change(rule);
        }
        self.scripts.changed.send_replace(());
        self
    }
}
