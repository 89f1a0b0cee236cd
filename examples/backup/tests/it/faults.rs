//! An API server that misbehaves.

use std::collections::BTreeSet;

use backup::backups;
use steersman::Manager;
use steersman_testkit::{Faults, Settings, run_with};

use crate::fixture::{Memory, db, prepared, until};

#[test]
fn whatever_went_wrong_it_goes_on_and_starts_nothing_twice() {
    for seed in 1..=10 {
        run_with(Settings::bare(seed), |cluster| async move {
            let (operator, node) = prepared(&cluster).await.unwrap();
            let faults = Faults::seeded(seed).all(0.05);
            let manager = Manager::new(operator.client_with(&faults));
            let running = manager.with(backups(Memory::default())).start();
            cluster.client().create(&db("10m", 100)).await.unwrap();
            until(&cluster, "00:45:00").await;
            faults.heal();
            until(&cluster, "01:25:00").await;
            let seen = node.seen();
            let healed = ["db-20300101-0110", "db-20300101-0120"].map(str::to_owned);
            assert!(seen.ends_with(&healed), "{faults}: {seen:?}");
            let different: BTreeSet<_> = seen.iter().collect();
            assert_eq!(different.len(), seen.len(), "{faults}: {seen:?}");
            running.stop().await;
        });
    }
}
