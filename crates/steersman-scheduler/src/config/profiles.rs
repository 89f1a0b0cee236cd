//! Puts profiles together from what is enabled and disabled.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::args::make;
use super::{Configuration, ConfigurationError, PluginChoice, PluginSet, ProfileConfiguration};
use crate::framework::{Enabled, Plugin, Points, Profile};
use crate::plugins::{DEFAULTS, Handle};
use crate::queue::Profiles;

/// An extension point.
struct Point {
    /// Its name in a configuration.
    name: &'static str,
    /// What takes part in it, as people are told.
    role: &'static str,
    point: Points,
}

/// In the order in which they are put together, so that of several mistakes the same is told first as by
/// Kubernetes.
const POINTS: [Point; 12] = [
    Point { name: "preFilter", role: "PreFilterPlugin", point: Points::PRE_FILTER },
    Point { name: "filter", role: "FilterPlugin", point: Points::FILTER },
    Point { name: "postFilter", role: "PostFilterPlugin", point: Points::POST_FILTER },
    Point { name: "reserve", role: "ReservePlugin", point: Points::RESERVE },
    Point { name: "preScore", role: "PreScorePlugin", point: Points::PRE_SCORE },
    Point { name: "score", role: "ScorePlugin", point: Points::SCORE },
    Point { name: "preBind", role: "PreBindPlugin", point: Points::PRE_BIND },
    Point { name: "bind", role: "BindPlugin", point: Points::BIND },
    Point { name: "postBind", role: "PostBindPlugin", point: Points::POST_BIND },
    Point { name: "permit", role: "PermitPlugin", point: Points::PERMIT },
    Point { name: "preEnqueue", role: "PreEnqueuePlugin", point: Points::PRE_ENQUEUE },
    Point { name: "queueSort", role: "QueueSortPlugin", point: Points::QUEUE_SORT },
];

/// The points that plug-ins have in Kubernetes and need not have here, where they do the same elsewhere:
/// they may be enabled there.
const NOT_NEEDED: [(&str, &str); 4] = [
    ("NodeResourcesFit", "preFilter"),
    ("TaintToleration", "preScore"),
    ("VolumeBinding", "preScore"),
    ("VolumeBinding", "score"),
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
    for profile in given {
        let ignored = configuration.ignored_resources();
        let maker = Maker { profile, own, handle, ignored };
        let (name, percentage) = (profile.name(), configuration.percentage(profile));
        let made = Chosen::by(&maker).and_then(|chosen| chosen.into_profile(percentage));
        let mut made = made.map_err(|why| {
            let why = format!("creating profile for scheduler name {name}: {why}");
            ConfigurationError::Profiles(why)
        })?;
        if !configuration.extenders.is_empty() {
            made.look_at_all();
        }
        let sorting = made.at(Points::QUEUE_SORT).next().cloned();
        match (&sort, sorting) {
            (None, sorting) => sort = sorting,
            (Some(first), Some(other)) if first.name() != other.name() => {
                let (first, other) = (first.name(), other.name());
                return Err(ConfigurationError::Profiles(format!(
                    "different queue sort plugins for profile {name:?}: {other:?}, first: {first:?}"
                )));
            }
            _ => {}
        }
        profiles.insert(Arc::clone(made.name()), Arc::new(made));
    }
    let none = || ConfigurationError::Profiles("at least one profile is required".to_owned());
    Ok(Assembled { profiles, sort: sort.ok_or_else(none)? })
}

/// Makes the plug-ins of a profile.
struct Maker<'a> {
    profile: &'a ProfileConfiguration,
    own: &'a [Arc<dyn Plugin>],
    handle: &'a Arc<Handle>,
    /// Extended resources that only extenders look at.
    ignored: Vec<String>,
}

impl Maker<'_> {
    /// The plug-in of a name, if there is one.
    fn make(&self, name: &str) -> Result<Option<Arc<dyn Plugin>>, String> {
        if let Some(own) = self.own.iter().find(|plugin| plugin.name() == name) {
            return Ok(Some(Arc::clone(own)));
        }
        let config = self.profile.plugin_config.iter().find(|config| config.name == name);
        let args = config.map_or(&Value::Null, |config| &config.args);
        make(name, args, self.handle, &self.ignored).map_err(|error| error.to_string())
    }

    /// What takes part wherever it can: the default plug-ins, with changes in their places, and others.
    fn everywhere(&self) -> Vec<PluginChoice> {
        let none = PluginSet::default();
        let PluginSet { enabled, disabled } =
            self.profile.plugins.get("multiPoint").unwrap_or(&none);
        let choice =
            |name: &str, weight: i64| PluginChoice { name: name.to_owned(), weight: Some(weight) };
        let defaults = DEFAULTS.iter().map(|&(name, weight)| choice(name, weight));
        let defaults = defaults.chain(self.own.iter().map(|plugin| choice(plugin.name(), 1)));
        let is_off = |name: &str| disabled.iter().any(|it| it.name == name || it.name == "*");
        let mut changed = vec![false; enabled.len()];
        let mut chosen: Vec<PluginChoice> = Vec::new();
        for default in defaults.filter(|it| !is_off(&it.name)) {
            let change = enabled.iter().rposition(|it| it.name == default.name);
            change.into_iter().for_each(|place| changed[place] = true);
            chosen.push(change.map_or(default, |place| enabled[place].clone()));
        }
        let others = enabled.iter().zip(changed).filter(|(_, is_change)| !is_change);
        chosen.extend(others.map(|(other, _)| other.clone()));
        chosen
    }
}

