//! The objects of a run: what they are made of, and which of them there are.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::core::{DynamicObject, GroupVersionKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use steersman::kind::Kind;
use steersman::{Client, ObjectKey, Result};

use crate::error::LoadError;
use crate::readiness::Readiness;
use crate::scenario::{ConfigMaps, Deployments, Objects, Scenario};
use crate::template::Words;

/// Everything that a run makes has this label, with the name of its scenario.
pub(crate) const LABEL: &str = "load.steersman.dev/run";
/// Which of the scenario's sorts an object is of.
const SORT: &str = "load.steersman.dev/sort";
/// What an update changes if nothing else is said.
const ANNOTATION: &str = "load.steersman.dev/update";
/// How many objects are looked at for one that nothing is done to.
const TRIES: usize = 16;

/// Objects of one sort.
pub(crate) struct Sort {
    pub(crate) kind: Kind<DynamicObject>,
    pub(crate) readiness: Readiness,
    /// What their names begin with.
    prefix: String,
    template: Value,
    patch: Value,
    /// How many there are in each namespace.
    pub(crate) count: u32,
}

/// One object. What was deleted and made anew is another one with the same number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// Where its sort stands in the scenario.
    pub(crate) sort: usize,
    pub(crate) namespace: u32,
    pub(crate) number: u32,
    /// How often it was made anew.
    pub(crate) life: u32,
}

/// All objects of a run, and which of them something is done to.
pub(crate) struct Population {
    run: String,
    pub(crate) sorts: Vec<Sort>,
    state: Mutex<State>,
}

struct State {
    subjects: Vec<Lodger>,
    random: StdRng,
}

struct Lodger {
    subject: Subject,
    /// It is there, and nobody else does anything to it.
    free: bool,
}

/// An object that is lent to somebody, by its place in the list of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    pub(crate) place: usize,
    pub(crate) subject: Subject,
}

impl Population {
    /// Asks the server about the kinds, and plans all objects. None of them is there yet.
    pub(crate) async fn of(client: &Client, scenario: &Scenario) -> Result<Self, LoadError> {
        let mut sorts = Vec::new();
        for (place, objects) in scenario.objects.iter().enumerate() {
            sorts.push(Sort::of(client, objects, place).await?);
        }
        let subjects = (0..scenario.namespaces).flat_map(|namespace| {
            let numbers = |(sort, count)| {
                (0..count).map(move |number| Subject { sort, namespace, number, life: 0 })
            };
            let counts = sorts.iter().map(|sort| sort.count).enumerate();
            counts.flat_map(numbers).collect::<Vec<_>>()
        });
        let subjects = subjects.map(|subject| Lodger { subject, free: false }).collect();
        let random = StdRng::seed_from_u64(scenario.seed);
        let state = Mutex::new(State { subjects, random });
        Ok(Self { run: scenario.name.clone(), sorts, state })
    }

    /// The name of a namespace of the run.
    pub(crate) fn namespace(&self, number: u32) -> String {
        format!("{}-{number}", self.run)
    }

    /// All that there are to be.
    pub(crate) fn all(&self) -> Vec<Lent> {
        let state = self.lock();
        let lent = |(place, lodger): (usize, &Lodger)| Lent { place, subject: lodger.subject };
        state.subjects.iter().enumerate().map(lent).collect()
    }

    pub(crate) fn sort(&self, subject: Subject) -> &Sort {
        &self.sorts[subject.sort]
    }

    /// Lends somebody an object that nobody else has, chosen by chance.
    pub(crate) fn lend(&self) -> Option<Lent> {
        let state = &mut *self.lock();
        let count = state.subjects.len();
        for _ in 0..TRIES {
            let place = state.random.random_range(0..count);
            let lodger = &mut state.subjects[place];
            if lodger.free {
                lodger.free = false;
                return Some(Lent { place, subject: lodger.subject });
            }
        }
        None
    }

    /// Takes an object back, as what it is now; one that is gone stays out of use.
    pub(crate) fn give_back(&self, lent: Lent, subject: Option<Subject>) {
        let lodger = &mut self.lock().subjects[lent.place];
        lodger.free = subject.is_some();
        lodger.subject = subject.unwrap_or(lodger.subject);
    }

