//! Schemas and levels as they are in force, made from the objects that configure them.
//!
//! All objects are digested together whenever one changes, which is seldom. A level keeps its
//! queues through that; one that nobody wants any more stays until its requests are done. The
//! levels `exempt` and `catch-all` and their schemas are always there, whatever is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::counts::Counts;
use super::defaults;
use super::demand::Smoothed;
use super::flow::Flow;
use super::level::Level;
use super::queues::Discipline;
use super::schema::FlowSchema;
use super::shares::{Bounds, Claim, Share, divide};
use super::spec::LevelSpec;

/// What is in force.
#[derive(Debug)]
pub(super) struct Configuration {
    /// How many seats the server has.
    seats: u32,
    began: Instant,
    /// In the order in which they are asked.
    pub(super) flows: Vec<Arc<Flow>>,
    /// By their names.
    pub(super) levels: BTreeMap<String, LevelState>,
    /// What was counted, by level and schema; it outlives changes of either.
    pub(super) counts: BTreeMap<(String, String), Arc<Counts>>,
}

/// A level, and what it may have.
#[derive(Debug)]
pub(super) struct LevelState {
    pub(super) level: Arc<Level>,
    pub(super) spec: Arc<LevelSpec>,
    pub(super) bounds: Bounds,
    pub(super) demand: Smoothed,
    /// Whether nobody wants it any more, and it only ends what it began.
    pub(super) quiescing: bool,
}

/// The objects that configure the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) schemas: Vec<Arc<FlowSchema>>,
    pub(super) levels: Vec<Arc<LevelSpec>>,
}

impl Configuration {
    /// What is in force before anything is read.
    pub(super) fn new(seats: u32) -> Self {
        let mut new = Self {
            seats,
            began: Instant::now(),
            flows: Vec::new(),
            levels: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        new.digest(Objects::default());
        new
    }

    /// Puts objects in force.
    pub(super) fn digest(&mut self, mut objects: Objects) {
        for wanted in defaults::mandatory_levels() {
            if !objects.levels.iter().any(|level| level.name == wanted.name) {
                objects.levels.push(Arc::new(wanted));
            }
        }
        self.retire(&objects);
        for spec in objects.levels {
            match self.levels.get_mut(&spec.name) {
                Some(state) => {
                    state.level.set_discipline(spec.discipline);
                    (state.spec, state.quiescing) = (spec, false);
                }
                None => self.introduce(&spec),
            }
        }
        self.bound();
        self.adjust(1);
        self.connect(objects.schemas);
    }

    /// Lets levels go that nobody wants any more, once nobody is in them.
    fn retire(&mut self, objects: &Objects) {
        self.levels.retain(|name, state| {
            state.quiescing = !objects.levels.iter().any(|level| level.name == *name);
            !state.quiescing || !state.level.is_idle()
        });
    }

    fn introduce(&mut self, spec: &Arc<LevelSpec>) {
        let level = Arc::new(Level::new(spec.discipline, 0, self.began));
        let state = LevelState {
            level,
            spec: Arc::clone(spec),
            bounds: Bounds::default(),
            demand: Smoothed::default(),
            quiescing: false,
        };
        self.levels.insert(spec.name.clone(), state);
    }

    /// Says what each level may have.
    fn bound(&mut self) {
        let sum = self.levels.values().map(|state| state.spec.share.shares).sum();
        for state in self.levels.values_mut() {
            let share: Share = state.spec.share;
            state.bounds = share.bounds(self.seats, sum);
            state.level.set_width_max(state.spec.width_max(state.bounds.nominal));
        }
    }

    /// Sorts schemas, and leads each to its level; one whose level is missing counts for nobody.
    fn connect(&mut self, mut schemas: Vec<Arc<FlowSchema>>) {
        let is_there = |schema: &Arc<FlowSchema>| {
            self.levels.get(&schema.level).is_some_and(|state| !state.quiescing)
        };
        schemas.retain(is_there);
        schemas.sort_by(|one, other| {
            (one.precedence, &one.name).cmp(&(other.precedence, &other.name))
        });
        let [exempt, catch_all] = defaults::mandatory_schemas().map(Arc::new);
        if !schemas.iter().any(|schema| schema.name == exempt.name) {
            schemas.insert(0, exempt);
        }
        if !schemas.iter().any(|schema| schema.name == catch_all.name) {
            schemas.push(catch_all);
        }
        self.flows = schemas.into_iter().filter_map(|schema| self.flow(schema)).collect();
    }

    fn flow(&mut self, schema: Arc<FlowSchema>) -> Option<Arc<Flow>> {
        let state = self.levels.get(&schema.level)?;
        let key = (schema.level.clone(), schema.name.clone());
        let counts = Arc::clone(self.counts.entry(key).or_default());
        let exempt = state.spec.discipline == Discipline::Exempt;
        let flow = Flow::new(schema, Arc::clone(&state.level), &state.spec.uid, exempt, counts);
        Some(Arc::new(flow))
    }

    /// Divides the seats anew by what was wanted, `periods` after the last time.
    pub(super) fn adjust(&mut self, periods: u32) {
        for state in self.levels.values_mut() {
            state.demand.take_in(&state.level.take_demand(), periods);
        }
        if self.levels.values().any(|state| state.quiescing && state.level.is_idle()) {
            self.levels.retain(|_, state| !state.quiescing || !state.level.is_idle());
            self.bound();
        }
        for (level, limit) in self.limits() {
            if level.limit() != limit {
                level.set_limit(limit);
            }
        }
    }

    /// How many seats each level gets.
    fn limits(&self) -> Vec<(Arc<Level>, u32)> {
        let (exempt, limited): (Vec<_>, Vec<_>) =
            self.levels.values().partition(|state| state.spec.discipline == Discipline::Exempt);
        let all: u32 = self.levels.values().map(|state| state.bounds.nominal).sum();
        let needed = |state: &&LevelState| state.bounds.lower.max(state.demand.max);
        let left = all.saturating_sub(exempt.iter().map(needed).sum());
        let lower: u32 = limited.iter().map(|state| state.bounds.lower).sum();
        let least =
            |state: &LevelState| state.bounds.lower.max(state.bounds.nominal.min(state.demand.max));
        let wanted: u32 = limited.iter().map(|state| least(state)).sum();
        let given: Vec<f64> = if left <= lower {
            limited.iter().map(|state| f64::from(state.bounds.lower)).collect()
        } else if left <= wanted {
            let part = f64::from(left - lower) / f64::from(wanted - lower);
            let between = |state: &&LevelState| {
                let lower = f64::from(state.bounds.lower);
                lower + (f64::from(least(state)) - lower) * part
            };
            limited.iter().map(between).collect()
        } else {
            let claim = |state: &&LevelState| Claim {
                lower: f64::from(least(state)),
                upper: f64::from(state.bounds.upper),
                target: state.demand.smoothed.max(f64::from(least(state))),
            };
            divide(f64::from(all), &limited.iter().map(claim).collect::<Vec<_>>())
        };
        let exempt = exempt.iter().map(|state| (Arc::clone(&state.level), needed(state)));
        let limited = limited.iter().zip(given).map(|(state, given)| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is a number of seats"
            )]
            (Arc::clone(&state.level), given.round() as u32)
        });
        exempt.chain(limited).collect()
    }
}
