//! Families of instruments, and the registry of all of them.
//!
//! Whoever counts something makes its family once, keeps it, and keeps what [`Family::with`] gives
//! where the labels stay the same: counting is then an atomic addition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hashbrown::HashMap;

use super::instrument::{Counter, Histogram, Instrument};
use super::page::{Labels, Page};

/// How many sets of labels a family may have: what clients can name must not fill the memory.
const SERIES_MAX: usize = 20_000;

/// All metrics that are counted where something happens. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Mutex<BTreeMap<&'static str, Registered>>>);

struct Registered {
    kind: &'static str,
    help: &'static str,
    collect: Arc<dyn Collect>,
}

/// Knows its samples when somebody asks.
pub(crate) trait Collect: Send + Sync {
    /// Appends them.
    fn collect(&self, page: &mut Page<'_>);
}

impl Registry {
    /// A number that only grows.
    pub(crate) fn counter(&self, name: &'static str, help: &'static str) -> Arc<Counter> {
        self.counters(name, help, []).with([])
    }

    /// Such numbers by labels, which are given in the order of their names.
    pub(crate) fn counters<const N: usize>(
        &self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
    ) -> Family<N, Counter> {
        self.family(name, help, labels, Counter::default)
    }

    /// Histograms whose buckets end here.
    pub(crate) fn histograms<const N: usize>(
        &self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        ends: &'static [f64],
    ) -> Family<N, Histogram> {
        self.family(name, help, labels, move || Histogram::new(ends))
    }

    /// A counter that always says how much the histograms of a family have observed.
    pub(crate) fn totals<const N: usize>(
        &self,
        name: &'static str,
        help: &'static str,
        of: &Family<N, Histogram>,
    ) {
        self.add(name, Counter::KIND, help, Arc::new(Totals(of.clone())));
    }

    fn family<const N: usize, M: Instrument>(
        &self,
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        new: impl Fn() -> M + Send + Sync + 'static,
    ) -> Family<N, M> {
        debug_assert!(labels.is_sorted(), "{name}: labels are told in the order of their names");
        let series = Series { labels, new: Box::new(new), all: RwLock::default() };
        let family = Family(Arc::new(series));
        self.add(name, M::KIND, help, Arc::new(family.clone()));
        family
    }

    /// Adds a family that knows its samples itself. One of that name that is there is replaced.
    pub(crate) fn add(
        &self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        collect: Arc<dyn Collect>,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name, Registered { kind, help, collect });
    }

    /// Appends all families that have something to say, in the order of their names.
    pub(crate) fn write(&self, out: &mut String) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, Registered { kind, help, collect }) in &*all {
            let mut family = String::new();
            let mut page = Page::begin(&mut family, name, kind, help);
            collect.collect(&mut page);
            // Nothing stands below its head: like upstream, say nothing of it.
            if family.lines().nth(2).is_some() {
                out.push_str(&family);
            }
        }
    }
}

/// Instruments of one name, by what their labels say. Clones share everything.
pub(crate) struct Family<const N: usize, M>(Arc<Series<N, M>>);

struct Series<const N: usize, M> {
    labels: [&'static str; N],
    new: Box<dyn Fn() -> M + Send + Sync>,
    all: RwLock<HashMap<[Cow<'static, str>; N], Arc<M>>>,
}

impl<const N: usize, M> Clone for Family<N, M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<const N: usize, M> Family<N, M> {
    /// The instrument of some labels. Beyond the largest number of them it is one that nobody sees.
    pub(crate) fn with(&self, values: [&str; N]) -> Arc<M> {
        let Series { new, all, .. } = &*self.0;
        let known = all.read().unwrap_or_else(PoisonError::into_inner);
        let key = values.map(Cow::Borrowed);
        if let Some(found) = find(&known, &key) {
            return Arc::clone(found);
        }
        drop(known);
        let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SERIES_MAX {
            return Arc::new(new());
        }
        let key = values.map(|value| Cow::Owned(value.to_owned()));
        Arc::clone(all.entry(key).or_insert_with(|| Arc::new(new())))
    }
}

/// Looks up borrowed labels. The map says that it holds static ones, which shorter ones stand in
/// for as long as it is looked at.
fn find<'a, const N: usize, M>(
    all: &'a HashMap<[Cow<'static, str>; N], Arc<M>>,
    key: &[Cow<'a, str>; N],
) -> Option<&'a Arc<M>> {
    let all: &HashMap<[Cow<'a, str>; N], Arc<M>> = all;
    all.get(key)
}

impl<const N: usize, M> Family<N, M> {
    /// Tells every instrument with its labels, in their order.
    fn each(&self, mut tell: impl FnMut(&Labels<'_>, &M)) {
        let Series { labels, all, .. } = &*self.0;
        let all = all.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_key(|(values, _)| *values);
        for (values, instrument) in all {
            let told: [(&str, &str); N] = std::array::from_fn(|n| (labels[n], values[n].as_ref()));
            tell(&told, instrument);
        }
    }
}

impl<const N: usize, M: Instrument> Collect for Family<N, M> {
    fn collect(&self, page: &mut Page<'_>) {
        self.each(|labels, instrument| instrument.write(page, labels));
    }
}

/// How many numbers the histograms of a family have observed, as a family of its own.
struct Totals<const N: usize>(Family<N, Histogram>);

impl<const N: usize> Collect for Totals<N> {
    fn collect(&self, page: &mut Page<'_>) {
        self.0.each(|labels, histogram| page.sample("", labels, histogram.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;

    #[test]
    fn families_are_told_by_name_and_their_samples_by_labels() {
        let registry = Registry::default();
        let refused = registry.counters("b_total", "Refused.", ["level", "reason"]);
        refused.with(["low", "full"]).add(2);
        refused.with(["low", "full"]).increment();
        refused.with(["high", "late"]).increment();
        registry.counters("c", "Never counted.", ["x"]);
        let took = registry.histograms("a_seconds", "Took.", [], &[0.5, 1.0]);
        registry.totals("a_total", "Took something.", &took);
        for seconds in [0.5, 0.75, 3.0] {
            took.with([]).observe(seconds);
        }
        let mut out = String::new();
        registry.write(&mut out);
        let expected = "# HELP a_seconds Took.\n# TYPE a_seconds histogram\n\
            a_seconds_bucket{le=\"0.5\"} 1\na_seconds_bucket{le=\"1\"} 2\n\
            a_seconds_bucket{le=\"+Inf\"} 3\na_seconds_sum 4.25\na_seconds_count 3\n\
            # HELP a_total Took something.\n# TYPE a_total counter\na_total 3\n\
            # HELP b_total Refused.\n# TYPE b_total counter\n\
            b_total{level=\"high\",reason=\"late\"} 1\nb_total{level=\"low\",reason=\"full\"} 3\n";
        assert_eq!(out, expected);
    }
}