    /// A sort and a namespace, chosen by chance.
    pub(crate) fn somewhere(&self) -> (usize, u32) {
        let state = &mut *self.lock();
        let place = state.random.random_range(0..state.subjects.len());
        let subject = state.subjects[place].subject;
        (subject.sort, subject.namespace)
    }

    /// Selects the objects of a sort by their labels.
    pub(crate) fn selector(&self, sort: usize) -> String {
        format!("{LABEL}={},{SORT}={sort}", self.run)
    }

    /// Which object of the cluster it is.
    pub(crate) fn key(&self, subject: Subject) -> ObjectKey {
        let sort = self.sort(subject);
        let Subject { number, life, .. } = subject;
        let namespace = self.namespace(subject.namespace);
        if sort.kind.is_namespaced() {
            ObjectKey::namespaced(namespace, format!("{}-{number}-{life}", sort.prefix))
        } else {
            ObjectKey::named(format!("{namespace}-{}-{number}-{life}", sort.prefix))
        }
    }

    /// The object as it is made.
    pub(crate) fn object(&self, subject: Subject) -> Result<DynamicObject> {
        let sort = self.sort(subject);
        let key = self.key(subject);
        let namespace = self.namespace(subject.namespace);
        let number = subject.number.to_string();
        let words = Words { name: &key.name, namespace: &namespace, number: &number };
        let mut document = words.fill(&sort.template);
        let meta = &mut document["metadata"];
        meta["name"] = json!(&*key.name);
        meta["labels"][LABEL] = json!(self.run);
        meta["labels"][SORT] = json!(subject.sort.to_string());
        if let Some(namespace) = &key.namespace {
            meta["namespace"] = json!(&**namespace);
        }
        Ok(serde_json::from_value(document)?)
    }

    /// The merge patch of an update, of which each has a number.
    pub(crate) fn patch(&self, subject: Subject, number: u64) -> Value {
        let key = self.key(subject);
        let namespace = self.namespace(subject.namespace);
        let number = number.to_string();
        let words = Words { name: &key.name, namespace: &namespace, number: &number };
        words.fill(&self.sort(subject).patch)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sort {
    async fn of(client: &Client, objects: &Objects, place: usize) -> Result<Self, LoadError> {
        let template = template(objects);
        let api_version = template["apiVersion"].as_str().unwrap_or_default();
        let kind = template["kind"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = client.discover(&GroupVersionKind::gvk(group, version, kind)).await;
        let kind = found.map_err(|error| match error.status().map(|status| status.code) {
            Some(404) => {
                let (kind, api_version) = (kind.to_owned(), api_version.to_owned());
                LoadError::NotServed { kind, api_version }
            }
            _ => LoadError::Prepare(error),
        })?;
        let annotated = json!({"metadata": {"annotations": {ANNOTATION: "{{number}}"}}});
        let usual = match (&objects.deployment, &objects.config_map) {
            (Some(_), _) => json!({"spec": {"template": annotated}}),
            (_, Some(_)) => json!({"data": {"update": "{{number}}"}}),
            _ => annotated,
        };
        let readiness = match (&objects.deployment, &objects.ready) {
            (Some(_), _) => Readiness::Deployment,
            (_, Some(ready)) => Readiness::Condition(ready.condition.clone()),
            _ => Readiness::AtOnce,
        };
        Ok(Self {
            prefix: format!("{}-{place}", kind.name().to_lowercase()),
            kind,
            readiness,
            template,
            patch: objects.patch.clone().unwrap_or(usual),
            count: objects.count,
        })
    }

    /// The name of the resource, as measurements name it.
    pub(crate) fn resource(&self) -> String {
        self.kind.plural().into_owned()
    }
}

fn template(objects: &Objects) -> Value {
    let mut template = match objects {
        Objects { deployment: Some(Deployments { replicas, image }), .. } => json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "{{name}}"}},
                "template": {
                    "metadata": {"labels": {"app": "{{name}}"}},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        }),
        Objects { config_map: Some(ConfigMaps { bytes }), .. } => json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"text": "x".repeat(*bytes as usize)},
        }),
        Objects { template, .. } => template.clone().unwrap_or_default(),
    };
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    if !template["metadata"]["labels"].is_object() {
        template["metadata"]["labels"] = json!({});
    }
    template
}
