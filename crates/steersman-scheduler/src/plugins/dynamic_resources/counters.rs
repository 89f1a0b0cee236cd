//! What the devices of a pool share, such as the memory of a card that is cut into parts.

use std::collections::HashMap;

use k8s_openapi::api::resource::v1::{Counter, Device};
use steersman_values::Quantity;

use super::pools::{Pool, devices};

/// What is left of each counter, by pool, set and name, in thousandths.
pub(super) struct Counters(HashMap<(usize, String, String), i128>);

impl Counters {
    /// What devices that are taken have left over; they are known by driver, pool and name.
    pub(super) fn of(pools: &[Pool<'_>], is_taken: impl Fn([&str; 3]) -> bool) -> Self {
        let mut left = Self(HashMap::new());
        for (place, pool) in pools.iter().enumerate().filter(|(_, pool)| !pool.counters.is_empty())
        {
            for set in &pool.counters {
                for (name, counter) in &set.counters {
                    left.0.insert((place, set.name.clone(), name.clone()), amount(counter));
                }
            }
            let everywhere = pool.slices.iter().chain(&pool.elsewhere).flat_map(|it| devices(it));
            for device in everywhere.filter(|it| is_taken([pool.driver, pool.name, &it.name])) {
                left.change(place, device, -1);
            }
        }
        left
    }

    /// Takes what a device needs, unless there is less.
    pub(super) fn take(&mut self, pool: usize, device: &Device) -> bool {
        self.change(pool, device, -1);
        let sets = device.consumes_counters.iter().flatten();
        let mut taken = sets.flat_map(|set| set.counters.keys().map(|it| (&set.counter_set, it)));
        let has_enough = taken.all(|(set, name)| {
            self.0.get(&(pool, set.clone(), name.clone())).is_none_or(|left| *left >= 0)
        });
        if !has_enough {
            self.give_back(pool, device);
        }
        has_enough
    }

    pub(super) fn give_back(&mut self, pool: usize, device: &Device) {
        self.change(pool, device, 1);
    }

    fn change(&mut self, pool: usize, device: &Device, by: i128) {
        for set in device.consumes_counters.iter().flatten() {
            for (name, counter) in &set.counters {
                let key = (pool, set.counter_set.clone(), name.clone());
                if let Some(left) = self.0.get_mut(&key) {
                    *left += by * amount(counter);
                }
            }
        }
    }
}

fn amount(counter: &Counter) -> i128 {
    Quantity::parse(&counter.value.0).map_or(0, |amount| i128::from(amount.milli_value()))
}
