//! Puts profiles together from what is enabled and disabled.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::args::make;
use super::{Configuration, ConfigurationError, PluginSet, ProfileConfiguration, invalid};
use crate::framework::{Enabled, Plugin, Points, Profile};
use crate::plugins::{DEFAULTS, Handle};
use crate::queue::Profiles;

const POINTS: [(&str, Points); 12] = [
    ("preEnqueue", Points::PRE_ENQUEUE),
    ("queueSort", Points::QUEUE_SORT),
    ("preFilter", Points::PRE_FILTER),
    ("filter", Points::FILTER),
    ("postFilter", Points::POST_FILTER),
    ("preScore", Points::PRE_SCORE),
    ("score", Points::SCORE),
    ("reserve", Points::RESERVE),
    ("permit", Points::PERMIT),
    ("preBind", Points::PRE_BIND),
    ("bind", Points::BIND),
    ("postBind", Points::POST_BIND),
];

/// Profiles, and what they share.
pub(crate) struct Assembled {
    pub(crate) profiles: Profiles,
    /// Orders the queue: there is one, so that all profiles must agree.
    pub(crate) sort: Arc<dyn Plugin>,
}

/// Makes the profiles of a configuration. `own` are plug-ins beside Kubernetes': they take part in every
/// profile that does not say otherwise.
pub(crate) fn assemble(
    configuration: &Configuration,
    own: &[Arc<dyn Plugin>],
    handle: &Arc<Handle>,
) -> Result<Assembled, ConfigurationError> {
    let default = [ProfileConfiguration::default()];
    let given = match configuration.profiles.is_empty() {
        true => &default[..],
        false => &configuration.profiles,
    };
    let mut profiles = HashMap::new();
    let mut sort: Option<Arc<dyn Plugin>> = None;
    for (number, profile) in given.iter().enumerate() {
        let ignored = configuration.ignored_resources();
        let mut chosen = Chosen { number, profile, own, handle, ignored, plugins: Vec::new() };
        chosen.choose()?;
        let percentage = configuration.percentage(profile);
        let mut made = Profile::new(profile.name(), percentage, chosen.plugins);
        if !configuration.extenders.is_empty() {
            made.look_at_all();
        }
        let sorting = made.at(Points::QUEUE_SORT).next().cloned();
        let field = format!("profiles[{number}].plugins.queueSort");
        match (&sort, sorting) {
            (_, None) => return Err(invalid(&field, "[]", "no queue sort plugin is enabled")),
            (None, sorting) => sort = sorting,
            (Some(first), Some(other)) if first.name() != other.name() => {
                let why = "has to match for all profiles";
                return Err(invalid(&field, other.name(), why));
            }
            _ => {}
        }
        profiles.insert(Arc::clone(made.name()), Arc::new(made));
    }
    let sort = sort.ok_or_else(|| invalid("profiles", "[]", "there is none"))?;
    Ok(Assembled { profiles, sort })
}

/// The plug-ins of a profile, as far as they are chosen.
struct Chosen<'a> {
    number: usize,
    profile: &'a ProfileConfiguration,
    own: &'a [Arc<dyn Plugin>],
    handle: &'a Arc<Handle>,
    /// Extended resources that only extenders look at.
    ignored: Vec<String>,
    plugins: Vec<Enabled>,
}

impl Chosen<'_> {
    fn choose(&mut self) -> Result<(), ConfigurationError> {
        let none = PluginSet::default();
        let sets = &self.profile.plugins;
        if let Some(point) = sets.keys().find(|it| point(it).is_none() && *it != "multiPoint") {
            let field = format!("profiles[{}].plugins", self.number);
            return Err(invalid(&field, format!("{point:?}"), "no such extension point"));
        }
        let all = sets.get("multiPoint").unwrap_or(&none);
        let is_off = |name: &str| all.disabled.iter().any(|it| it.name == name || it.name == "*");
        for (name, weight) in DEFAULTS.iter().filter(|(name, _)| !is_off(name)) {
            self.enable(name, Some(*weight), None)?;
        }
        for plugin in self.own.iter().filter(|plugin| !is_off(plugin.name())) {
            self.enable(plugin.name(), None, None)?;
        }
        for choice in &all.enabled {
            self.enable(&choice.name, choice.weight, None)?;
        }
        for (name, set) in sets {
            let Some(point) = point(name) else { continue };
            for choice in &set.disabled {
                for it in &mut self.plugins {
                    if choice.name == "*" || choice.name == it.plugin.name() {
                        it.points = it.points.without(point);
                    }
                }
            }
            for choice in &set.enabled {
                self.enable(&choice.name, choice.weight, Some(point))?;
            }
        }
        Ok(())
    }

    /// Lets a plug-in take part, at one point or at all that it has.
    fn enable(
        &mut self,
        name: &str,
        weight: Option<i64>,
        point: Option<Points>,
    ) -> Result<(), ConfigurationError> {
        let weight = weight.filter(|weight| *weight != 0);
        if let Some(it) = self.plugins.iter_mut().find(|it| it.plugin.name() == name) {
            it.points = it.points | point.unwrap_or_else(|| it.plugin.points());
            it.weight = weight.unwrap_or(it.weight);
            return Ok(());
        }
        let plugin = self.make(name)?;
        let points = match point {
            Some(point) => point,
            None => plugin.points(),
        };
        self.plugins.push(Enabled { plugin, points, weight: weight.unwrap_or(1) });
        Ok(())
    }

    fn make(&self, name: &str) -> Result<Arc<dyn Plugin>, ConfigurationError> {
        if let Some(own) = self.own.iter().find(|plugin| plugin.name() == name) {
            return Ok(Arc::clone(own));
        }
        let config = self.profile.plugin_config.iter().find(|config| config.name == name);
        let args = config.map_or(&Value::Null, |config| &config.args);
        let unknown =
            || ConfigurationError::UnknownPlugin { profile: self.number, name: name.to_owned() };
        make(name, args, self.handle, &self.ignored)?.ok_or_else(unknown)
    }
}

fn point(name: &str) -> Option<Points> {
    POINTS.iter().find(|(known, _)| *known == name).map(|(_, point)| *point)
}
