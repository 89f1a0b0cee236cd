//! Changes objects at random, through a client that nothing hinders.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use steersman::ListOptions;
use steersman_testkit::Cluster;

use crate::gaps::forget_history;
use crate::reconcile::config_map;

/// How many names the writer has; few, so that names are taken again.
const NAMES: u32 = 15;
/// The label by which objects are deleted together.
const GROUP: &str = "group";

/// Writes what follows from a seed.
pub(super) struct Writer<'a> {
    cluster: &'a Cluster,
    maps: Api<ConfigMap>,
    dice: StdRng,
    writes: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(cluster: &'a Cluster, seed: u64) -> Self {
        let maps = Api::default_namespaced(cluster.client().kube().clone());
        Self { cluster, maps, dice: StdRng::seed_from_u64(seed), writes: 0 }
    }

    /// Creates most of the objects.
    pub(super) async fn begin(&mut self) {
        for number in 0..NAMES - 3 {
            self.create(&format!("m-{number}")).await;
        }
    }

    /// One change, or several at once, and usually a pause.
    pub(super) async fn step(&mut self) {
        let name = format!("m-{}", self.dice.random_range(0..NAMES));
        match self.dice.random_range(0..20) {
            0..=4 => self.create(&name).await,
            5..=9 => self.update(&name).await,
            10..=12 => self.delete(&name).await,
            13..=15 => {
                self.delete(&name).await;
                self.create(&name).await;
            }
            16 => self.delete_group().await,
            17 => {
                for number in 0..NAMES {
                    self.update(&format!("m-{number}")).await;
                }
            }
            _ => forget_history(self.cluster).await,
        }
        if self.dice.random_bool(0.7) {
            let pause = Duration::from_millis(self.dice.random_range(0..20_000));
            self.cluster.advance(pause).await;
        }
    }

    async fn create(&mut self, name: &str) {
        let mut map = config_map(name);
        let group = self.dice.random_range(0..3);
        map.labels_mut().insert(GROUP.into(), format!("{group}"));
        let created = self.maps.create(&PostParams::default(), &map).await;
        assert!(created.is_ok() || is(&created, 409), "{created:?}");
    }

    async fn update(&mut self, name: &str) {
        if let Some(map) = self.maps.get_opt(name).await.unwrap() {
            self.change(map).await;
        }
    }

    async fn change(&mut self, mut map: ConfigMap) {
        self.writes += 1;
        map.annotations_mut().insert("write".into(), self.writes.to_string());
        self.cluster.client().update(&map).await.unwrap();
    }

    async fn delete(&mut self, name: &str) {
        let deleted = self.maps.delete(name, &DeleteParams::default()).await;
        assert!(deleted.is_ok() || is(&deleted, 404), "{deleted:?}");
    }

    async fn delete_group(&mut self) {
        let group = self.dice.random_range(0..3);
        let selected = ListParams::default().labels(&format!("{GROUP}={group}"));
        self.maps.delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    }
}

/// Every ConfigMap there is.
pub(super) async fn everything(cluster: &Cluster) -> Vec<ConfigMap> {
    cluster.client().list(&ListOptions::default()).await.unwrap()
}

fn is<T>(answer: &kube::Result<T>, code: u16) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == code)
}