/// The plug-ins of a profile, as far as they are chosen.
struct Chosen<'a> {
    profile: &'a ProfileConfiguration,
    /// What takes part wherever it can.
    everywhere: Vec<PluginChoice>,
    plugins: Vec<Enabled>,
}

impl<'a> Chosen<'a> {
    /// Those that a profile names, made.
    fn by(maker: &Maker<'a>) -> Result<Self, String> {
        let (profile, everywhere) = (maker.profile, maker.everywhere());
        let mut chosen = Self { profile, everywhere, plugins: Vec::new() };
        let sets = POINTS.iter().filter_map(|point| profile.plugins.get(point.name));
        let everywhere = chosen.everywhere.iter();
        let choices = everywhere.chain(sets.flat_map(|set| &set.enabled));
        let mut names: Vec<String> = choices.map(|choice| choice.name.clone()).collect();
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        for name in names {
            let made = maker.make(&name)?;
            let weight = chosen.weight(&name);
            let enabled = made.map(|plugin| Enabled { plugin, points: Points::NONE, weight });
            chosen.plugins.extend(enabled);
        }
        Ok(chosen)
    }

    /// How much the scores of a plug-in count: what is said where they are given goes first.
    fn weight(&self, name: &str) -> i64 {
        let scores = self.profile.plugins.get("score").into_iter().flat_map(|set| &set.enabled);
        let chosen = scores.chain(&self.everywhere).find(|choice| choice.name == name);
        let weight = chosen.and_then(|choice| choice.weight);
        weight.filter(|weight| *weight != 0).unwrap_or(1)
    }

    fn into_profile(mut self, percentage: usize) -> Result<Profile, String> {
        for point in &POINTS {
            self.check(point)?;
        }
        let orders = POINTS.iter().map(|point| self.order(point).map(|names| (point.point, names)));
        let orders = orders.collect::<Result<Vec<(Points, Vec<String>)>, String>>()?;
        for (point, names) in &orders {
            for it in self.plugins.iter_mut().filter(|it| takes_part(it, names)) {
                it.points = it.points | *point;
            }
        }
        let name = self.profile.name();
        let mut profile = Profile::new(name, percentage, self.plugins);
        for (point, names) in &orders {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            profile.arrange(*point, &names);
        }
        let sorting = profile.at(Points::QUEUE_SORT).count();
        if sorting != 1 {
            return Err(format!(
                "only one queue sort plugin required for profile with scheduler name {name:?}, but \
                 got {sorting}"
            ));
        }
        if profile.at(Points::BIND).next().is_none() {
            let who = format!("profile with scheduler name {name:?}");
            return Err(format!("at least one bind plugin is needed for {who}"));
        }
        Ok(profile)
    }

    /// Whether those that are enabled at a point can do anything there.
    fn check(&self, point: &Point) -> Result<(), String> {
        let Some(set) = self.profile.plugins.get(point.name) else { return Ok(()) };
        for (place, PluginChoice { name, .. }) in set.enabled.iter().enumerate() {
            let plugin = self.find(name, point)?;
            let is_needless = NOT_NEEDED.contains(&(name.as_str(), point.name));
            if !plugin.points().contains(point.point) && !is_needless {
                return Err(format!("plugin {name:?} does not extend {} plugin", point.role));
            }
            if set.enabled[..place].iter().any(|it| it.name == *name) {
                return Err(registered(name, point));
            }
        }
        Ok(())
    }

    /// The plug-ins of a point in their order: first those that stand everywhere and are named there once
    /// more, then others that stand everywhere, and those that are named only there.
    fn order(&self, point: &Point) -> Result<Vec<String>, String> {
        let none = PluginSet::default();
        let PluginSet { enabled, disabled } = self.profile.plugins.get(point.name).unwrap_or(&none);
        let is_off = |name: &str| disabled.iter().any(|it| it.name == name);
        let can = |name: &str| -> Result<bool, String> {
            Ok(self.find(name, point)?.points().contains(point.point))
        };
        let (mut general, mut named_again) = (Vec::new(), Vec::new());
        for PluginChoice { name, .. } in self.everywhere.iter().filter(|_| !is_off("*")) {
            if !can(name)? || is_off(name) {
                continue;
            }
            match enabled.iter().any(|it| it.name == *name) {
                true => named_again.push(name),
                false if general.contains(&name) => return Err(registered(name, point)),
                false => general.push(name),
            }
        }
        let named = enabled.iter().map(|choice| &choice.name);
        let (mut order, last): (Vec<&String>, Vec<&String>) =
            named.partition(|name| named_again.contains(name));
        order.extend(general.into_iter().chain(last));
        let mut here = Vec::with_capacity(order.len());
        for name in order {
            here.extend(can(name)?.then(|| name.clone()));
        }
        Ok(here)
    }

    fn find(&self, name: &str, point: &Point) -> Result<&Arc<dyn Plugin>, String> {
        let found = self.plugins.iter().map(|it| &it.plugin).find(|it| it.name() == name);
        found.ok_or_else(|| format!("{} {name:?} does not exist", point.role))
    }
}

fn takes_part(enabled: &Enabled, names: &[String]) -> bool {
    names.iter().any(|name| name == enabled.plugin.name())
}

fn registered(name: &str, point: &Point) -> String {
    format!("plugin {name:?} already registered as {:?}", point.role)
}
