//! The resource: how high the water stands at a place, which follows from the time.

use std::f64::consts::TAU;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman_apiserver::status::Status;
use steersman_apiserver::{Clock, Computed, Reading};

/// How high the water stands at a place. Nobody writes tides: they follow from the time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, CustomResource)]
#[kube(group = "sea.steersman.dev", version = "v1", kind = "Tide", plural = "tides")]
#[kube(shortname = "td")]
#[kube(printcolumn = r#"{"name":"Height","type":"integer","jsonPath":".spec.centimetres"}"#)]
#[kube(printcolumn = r#"{"name":"Turns","type":"string","jsonPath":".spec.trend"}"#)]
pub struct TideSpec {
    /// How many centimetres the water stands above its mean.
    pub centimetres: i64,
    /// Whether it rises or falls.
    pub trend: Trend,
}

/// Which way the water goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Trend {
    /// It comes in.
    Rising,
    /// It goes out.
    Falling,
}

/// Seconds from one high water to the next.
const PERIOD: f64 = 44_714.0;

/// Places, by how many centimetres the water moves there, and how late it comes, in seconds.
const PLACES: &[(&str, f64, f64)] =
    &[("brest", 210.0, 0.0), ("dover", 270.0, 27_000.0), ("cuxhaven", 140.0, 43_000.0)];

/// How often it is looked for those who watch; the water moves a centimetre in half a minute.
const LOOKS: Duration = Duration::from_secs(10);

/// The tide of a place at a moment.
fn tide(range: f64, delay: f64, now: Timestamp) -> TideSpec {
    let angle = (now.as_second() as f64 - delay) / PERIOD * TAU;
    let centimetres = (range * angle.cos()).round() as i64;
    let trend = if angle.sin() > 0.0 { Trend::Falling } else { Trend::Rising };
    TideSpec { centimetres, trend }
}

/// Makes tides when somebody asks.
pub struct Tides {
    clock: Clock,
}

impl std::fmt::Debug for Tides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tides").finish_non_exhaustive()
    }
}

impl Tides {
    /// By a clock.
    pub fn by(clock: Clock) -> Self {
        Self { clock }
    }
}

impl Computed for Tides {
    fn list<'a>(&'a self, _: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        let now = (self.clock)();
        let object = |&(name, range, delay): &(&str, f64, f64)| {
            json!({
                "apiVersion": "sea.steersman.dev/v1", "kind": "Tide",
                "metadata": {"name": name},
                "spec": tide(range, delay, now),
            })
        };
        let all = PLACES.iter().map(object).collect();
        Box::pin(std::future::ready(Ok(all)))
    }

    fn watch_period(&self) -> Option<Duration> {
        Some(LOOKS)
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{Trend, tide};

    #[test]
    fn half_a_period_after_high_water_is_low_water() {
        let high = Timestamp::UNIX_EPOCH;
        assert_eq!(tide(200.0, 0.0, high).centimetres, 200);
        let low = high + SignedDuration::from_secs(44_714 / 2);
        assert_eq!(tide(200.0, 0.0, low).centimetres, -200);
        let between = high + SignedDuration::from_secs(44_714 / 4);
        assert_eq!(tide(200.0, 0.0, between).trend, Trend::Falling);
    }
}
